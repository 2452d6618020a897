"""The frame of every action: rights and change in one transaction, a refusal in place of what it took back (law E)."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from conversations import audit, doorbell, rights
from conversations.errors import Conflict, NotAllowed
from conversations.log.writing import is_writing, take_turn, writing
from conversations.principals import SYSTEM, Principal
from conversations.rights import Who


@contextmanager
def acting(by: Who, verb: str, target: str, *, right: str = "", acting_as: str = "") -> Iterator[Principal]:
    """Hold the action's transaction and answer who acts. `right` is required inside; empty when the body decides.

    A `NotAllowed` or `Conflict` from inside takes all of it back, leaves one refused entry and goes on to the caller.
    `acting_as` is whom they would have spoken as, told with the refusal. Inside another `writing()` a refusal is a
    `RuntimeError`: its entry would go with the whole.
    """
    is_joined = is_writing()
    refused: NotAllowed | Conflict | None = None
    with writing():
        take_turn()
        try:
            with transaction.atomic():  # a savepoint: whoever loses a race waits for one turn, not for two
                if right:
                    rights.require(by, right)
                yield rights.principal_of(by)
        except (NotAllowed, Conflict) as error:
            if is_joined:
                raise RuntimeError("a refusal is told after the rollback, and this one is not the action's") from error
            who = rights.principal_of(by)
            audit.enter(who, verb, target, outcome="refused", reason=error.message, acting_as=acting_as)
            refused = error
    if refused is not None:
        refused.is_recorded = True
        raise refused


def writing_as(principal: Principal) -> tuple[Principal, dict[str, object]]:
    """Answer who writes an event that changes state, and what its body says of who did it.

    A token acts here by its right, but what comes from a token is a claim (law I), since anybody who may publish could
    say it: so the system writes it down, and `by` names the token.
    """
    return principal if principal.is_ours else SYSTEM, {"by": str(principal)}


def revoked() -> None:
    """Have open sockets check their rights as soon as this transaction has committed (law H)."""
    transaction.on_commit(doorbell.revoked)
