"""Bearer tokens of programs and agents. Called by `manage.py token`, the endpoints and the permission check of
pages."""

import logging
from datetime import timedelta

from django.db import DatabaseError
from django.db.models import Q
from django.utils import timezone

from conversations.access.accounts import one_time_secret
from conversations.access.action_context import audited_action, revoked
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import principals
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.write_transaction import write_transaction
from conversations.models import Token
from conversations.models.people import ROLES

PREFIX = "sb_"
TOKEN_ROLES = ("agent", "telemetry", *ROLES)
OUTSIDE = ("agent", "telemetry")  # whose words let nobody in: `Token.agent` is set
USE_NOTED_EVERY = timedelta(minutes=1)
PATIENCE = 0.05  # seconds for what else is written: a request does not wait for the note

logger = logging.getLogger(__name__)


def make_token(by: Who, name: str, role: str, *, agent: str = "") -> str:
    """Create a token; return its secret, which is not stored. An agent's token speaks for `agent`, by default for its
    own name; a telemetry token reports about any agent, but grants no agent access.

    A revoked token's name may be used again, but only for the same agent, if it had one. Raises Invalid, and Conflict
    if the name is in use or belonged to another agent.
    """
    _check(name, role, agent)
    secret, speaks_for = one_time_secret.make(PREFIX), (agent or name) if role in OUTSIDE else ""
    with audited_action(by, "make_token", f"token:{name}", right="tokens") as principal:
        if Token.objects.filter(name=name, revoked_at=None).exists():
            raise Conflict(f"token {name} already exists; revoke it first or choose another name", field="name")
        _require_same(name, speaks_for)
        token, _ = Token.objects.update_or_create(
            name=name,
            defaults={
                "role": role,
                "agent": speaks_for,
                "digest": one_time_secret.digest(secret),
                "created_by": str(principal),
                "created_at": timezone.now(),
                "last_used_at": None,
                "revoked_at": None,
            },
        )
        facts = {"role": role, "agent": agent}
        chain.add_entry(principal, "make_token", f"token:{name}", after=state_of(token), correlation=facts)
    return secret


def state_of(token: Token) -> str:
    """Return the digest of a token's state for the audit log; its secret is in it only as a digest."""
    return chain.digest([token.name, token.role, token.agent, token.digest])


def revoke_token(by: Who, name: str) -> None:
    """Revoke a token at once. Raises NotFound, and Conflict if already done."""
    with audited_action(by, "revoke_token", f"token:{name}", right="tokens") as principal:
        if not Token.objects.filter(name=name, revoked_at=None).update(revoked_at=timezone.now()):
            if not Token.objects.filter(name=name).exists():
                raise NotFound(f"there is no token {name}")
            entry = chain.last("revoke_token", f"token:{name}")
            raise Conflict(f"token {name} is already revoked, by {entry.principal if entry else 'someone else'}")
        chain.add_entry(principal, "revoke_token", f"token:{name}")
        revoked()


def token_of(secret: str) -> Token | None:
    """Return the live token with this secret and note its use, at most once a minute; None without one. What it may do
    is in `permissions`. If the use cannot be noted now, the next request notes it."""
    if not secret.startswith(PREFIX):
        return None
    token = Token.objects.filter(digest=one_time_secret.digest(secret), revoked_at=None).first()
    if token and (token.last_used_at is None or timezone.now() - token.last_used_at >= USE_NOTED_EVERY):
        try:
            note_use(token.digest, within=PATIENCE)
        except DatabaseError as error:
            logger.warning("the use of token %s could not be recorded: %s", token.name, error)
    return token


def note_use(digest: str, *, within: float | None = None) -> None:
    """Note the use of the token with this digest, at most once a minute. `within`: as in `write_transaction`."""
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED_EVERY)
    with write_transaction(within=within):
        Token.objects.filter(stale, digest=digest).update(last_used_at=now)


def _require_same(name: str, agent: str) -> None:
    """Raise Conflict if a revoked token with this name spoke for another agent, or for none: events name only the
    token, and an agent's words must not come to count as a person's."""
    was = Token.objects.filter(name=name).first()
    if was is not None and was.agent != agent:
        what = f"the agent {was.agent}" if was.agent else f"the role {was.role}"
        raise Conflict(f"token {name} was used for {what} before it was revoked; choose another name", field="name")


def _check(name: str, role: str, agent: str) -> None:
    if role not in TOKEN_ROLES:
        raise Invalid(f"must be one of {', '.join(TOKEN_ROLES)}; got {role[:40]!r}", field="role")
    if agent and role != "agent":
        raise Invalid("only tokens with the role agent can speak for an agent", field="agent")
    if len(agent) > 200:
        raise Invalid("must be at most 200 characters", field="agent")
    try:
        principals.token_principal(name)
    except ValueError as error:
        raise Invalid(str(error), field="name") from error
