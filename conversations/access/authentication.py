"""Authenticate a caller: the person of a session cookie, or the holder of a bearer token. Synchronous; call it in a
thread.

An open socket's `Caller` is checked again within a second: `revoked` returns those whose access has ended (law H).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from conversations.access.accounts import one_time_secret
from conversations.access.accounts.command_tokens import CommandToken
from conversations.core import principals
from conversations.core.errors import NotSignedIn, SwitchboardError, Unavailable
from conversations.core.principals import Principal
from conversations.models import Role, Token, User

SIGNED_OUT, NOT_ALLOWED, RECONNECT = 4401, 4403, 1012  # close codes, §3.5


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal with its roles, and its credential: a session, a token, or a command's token."""

    principal: Principal
    roles: frozenset[str]
    user_id: int | None = None
    session_key: str = ""
    stamp: tuple[str, str] = ("", "")  # password hash and session salt at sign-in
    token_digest: str = ""
    agent: str = ""
    command_token: CommandToken | None = None


def caller_of(bearer: str, session_key: str) -> Caller | None:
    """Return the holder of a bearer token, else the person of a session: a cookie beside a token counts for nothing."""
    return caller_from_token(bearer) if bearer else caller_from_session(session_key)


def caller_from_session(session_key: str) -> Caller | None:
    """Return the person of a session; None if it has ended or the person may not sign in."""
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    session = store.load() if store.session_key else {}
    if SESSION_KEY not in session or BACKEND_SESSION_KEY not in session:
        return None
    user = User.objects.filter(pk=session[SESSION_KEY], is_active=True).first()
    if user is None or not constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash()):
        return None
    return Caller(
        principals.user_principal(user.username),
        user.role_names,
        user_id=user.pk,
        session_key=session_key,
        stamp=(user.password, user.session_salt),
    )


def caller_from_token(secret: str) -> Caller | None:
    """Return the holder of a bearer token; None if it is unknown or revoked."""
    digest = one_time_secret.digest(secret)
    token = Token.objects.filter(digest=digest, revoked_at__isnull=True).first()
    if token is None:
        return None
    agent = token.agent if token.role == "agent" else ""
    principal = principals.token_principal(token.name, digest)
    return Caller(principal, frozenset({token.role}), token_digest=digest, agent=agent)


def revoked(callers: Iterable[Caller]) -> dict[Caller, int]:
    """Return the callers whose access has ended, with the close code; RECONNECT for a person who has lost a role and
    kept another. Four queries, however many callers.

    A command's token has neither session nor row: this process itself knows whether it was revoked.
    """
    callers = list(callers)
    everybody = {caller for caller in callers if caller.token_digest or caller.session_key}
    sessions = set(
        Session.objects.filter(
            session_key__in={v.session_key for v in everybody if v.session_key}, expire_date__gt=timezone.now()
        ).values_list("session_key", flat=True)
    )
    people = {
        pk: (password, salt)
        for pk, password, salt in User.objects.filter(
            pk__in={v.user_id for v in everybody if v.user_id}, is_active=True
        ).values_list("pk", "password", "session_salt")
    }
    roles: dict[int | None, set[str]] = {}
    for user_id, role in Role.objects.filter(user_id__in=people).values_list("user_id", "name"):
        roles.setdefault(user_id, set()).add(role)
    digests = {v.token_digest for v in everybody if v.token_digest}
    tokens = set(Token.objects.filter(digest__in=digests, revoked_at__isnull=True).values_list("digest", flat=True))
    gone = {v: NOT_ALLOWED for v in callers if v.command_token is not None and v.command_token.is_revoked}
    for caller in everybody:
        if caller.token_digest:
            if caller.token_digest not in tokens:
                gone[caller] = NOT_ALLOWED
        elif caller.session_key not in sessions or people.get(caller.user_id or 0) != caller.stamp:
            gone[caller] = SIGNED_OUT
        elif not caller.roles <= roles.get(caller.user_id, set()):
            gone[caller] = RECONNECT if caller.user_id in roles else NOT_ALLOWED
    return gone


def require_still(caller: Caller) -> None:
    """Raise NotSignedIn if the caller's access has ended, as the database says now."""
    if (code := revoked([caller]).get(caller, RECONNECT)) != RECONNECT:
        raise refusal(code)


def refusal(code: int) -> SwitchboardError:
    """Return the error for a caller whose access ended during a request, by close code."""
    if code in (SIGNED_OUT, NOT_ALLOWED):
        return NotSignedIn("this token or session has been revoked", code="token_revoked")
    return Unavailable("this server cannot check permissions right now: try again")
