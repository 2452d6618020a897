"""What passes on the bus beside messages, and what was lost there."""

from typing import Any, Literal

from conversations.events.event_type import Lane, Row, Search, event_type
from conversations.events.types.base import BaseEvent, RunEvent


class _PassedSignal(BaseEvent):
    agent: str | None = None
    name: str | None = None
    topic: str | None = None
    message_id: str | None = None


@event_type(
    Row(view="signal_passed"),
    level="steps",
    lane=Lane("sent a signal", "topic"),
    traits={"tools_may_publish", "leaves_state"},
)
class SignalSend(_PassedSignal):
    """A signal sent."""

    event: Literal["signal_send"] = "signal_send"


@event_type(
    Row(view="signal_passed"),
    level="steps",
    lane=Lane("received a signal", "topic"),
    traits={"tools_may_publish", "leaves_state"},
)
class SignalReceive(_PassedSignal):
    """A signal received."""

    event: Literal["signal_recv"] = "signal_recv"


@event_type(
    Row(view="signal_raised"),
    level="steps",
    lane=Lane("a signal was raised"),
    traits={"tools_may_publish", "leaves_state"},
)
class Signal(BaseEvent):
    """A signal on the bus that names the conversation."""

    event: Literal["signal"] = "signal"
    sender: str | None = None
    payload: Any = None


@event_type(
    Row(view="dead_letter"), level="chat", state="failed", lane=Lane("could not be delivered"),
    search=Search(is_error=True), traits={"tools_may_publish"},
)  # fmt: skip
class DeadLetter(BaseEvent):
    """A message that an agent gave up on."""

    event: Literal["dead_letter"] = "dead_letter"
    agent: str
    envelope: dict[str, Any] = {}
    error: str | None = None


@event_type(
    Row(view="log"),
    lane=Lane("log", "message"),
    search=Search(filter="Logs"),
    traits={"tools_may_publish", "leaves_state"},
)
class Log(RunEvent):
    """A line an agent logged."""

    event: Literal["log"] = "log"
    level: str | None = None
    component: str | None = None
    message: str | None = None
    text: str | None = None


@event_type(
    Row(view="record_gap"), level="chat", state="failed", lane=Lane("Entries are missing here", "why"),
    alarm="record_gap", traits={"outlined"},
)  # fmt: skip
class Gap(BaseEvent):
    """Events that were lost before they reached the record. `lost` is None where nobody can know how many."""

    event: Literal["record.gap"] = "record.gap"
    reason: str
    why: str = ""
    topic: str = ""
    lost: int | None = None
    entry: str | None = None  # the one that could not be filed
    size: int | None = None  # its bytes
    after: str | None = None  # the last entry before, on the bus
    before: str | None = None
    since: str | None = None
    until: str | None = None
