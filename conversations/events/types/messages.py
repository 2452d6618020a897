"""What people and agents say: envelopes, streamed answers, typed words."""

from typing import Any, Literal

from conversations.events.event_type import Lane, Row, Search, event_type
from conversations.events.projections import messages
from conversations.events.types.base import BaseEvent, Envelope, RunEvent


@event_type(
    Row(view="message"), fold=messages.message, level="chat", lane=Lane(), search=Search(filter="Messages"),
    traits={"speech", "agent_input", "copied", "tools_may_publish", "remembered", "outlined"},
)  # fmt: skip
class ChatMessage(Envelope):
    """An envelope that says something."""

    event: Literal["message"] = "message"


@event_type(Row(view="control"), fold=messages.control, level="steps", lane=Lane("control"), traits={"copied"})
class ControlMessage(Envelope):
    """An envelope with a control action."""

    event: Literal["control"] = "control"


@event_type(
    Row(template="token"),
    level="chat",
    state="running",
    lane=Lane(),
    search=Search(is_indexed=False),
    traits={"tools_may_publish", "unsigned", "leaves_state"},
)
class StreamedToken(RunEvent):
    """A piece of an answer while it is written; `index` restarts each turn. Pieces up to `last_index` may be joined;
    `lengths` then says how many characters each of them has, where a client of the responses API is told each.
    `thoughts`: how many reasoning items of the answer come right before its message."""

    event: Literal["token"] = "token"
    text: str
    index: int
    last_index: int | None = None
    phase: str | None = None
    thoughts: int | None = None
    lengths: list[int] | None = None


@event_type(
    Row(view="output"), fold=messages.output, level="chat", lane=Lane(),
    search=Search(label="answer", filter="Agent answers"),
    traits={"speech", "copied", "tools_may_publish", "remembered", "unsigned", "leaves_state"},
)  # fmt: skip
class FinalOutput(RunEvent):
    """The final text of a turn; its tokens were the preview. `is_partial`: it was broken off; `refusal`: the model
    would not answer; `thoughts`: how many reasoning items of the answer come right before it."""

    event: Literal["output"] = "output"
    text: str
    final: bool = False
    phase: str | None = None
    thoughts: int | None = None
    is_partial: bool = False
    refusal: bool = False
    usage: dict[str, Any] | None = None


@event_type(
    Row(view="user_message"), fold=messages.user_message, level="chat", lane=Lane(), speaker="user",
    traits={"speech", "agent_input", "copied", "remembered", "outlined"},
)  # fmt: skip
class UserMessage(BaseEvent):
    """What a person typed, as the stream tells it."""

    event: Literal["user_message"] = "user_message"
    sender: str | None = None
    recipient: str | None = None
    text: str | None = None
