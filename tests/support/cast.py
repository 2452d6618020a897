"""The cast of every test: one person per role, one without any, and a stranger who is nobody here."""

from datetime import timedelta

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from django.utils.crypto import get_random_string

from conversations.core.write_transaction import write_transaction
from conversations.models import AuditEntry, Role, User

CAST = {"vera": "viewer", "otto": "operator", "april": "approver", "audrey": "auditor", "ada": "admin", "nora": ""}
STRANGER = AnonymousUser()
PASSWORD = "correct horse battery"


def person(name: str, *roles: str) -> User:
    """Make a person with these roles, who has no password."""
    user = User.objects.create(username=name)
    Role.objects.bulk_create(Role(user=user, name=role) for role in roles)
    return user


def cast() -> dict[str, User]:
    """Make everybody, by role, by two statements; `""` is the person without any."""
    made = {role: User(username=name) for name, role in CAST.items()}
    for user in made.values():
        user.set_unusable_password()
    User.objects.bulk_create(made.values())
    Role.objects.bulk_create(Role(user=user, name=role) for role, user in made.items() if role)
    return made


def client_of(user: User | None = None) -> Client:
    """Return a browser of this person, signed in; nobody's when none is given."""
    client = Client(headers={"Host": "127.0.0.1:8000"}, raise_request_exception=False)
    if user:
        client.cookies[settings.SESSION_COOKIE_NAME] = _session_of(user)
    return client


def _session_of(user: User) -> str:
    """Write the session that `force_login` writes and return its key: by one statement instead of a dozen, as a run
    signs in thousands of times.
    """
    facts = {
        SESSION_KEY: str(user.pk),
        BACKEND_SESSION_KEY: "django.contrib.auth.backends.ModelBackend",
        HASH_SESSION_KEY: user.get_session_auth_hash(),
    }
    until = timezone.now() + timedelta(seconds=settings.SESSION_COOKIE_AGE)
    with write_transaction():
        row = Session.objects.create(
            session_key=get_random_string(32), session_data=Session.objects.encode(facts), expire_date=until
        )
    return str(row.session_key)


def last_entry() -> AuditEntry:
    """Return the newest entry of the audit log."""
    return AuditEntry.objects.latest("seq")


def audit_summary(entry: AuditEntry) -> tuple[str, str, str, str]:
    """Return who did what to whom, and how it ended."""
    return entry.principal, entry.verb, entry.target, entry.outcome
