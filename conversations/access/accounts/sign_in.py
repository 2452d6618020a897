"""Sign-ins and sign-outs, passwords, and the end of sessions. Called by the account pages."""

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.password_validation import validate_password
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.utils import timezone

from conversations.access import permissions
from conversations.access.action_context import audited_action, revoked
from conversations.access.audit import chain, refusal_counter
from conversations.access.permissions import Who
from conversations.core.errors import Invalid, NotAllowed, NotFound
from conversations.models import SignInLink, User

MIN_DIFFERENT = 5  # characters of a password, blanks apart

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


class SignedInDevice(NamedTuple):
    """A device on which a person is signed in. `since`, `address` and `browser` were noted at sign-in."""

    key: str
    since: datetime | None
    address: str
    browser: str

    @property
    def name(self) -> str:
        """Return the browser in a few words, as far as it says."""
        browser = next((label for mark, label in BROWSERS if mark in self.browser), "")
        system = next((label for mark, label in SYSTEMS if mark in self.browser), "")
        return " on ".join(filter(None, [browser, system])) or self.browser[:40] or "unknown"


def sign_in(user: User, how: str, *, begin: Callable[[], None]) -> None:
    """Audit a sign-in in the transaction in which `begin` creates the session. Raises NotAllowed for a deactivated
    account."""
    with audited_action(user, "sign_in", f"user:{user.username}") as principal:
        if not permissions.is_active(user):
            raise NotAllowed(f"the account {user.username} is deactivated")
        begin()
        Session.objects.filter(expire_date__lt=timezone.now()).delete()
        chain.add_entry(principal, "sign_in", f"user:{user.username}", correlation={"how": how})


def note_failed_sign_in(name: str, address: str, *, is_locked_out: bool) -> None:
    """Count a failed sign-in under a known name; an unknown name is not stored (it may be a password)."""
    is_known = User.objects.filter(username=name).exists()
    verb, reason = ("lock_out", "too many attempts") if is_locked_out else ("sign_in", "wrong name or password")
    refusal_counter.record_refusal(address, verb, f"user:{name}" if is_known else "user:?", reason=reason)


def sign_out(user: User, *, end: Callable[[], None]) -> None:
    """Audit a sign-out in the transaction in which `end` removes the session; its sockets close."""
    with audited_action(user, "sign_out", f"user:{user.username}") as principal:
        end()
        chain.add_entry(principal, "sign_out", f"user:{user.username}")
        revoked()


def set_password(by: Who, name: str, password: str) -> User:
    """Set a person's password: one's own, or another's as an admin. Every session of that person ends.

    The caller's own session continues if the view stores the new hash in it. Raises Invalid.
    """
    user = _active_user(name)
    user.set_password(fit_password(user, password))  # slow by design: outside the transaction
    seated = seat_keys(user)
    with audited_action(by, "set_password", f"user:{name}") as principal:
        _require_own(by, name)
        User.objects.filter(pk=user.pk).update(password=user.password)
        user.session_salt = end_sessions(user, seated)
        chain.add_entry(principal, "set_password", f"user:{name}")
        revoked()
    return user


def sign_out_everywhere(by: Who, name: str) -> User:
    """End every session of a person and void unused links: one's own, or another's as an admin."""
    user = _active_user(name)
    seated = seat_keys(user)
    with audited_action(by, "sign_out_everywhere", f"user:{name}") as principal:
        _require_own(by, name)
        user.session_salt = end_sessions(user, seated)
        chain.add_entry(principal, "sign_out_everywhere", f"user:{name}")
        revoked()
    return user


def end_sessions(user: User, seated: Collection[str]) -> str:
    """Change the salt in every session's hash, delete the session rows, void the links; return the new salt.

    Part of an action: call it inside `write_transaction()`, with `seat_keys` from before it. A session that began in
    between is ended by the salt, and its row is deleted when it expires.
    """
    salt = secrets.token_hex(8)
    User.objects.filter(pk=user.pk).update(session_salt=salt)
    Session.objects.filter(pk__in=seated).delete()
    SignInLink.objects.filter(user=user, used_at=None).delete()
    return salt


def fit_password(user: User, password: str) -> str:
    """Return the password if it is strong enough for `user`; else raises Invalid that says what is missing."""
    if len(set("".join(password.split()))) < MIN_DIFFERENT:
        raise Invalid(f"must have at least {MIN_DIFFERENT} different characters, not counting spaces", field="password")
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field="password") from error
    return password


def devices_of(user: User) -> Iterator[SignedInDevice]:
    """Yield where a person is signed in. Sessions hold their person in signed data, so all live ones are read."""
    for session in Session.objects.filter(expire_date__gt=timezone.now()).iterator():
        data = session.get_decoded()
        if data.get(SESSION_KEY) == str(user.pk):
            yield _seat(session.session_key, data)


def seat_keys(user: User | None) -> list[str]:
    """Return the keys of a person's sessions. All live ones are read for it, outside any transaction."""
    return [seat.key for seat in devices_of(user)] if user is not None else []


def _seat(key: str, data: Mapping[str, str]) -> SignedInDevice:
    since = data.get("since")
    return SignedInDevice(
        key, datetime.fromisoformat(since) if since else None, data.get("address", ""), data.get("browser", "")
    )


def _active_user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise NotFound(f"there is no person {name}")
    return user


def _require_own(by: Who, name: str) -> None:
    if isinstance(by, User) and by.username == name and permissions.is_active(by):
        return
    permissions.require(by, "people")
