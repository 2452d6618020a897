"""Links that sign one person in, once. Called by pages, `manage.py signin-link` and the first start."""

from datetime import timedelta

from django.utils import timezone

from conversations.access.accounts import one_time_secret
from conversations.access.action_context import audited_action
from conversations.access.audit import chain, refusal_counter
from conversations.access.permissions import Who, principal_of
from conversations.core.errors import Conflict, NotFound, SwitchboardError
from conversations.core.write_transaction import lock_actions, write_transaction
from conversations.models import SignInLink, User

VALID_HOURS = 24  # texts say so, too
PATH = "/sign-in/link/"  # of the page; commands import no pages


def make_link(by: Who, name: str) -> str:
    """Make a link for an active person; return its secret, which is not stored. Raises NotFound, Conflict."""
    with audited_action(by, "make_link", f"user:{name}", right="people"):
        user = User.objects.filter(username=name).first()
        if user is None:
            raise NotFound(f"there is no person {name}")
        if not user.is_active:
            raise Conflict(f"the account {name} is deactivated; activate it first")
        return new_link(by, user)


def new_link(by: Who, user: User) -> str:
    """Store a new link and its audit entry. Part of an action: call it inside `write_transaction()`."""
    secret = one_time_secret.make()
    expires_at = timezone.now() + timedelta(hours=VALID_HOURS)
    SignInLink.objects.create(user=user, digest=one_time_secret.digest(secret), expires_at=expires_at)
    chain.add_entry(principal_of(by), "make_link", f"user:{user.username}")
    return secret


def use_link(secret: str, *, address: str) -> User:
    """Use up a link and return its person. Signing in is the caller's next step.

    Raises NotFound for an unknown link and Conflict for one that was used or has expired; both are counted.
    """
    now, digest = timezone.now(), one_time_secret.digest(secret)
    with write_transaction():
        lock_actions()
        good = SignInLink.objects.filter(digest=digest, used_at=None, expires_at__gt=now, user__is_active=True)
        if good.update(used_at=now):
            user = SignInLink.objects.select_related("user").get(digest=digest).user
            chain.add_entry(principal_of(user), "use_link", f"user:{user.username}")
            return user
    link = SignInLink.objects.select_related("user").filter(digest=digest).first()
    error = _why_not(link)
    refusal_counter.record_refusal(
        address, "use_link", f"user:{link.user.username}" if link else "user:?", reason=error.message
    )
    raise error


def _why_not(link: SignInLink | None) -> SwitchboardError:
    if link is None:
        return NotFound("This link is not valid. It may be incomplete or revoked.", code="link_unknown")
    if link.used_at:
        when = link.used_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        return Conflict(f"This link was already used at {when}. Each link works only once.", code="link_used")
    if not link.user.is_active:
        return Conflict("This link belongs to a deactivated account.", code="link_deactivated")
    return Conflict(f"This link has expired. Links are valid for {VALID_HOURS} hours.", code="link_expired")
