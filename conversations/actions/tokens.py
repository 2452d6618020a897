"""Bearer tokens of programs and agents. Called by `manage.py token`, the doors and the pages' gate."""

from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from conversations import audit, principals
from conversations.actions import secret
from conversations.actions.acting import acting, revoked
from conversations.errors import Conflict, Invalid, NotFound
from conversations.log.writing import writing
from conversations.models import Token
from conversations.models.people import ROLES
from conversations.rights import Who

PREFIX = "sb_"
TOKEN_ROLES = ("agent", *ROLES)
USE_NOTED_EVERY = timedelta(minutes=1)


def make_token(by: Who, name: str, role: str, *, agent: str = "") -> str:
    """Make a token; answer its secret, which is not kept. An agent's token speaks for `agent`, else for its own name.

    The name of a revoked token may be used again. Raises `Invalid`, and `Conflict` when the name is in use.
    """
    _check(name, role, agent)
    words = secret.make(PREFIX)
    with acting(by, "make_token", f"token:{name}", right="tokens") as principal:
        if Token.objects.filter(name=name, revoked_at=None).exists():
            raise Conflict(f"token {name} exists; revoke it first or choose another name", field="name")
        Token.objects.update_or_create(
            name=name,
            defaults={
                "role": role,
                "agent": (agent or name) if role == "agent" else "",
                "digest": secret.digest(words),
                "created_by": str(principal),
                "created_at": timezone.now(),
                "last_used_at": None,
                "revoked_at": None,
            },
        )
        audit.enter(principal, "make_token", f"token:{name}", correlation={"role": role, "agent": agent})
    return words


def revoke_token(by: Who, name: str) -> None:
    """End a token at once. Raises `NotFound`, and `Conflict` when done before."""
    with acting(by, "revoke_token", f"token:{name}", right="tokens") as principal:
        if not Token.objects.filter(name=name, revoked_at=None).update(revoked_at=timezone.now()):
            if not Token.objects.filter(name=name).exists():
                raise NotFound(f"no token is called {name}")
            entry = audit.last("revoke_token", f"token:{name}")
            raise Conflict(f"{entry.principal if entry else 'somebody'} was first: token {name} is revoked already")
        audit.enter(principal, "revoke_token", f"token:{name}")
        revoked()


def token_of(words: str) -> Token | None:
    """Find the live token with this secret and note its use, at most once a minute. Ask `rights` what it may."""
    if not words.startswith(PREFIX):
        return None
    token = Token.objects.filter(digest=secret.digest(words), revoked_at=None).first()
    if token and (token.last_used_at is None or timezone.now() - token.last_used_at >= USE_NOTED_EVERY):
        note_use(token.digest)
    return token


def note_use(digest: str) -> None:
    """Note that the token with this digest is used now, unless that was noted within the last minute."""
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED_EVERY)
    with writing():
        Token.objects.filter(stale, digest=digest).update(last_used_at=now)


def _check(name: str, role: str, agent: str) -> None:
    if role not in TOKEN_ROLES:
        raise Invalid(f"no such role: {role}; there are {', '.join(TOKEN_ROLES)}", field="role")
    if agent and role != "agent":
        raise Invalid("only a token with the role agent speaks for an agent", field="agent")
    if len(agent) > 200:
        raise Invalid("an agent's name has at most 200 characters", field="agent")
    try:
        principals.of_token(name)
    except ValueError as error:
        raise Invalid(str(error), field="name") from error
