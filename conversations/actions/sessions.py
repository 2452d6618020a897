"""Being signed in: sign-ins and sign-outs, passwords, the end of sessions. Called by the pages of one's own account."""

import secrets
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.utils import timezone

from conversations import audit, refusals, rights
from conversations.actions.acting import acting, revoked
from conversations.errors import Invalid, NotAllowed, NotFound
from conversations.models import SignInLink, User
from conversations.rights import Who

# Marks in a user agent, the more particular before those that others carry too.
BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


class Seat(NamedTuple):
    """One place where a person is signed in. `since`, `address` and `browser` are what the sign-in noted."""

    key: str
    since: datetime | None
    address: str
    browser: str

    @property
    def name(self) -> str:
        """The browser in few words, as far as it tells."""
        browser = next((words for mark, words in BROWSERS if mark in self.browser), "")
        system = next((words for mark, words in SYSTEMS if mark in self.browser), "")
        return " on ".join(filter(None, [browser, system])) or self.browser[:40] or "unknown"


def sign_in(user: User, how: str, *, begin: Callable[[], None]) -> None:
    """Record a sign-in in the transaction in which `begin` makes the session. Raises `NotAllowed` when deactivated."""
    with acting(user, "sign_in", f"user:{user.username}") as principal:
        if not rights.is_active(user):
            raise NotAllowed(f"{user.username} is deactivated")
        begin()
        Session.objects.filter(expire_date__lt=timezone.now()).delete()
        audit.enter(principal, "sign_in", f"user:{user.username}", correlation={"how": how})


def note_failed_sign_in(name: str, address: str, *, is_locked_out: bool) -> None:
    """Count a failed sign-in for a known name; what was typed as an unknown one is not kept (it may be a password)."""
    known = User.objects.filter(username=name).exists()
    verb, reason = ("lock_out", "too many tries") if is_locked_out else ("sign_in", "name or password is wrong")
    refusals.count(address, verb, f"user:{name}" if known else "user:?", reason=reason)


def sign_out(user: User, *, end: Callable[[], None]) -> None:
    """Record a sign-out in the transaction in which `end` removes the session; its sockets close."""
    with acting(user, "sign_out", f"user:{user.username}") as principal:
        end()
        audit.enter(principal, "sign_out", f"user:{user.username}")
        revoked()


def set_password(by: Who, name: str, password: str) -> User:
    """Set a person's password: one's own, or as admin another's. Every session of theirs ends.

    The caller's own session stays alive when the view takes the new hash into it. Raises `Invalid`.
    """
    user = _found(name)
    user.set_password(fit_password(user, password))  # slow by design: outside of the transaction
    with acting(by, "set_password", f"user:{name}") as principal:
        _require_own(by, name)
        User.objects.filter(pk=user.pk).update(password=user.password)
        user.session_salt = end_sessions(user)
        audit.enter(principal, "set_password", f"user:{name}")
        revoked()
    return user


def sign_out_everywhere(by: Who, name: str) -> User:
    """End every session of a person and void links not used yet: one's own, or as admin another's."""
    user = _found(name)
    with acting(by, "sign_out_everywhere", f"user:{name}") as principal:
        _require_own(by, name)
        user.session_salt = end_sessions(user)
        audit.enter(principal, "sign_out_everywhere", f"user:{name}")
        revoked()
    return user


def end_sessions(user: User) -> str:
    """Change the salt that every session's hash holds, remove the rows, void the links; answer the new salt.

    Part of an action: call it inside `writing()`.
    """
    salt = secrets.token_hex(8)
    User.objects.filter(pk=user.pk).update(session_salt=salt)
    Session.objects.filter(pk__in=[seat.key for seat in seats(user)]).delete()
    SignInLink.objects.filter(user=user, used_at=None).delete()
    return salt


def fit_password(user: User, password: str) -> str:
    """Answer the password when it is strong enough for `user`; raises `Invalid` that says what is missing."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field="password") from error
    return password


def seats(user: User) -> Iterator[Seat]:
    """Find where a person is signed in. Sessions hold their person in sealed data, so all live ones are opened."""
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        data = session.get_decoded()
        if data.get(SESSION_KEY) == str(user.pk):
            yield _seat(session.session_key, data)


def _seat(key: str, data: Mapping[str, str]) -> Seat:
    since = data.get("since")
    return Seat(key, datetime.fromisoformat(since) if since else None, data.get("address", ""), data.get("browser", ""))


def _found(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise NotFound(f"nobody is called {name}")
    return user


def _require_own(by: Who, name: str) -> None:
    if isinstance(by, User) and by.username == name and rights.is_active(by):
        return
    rights.require(by, "people")
