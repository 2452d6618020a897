"""What can go wrong between an agent and a bus, one tree.

BusError              code for programs, message for people, field where one field is at fault
├── Refused           the bus says no, and will say so again: status is HTTP's (400 to 499)
│   ├── UnknownPosition   a reader's place that the bus never gave out, or has forgotten
│   └── IdReused          the same id with another payload
├── Unreachable       nobody answers, or not now: the same call may work later; `retry_after_s` when the server said
├── SpoolFull         the server is away and the spool cannot hold more: the message is NOT kept
├── Closed            this bus was closed, or belongs to the process that made it
└── NotConfigured     `get_bus` finds no bus in the environment
"""

from __future__ import annotations


class BusError(Exception):
    """The base of all errors."""

    code = "error"

    def __init__(self, message: str, *, code: str | None = None, field: str | None = None) -> None:
        super().__init__(message)
        self.message, self.field = message, field
        self.code = code or self.code


class Refused(BusError):
    """The bus rejects the message; sending it again is useless."""

    status = 400
    code = "invalid"


class UnknownPosition(Refused):
    """A reader's `last_id` is not on the topic: it was never issued, or was trimmed. Messages are never repeated or
    skipped."""

    code = "unknown_position"


class IdReused(Refused):
    """The id was already published on this topic with another payload."""

    status = 409
    code = "id_reused"


class Unreachable(BusError):
    """The server does not respond, or cannot accept messages now."""

    code = "unreachable"

    def __init__(self, message: str, *, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class SpoolFull(BusError):
    """The server is unreachable and the spool is full. Publish the same message again later: its id prevents
    duplicates."""

    code = "spool_full"


class Closed(BusError):
    """This bus was closed, or the process forked since it was made."""

    code = "closed"


class NotConfigured(BusError):
    """No bus was set and the environment names none."""

    code = "not_configured"
