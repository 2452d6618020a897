"""Run an action: the permission check and the changes in one transaction; a refusal is recorded instead (law E)."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from conversations.access import permissions
from conversations.access.audit import chain, refusal_counter
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.principals import SYSTEM, Principal
from conversations.core.write_transaction import in_write_transaction, lock_actions, write_transaction
from conversations.events import commit_listeners
from conversations.models import Conversation


@contextmanager
def audited_action(
    by: Who, verb: str, target: str, *, right: str = "", acting_as: str = "", is_shared: bool = False
) -> Iterator[Principal]:
    """Run the block in one transaction; yield the principal who acts. The block says what it did by `chain.add_entry`.

    - `right`: the permission to require inside the transaction. Empty: the block checks permissions itself.
    - `is_shared`: other actions that are also shared may run at the same time (`lock_actions`).
    - `acting_as`: the agent as whom they wanted to act; stored with a refusal.

    If the block raises `NotAllowed` or `Conflict`, its changes are rolled back, one audit entry with the outcome
    "refused" is stored (a program's repeats are only counted, `refusal_counter`), and the error is raised again.
    Inside another `write_transaction()`, a refusal raises `RuntimeError`, because its entry could be rolled back.
    """
    is_joined = in_write_transaction()
    refused: NotAllowed | Conflict | None = None
    with write_transaction():
        lock_actions(is_shared=is_shared)
        try:
            with transaction.atomic():  # a savepoint: whoever loses a race waits for one turn, not for two
                if right:
                    permissions.require(by, right)
                yield permissions.principal_of(by)
        except (NotAllowed, Conflict) as error:
            if is_joined:
                raise RuntimeError("a refusal must be recorded after the action's own rollback") from error
            who = permissions.principal_of(by)
            is_told = isinstance(error, NotAllowed) and refusal_counter.is_repeat(who, verb, target, error.message)
            if not is_told:
                chain.add_entry(who, verb, target, outcome="refused", reason=error.message, acting_as=acting_as)
            refused = error
    if refused is not None:
        refused.is_recorded = True
        raise refused


def find_conversation(key: str) -> Conversation:
    """Return a visible conversation. Raises NotFound."""
    row = Conversation.objects.visible().filter(key=key).first()
    if row is None:
        raise NotFound(f"there is no conversation {key[:80]!r}")
    return row


def check_reason(reason: str, most: int = chain.MAX_REASON) -> None:
    """Raise Invalid if a person's reason has more characters than are kept."""
    if len(reason) > most:
        raise Invalid(f"must be at most {most:,} characters; got {len(reason):,}", field="reason")


def required_reason(reason: str, most: int = chain.MAX_REASON) -> str:
    """Return the reason as it is stored. Raises Invalid for none, or one that has more characters than are kept."""
    reason = reason.strip()
    if not reason:
        raise Invalid("must not be empty", field="reason")
    check_reason(reason, most)
    return reason


def event_author(principal: Principal) -> tuple[Principal, dict[str, object]]:
    """Return the principal that writes an event which changes state, and the fields of its body that name the actor.

    A token may act, but events from tokens are claims (law I), since anyone who may publish could write them: so the
    system writes the event, and `by` names the token.
    """
    return principal if principal.is_ours else SYSTEM, {"by": str(principal)}


def revoked() -> None:
    """Make open sockets check their permissions once this transaction has committed (law H)."""
    transaction.on_commit(commit_listeners.notify_revoked)
