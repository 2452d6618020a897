"""People and their roles. Called by `/people/`, `manage.py user` and the first start."""

import re
import unicodedata
from collections.abc import Collection

from django.db import IntegrityError, transaction

from conversations.access.accounts.sign_in import end_sessions, fit_password, seat_keys
from conversations.access.accounts.sign_in_links import new_link
from conversations.access.action_context import audited_action, revoked
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import letter_case
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import lock_actions, write_transaction
from conversations.models import Role, User
from conversations.models.people import ROLES

_NAME = re.compile(r"\w[\w.@+-]{0,149}")
OWNER = "owner"


def create_person(by: Who, name: str, roles: Collection[str], *, password: str = "") -> User:
    """Create an account; without a password its person signs in by link. Raises Invalid, and Conflict if the name is
    taken."""
    name, held = _fit_name(name), _checked_roles(roles)
    user = User(username=name)
    user.set_password(fit_password(user, password)) if password else user.set_unusable_password()
    with audited_action(by, "create_person", _target(name), right="people") as principal:
        if _is_taken(name):
            raise Conflict(f"the name {name} is taken", field="name")
        _insert(user)
        Role.objects.bulk_create(Role(user=user, name=role) for role in held)
        chain.add_entry(
            principal, "create_person", _target(name), after=chain.digest(held), correlation={"roles": held}
        )
    return user


def set_roles(by: Who, name: str, roles: Collection[str], *, expected: Collection[str] | None = None) -> User:
    """Set a person's roles.

    `expected` is what the form showed: raises Conflict if someone changed them since, and if the last active admin
    would lose the role.
    """
    held = _checked_roles(roles)
    with audited_action(by, "set_roles", _target(name), right="people") as principal:
        user = _locked(name)
        before = sorted(user.roles.values_list("name", flat=True))
        if expected is not None and before != sorted(expected):
            raise _beaten("set_roles", name, f"the roles of {name} are now {', '.join(before) or 'none'}")
        if "admin" in before and "admin" not in held:
            _keep_an_admin(user)
        if before == held:
            return user
        user.roles.exclude(name__in=held).delete()
        Role.objects.bulk_create((Role(user=user, name=role) for role in held), ignore_conflicts=True)
        change = {"roles_before": before, "roles": held}
        old, new = chain.digest(before), chain.digest(held)
        chain.add_entry(principal, "set_roles", _target(name), before=old, after=new, correlation=change)
        revoked()
    return user


def deactivate(by: Who, name: str) -> None:
    """Deactivate an account at once: sessions end, links become invalid. Raises Conflict for the last admin, or if
    already done."""
    seated = seat_keys(User.objects.filter(username=name).first())
    with audited_action(by, "deactivate", _target(name), right="people") as principal:
        user = _locked(name)
        _keep_an_admin(user)
        if not User.objects.filter(pk=user.pk, is_active=True).update(is_active=False):
            raise _beaten("deactivate", name, f"the account {name} is already deactivated")
        end_sessions(user, seated)
        chain.add_entry(principal, "deactivate", _target(name))
        revoked()


def activate(by: Who, name: str) -> None:
    """Let a deactivated person sign in again. Raises Conflict if already active."""
    with audited_action(by, "activate", _target(name), right="people") as principal:
        user = _locked(name)
        if not User.objects.filter(pk=user.pk, is_active=False).update(is_active=True):
            raise _beaten("activate", name, f"the account {name} is already active")
        chain.add_entry(principal, "activate", _target(name))


def first_owner() -> str | None:
    """Return the secret of a new sign-in link as long as nobody has ever signed in, else None.

    An empty database gets the person `owner` with every role; otherwise the link is for the oldest active admin.
    """
    with write_transaction():
        lock_actions()
        if User.objects.filter(last_login__isnull=False).exists():
            return None
        if not User.objects.exists():
            create_person(SYSTEM, OWNER, ROLES)
        admin = User.objects.filter(is_active=True, roles__name="admin").order_by("pk").first()
        return new_link(SYSTEM, admin) if admin else None


def spelled(name: str) -> str:
    """Return a typed name in the spelling of the accounts, which has one for letters that look the same: é is one
    character."""
    return unicodedata.normalize("NFKC", name).strip()


def _fit_name(name: str) -> str:
    name = spelled(name)
    if not _NAME.fullmatch(name):
        raise Invalid("must be 1 to 150 letters, digits or . _ @ + -, starting with a letter or digit", field="name")
    return name


def _is_taken(name: str) -> bool:
    """Return whether somebody's name differs by case at most; compared in Python, since the databases disagree on
    case."""
    folded = letter_case.fold_name(name)
    return any(letter_case.fold_name(taken) == folded for taken in User.objects.values_list("username", flat=True))


def _checked_roles(roles: Collection[str]) -> list[str]:
    if unknown := sorted(set(roles) - set(ROLES)):
        raise Invalid(f"unknown role {', '.join(unknown)}; must be one of {', '.join(ROLES)}", field="roles")
    return sorted(set(roles))


def _insert(user: User) -> None:
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(f"the name {user.username} is taken", field="name") from error


def _locked(name: str) -> User:
    user = User.objects.select_for_update().filter(username=name).first()
    if user is None:
        raise NotFound(f"there is no person {name}")
    return user


def _keep_an_admin(user: User) -> None:
    """Raise Conflict for the last active admin. The admins' rows are locked, so that two cannot leave at once."""
    admins = Role.objects.select_for_update().filter(name="admin", user__is_active=True)
    if set(admins.values_list("user_id", flat=True)) == {user.pk}:
        raise Conflict(
            f"the account {user.username} is the last active admin; add another admin first", code="last_admin"
        )


def _beaten(verb: str, name: str, fact: str) -> Conflict:
    entry = chain.last(verb, _target(name))
    return Conflict(f"{fact} (changed by {entry.principal})" if entry else fact)


def _target(name: str) -> str:
    return f"user:{name}"
