"""Tokens that this server issued to commands in its data directory, each `import:NAME`: kept only in memory, listed and
revoked one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from weakref import WeakValueDictionary

from django.utils import timezone

from conversations.access.action_context import audited_action, revoked
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import NotFound
from conversations.core.ids import new_id

IDLE_S = 3600.0  # seconds after which an unused one ends

_issued: WeakValueDictionary[str, CommandToken] = WeakValueDictionary()  # until nobody holds it anymore


@dataclass(eq=False, slots=True, weakref_slot=True)
class CommandToken:
    """A command's token, without its secret."""

    name: str
    id: str = field(default_factory=new_id)
    given_at: datetime = field(default_factory=timezone.now)
    used_at: datetime = field(default_factory=timezone.now)
    requests: int = 0  # under way with it, which may last for hours
    is_revoked: bool = False

    @property
    def is_live(self) -> bool:
        """Return whether it is still valid."""
        is_idle = not self.requests and timezone.now() - self.used_at >= timedelta(seconds=IDLE_S)
        return not self.is_revoked and not is_idle


def issue(name: str) -> CommandToken:
    """Return a new token; it is listed as long as a command holds it."""
    token = CommandToken(name)
    _issued[token.id] = token
    return token


def live() -> list[CommandToken]:
    """Return the valid tokens of this process, newest first."""
    issued = [token for ref in _issued.valuerefs() if (token := ref()) is not None and token.is_live]
    return sorted(issued, key=lambda token: token.given_at, reverse=True)


def revoke_command_token(by: Who, token_id: str) -> None:
    """Revoke a token at once, with the command's work in progress. Raises NotFound if it has already ended."""
    token = _issued.get(token_id)
    target = f"import:{token.name}" if token else f"command-token:{token_id[:64]}"
    with audited_action(by, "revoke_command_token", target, right="tokens") as principal:
        if token is None or not token.is_live:
            raise NotFound("this command has ended, and its token with it")
        chain.add_entry(principal, "revoke_command_token", target)
        token.is_revoked = True
        revoked()
