"""Links that sign one person in, once. Called by pages, `manage.py signin-link` and the first start."""

from datetime import timedelta

from django.utils import timezone

from conversations import audit, refusals
from conversations.actions import secret
from conversations.actions.acting import acting
from conversations.errors import Conflict, NotFound, SwitchboardError
from conversations.log.writing import take_turn, writing
from conversations.models import SignInLink, User
from conversations.rights import Who, principal_of

LIFE = timedelta(hours=24)


def make_link(by: Who, name: str) -> str:
    """Make a link for an active person; answer its secret, which is not kept. Raises `NotFound`, `Conflict`."""
    with acting(by, "make_link", f"user:{name}", right="people"):
        user = User.objects.filter(username=name).first()
        if user is None:
            raise NotFound(f"nobody is called {name}")
        if not user.is_active:
            raise Conflict(f"{name} is deactivated; activate first")
        return new_link(by, user)


def new_link(by: Who, user: User) -> str:
    """Store a new link and its audit entry. Part of an action: call it inside `writing()`."""
    words = secret.make()
    SignInLink.objects.create(user=user, digest=secret.digest(words), expires_at=timezone.now() + LIFE)
    audit.enter(principal_of(by), "make_link", f"user:{user.username}")
    return words


def use_link(words: str, *, address: str) -> User:
    """Use a link up and answer its person. The sign-in itself is the caller's next step.

    Raises `NotFound` for an unknown link and `Conflict` for one that was used or is too old; both are counted.
    """
    now, digest = timezone.now(), secret.digest(words)
    with writing():
        take_turn()
        good = SignInLink.objects.filter(digest=digest, used_at=None, expires_at__gt=now, user__is_active=True)
        if good.update(used_at=now):
            user = SignInLink.objects.select_related("user").get(digest=digest).user
            audit.enter(principal_of(user), "use_link", f"user:{user.username}")
            return user
    link = SignInLink.objects.select_related("user").filter(digest=digest).first()
    error = _why_not(link)
    refusals.count(address, "use_link", f"user:{link.user.username}" if link else "user:?", reason=error.message)
    raise error


def _why_not(link: SignInLink | None) -> SwitchboardError:
    if link is None:
        return NotFound(
            "This link is not known here. Perhaps it was copied in part, or withdrawn.", code="link_unknown"
        )
    if link.used_at:
        when = link.used_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        return Conflict(f"This link was used already, at {when}. A link works once.", code="link_used")
    if not link.user.is_active:
        return Conflict("This link belongs to a person who is deactivated.", code="link_deactivated")
    return Conflict("This link is too old. A link works for 24 hours.", code="link_expired")
