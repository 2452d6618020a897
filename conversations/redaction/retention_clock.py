"""The clock that retention goes by: this machine's, unless it has jumped ahead of the time that the database notes.

A machine that starts years ahead would find everything too old, and what is redacted is gone. So the job notes the time
as it passes; a clock that is further ahead of that than `MAX_STEP` is believed only once an admin has confirmed it.
"""

import time

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict
from conversations.core.micros import DAY, nearest_datetime
from conversations.core.write_transaction import write_transaction
from conversations.models import Conversation, Meta

NAME = "retention_clock"  # of the row with the newest time noted, µs UTC
MAX_STEP = 7 * DAY  # µs that may pass without a server
NOTED_EVERY = 3_600_000_000  # µs


def machine_time() -> int:
    """Return what this machine's clock says, µs UTC."""
    return time.time_ns() // 1000


def jump() -> str:
    """Return, as a sentence, that the clock has jumped ahead; empty if it has not."""
    now, noted = machine_time(), _noted()
    if now - noted <= MAX_STEP:
        return ""
    ahead = f"{(now - noted) // DAY:,} days after the newest time in the database, {_spelled_out(noted)}"
    return f"This machine's clock says {_spelled_out(now)}, {ahead}"


def follow() -> str:
    """Note the time; return `jump()` if the clock has jumped, and note nothing."""
    if sentence := jump():
        return sentence
    noted, now = _stored(), machine_time()
    if noted is None or now >= noted + NOTED_EVERY:
        _note(now)
    return ""


def require_steady() -> None:
    """Raise Conflict if the clock has jumped ahead."""
    if sentence := follow():
        raise Conflict(f"nothing was redacted: {sentence}", code="clock_jumped")


def confirm(by: Who) -> None:
    """Believe the clock as it is now."""
    with audited_action(by, "confirm_clock", "record", right="redact") as principal:
        now = machine_time()
        facts = {"noted": _noted(), "now": now}
        _note(now)
        chain.add_entry(principal, "confirm_clock", "record", correlation=facts)


def _noted() -> int:
    """Return the newest time noted; at first that of the newest event, so that an upgrade is no gap."""
    noted, now = _stored(), machine_time()
    if noted is None:
        newest = Conversation.objects.visible().newest_first().values_list("last_at", flat=True).first()
        noted = min(newest or now, now)
    return noted


def _stored() -> int | None:
    value = Meta.objects.filter(name=NAME).values_list("value", flat=True).first()
    return None if value is None else int(value)


def _spelled_out(at: int) -> str:
    return f"{nearest_datetime(at):%d %B %Y, %H:%M} UTC"


def _note(now: int) -> None:
    with write_transaction():
        Meta.objects.update_or_create(name=NAME, defaults={"value": str(now)})
