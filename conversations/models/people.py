"""People, their roles, their grants, their sign-in links, and bearer tokens."""

import secrets
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac

ROLES = ("viewer", "operator", "approver", "auditor", "admin")


def _new_salt() -> str:
    return secrets.token_hex(8)


class UserManager(BaseUserManager["User"]):
    """Looks people up by name."""

    def create(self, **fields: object) -> "User":
        """Create an account; without a password only a sign-in link lets its person in."""
        password = fields.pop("password", None)
        user = self.model(**fields)
        user.set_password(password) if isinstance(password, str) else user.set_unusable_password()
        user.save(using=self._db)
        return user


class User(AbstractBaseUser):
    """A person who may sign in. `session_salt` changes to sign out everywhere."""

    username = models.CharField(max_length=150, unique=True)
    is_active = models.BooleanField(default=True)
    session_salt = models.CharField(max_length=16, default=_new_salt)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = UserManager()
    USERNAME_FIELD = "username"

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        value = f"{self.password}\0{self.session_salt}"
        return salted_hmac("conversations.User.session", value, secret=secret, algorithm="sha256").hexdigest()

    @property
    def role_names(self) -> frozenset[str]:
        """Return the roles held; one query the first time."""
        if not hasattr(self, "_role_names"):
            self._role_names = frozenset(self.roles.values_list("name", flat=True))
        return self._role_names

    def __str__(self) -> str:
        return self.username


class Role(models.Model):
    """One role of one person (§3.7); a person may hold several."""

    user = models.ForeignKey(User, models.CASCADE, related_name="roles", db_index=False)
    name = models.CharField(max_length=10, choices=[(role, role) for role in ROLES])

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="role_once")]


class GrantQuerySet(models.QuerySet["Grant"]):
    """Queries of permissions and pages."""

    def live(self, now: datetime | None = None) -> "GrantQuerySet":
        """Keep grants that have not expired."""
        return self.filter(models.Q(until=None) | models.Q(until__gt=now or timezone.now()))


class Grant(models.Model):
    """What an admin allows one person beyond their roles (§3.7). Tokens have none."""

    user = models.ForeignKey(User, models.CASCADE, related_name="grants", db_index=False)
    what = models.CharField(max_length=10, help_text="speak_as or replay")
    target = models.CharField(
        max_length=401, help_text="speak_as: agent:NAME or system; replay: a tool's qualified name; *: all of them"
    )
    granted_by = models.CharField(max_length=160)
    granted_at = models.DateTimeField()
    until = models.DateTimeField(null=True)

    objects = GrantQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "what", "target"], name="grant_once")]

    def is_over(self, now: datetime | None = None) -> bool:
        """Return whether the grant has expired: it has no effect, but stays listed until someone revokes it."""
        return self.until is not None and self.until <= (now or timezone.now())


class SignInLink(models.Model):
    """A link that signs one person in, once. Only the digest of its secret is stored."""

    user = models.ForeignKey(User, models.CASCADE, related_name="links")
    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)


class TokenQuerySet(models.QuerySet["Token"]):
    """Queries of pages."""

    def live(self) -> "TokenQuerySet":
        """Keep valid tokens, newest first."""
        return self.filter(revoked_at=None).order_by("-created_at", "name")

    def revoked(self) -> "TokenQuerySet":
        """Keep revoked tokens, the last revoked first."""
        return self.filter(revoked_at__isnull=False).order_by("-revoked_at", "name")

    def matching(self, text: str) -> "TokenQuerySet":
        """Keep tokens whose name or agent contains this text; an empty text keeps all."""
        return self.filter(models.Q(name__icontains=text) | models.Q(agent__icontains=text)) if text else self


class Token(models.Model):
    """A bearer token, stored as a hash. `agent` is set for a token that speaks for an agent, and for a telemetry token:
    what either publishes grants no agent access."""

    name = models.CharField(max_length=150, unique=True)
    role = models.CharField(max_length=10)
    agent = models.CharField(max_length=200, default="")
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.CharField(max_length=160)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    objects = TokenQuerySet.as_manager()

    is_authenticated = True  # as `request.user` of a page read by a program

    @property
    def role_names(self) -> frozenset[str]:
        """Return the single role held; none if revoked."""
        return frozenset() if self.revoked_at else frozenset({self.role})
