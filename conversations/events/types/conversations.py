"""How conversations begin, and how people control them (§3.1)."""

from typing import Literal

from conversations.events.event_type import OURS, PEOPLE, PEOPLE_AND_IMPORTS, Lane, Row, Search, event_type
from conversations.events.projections import control, forks, messages, runs
from conversations.events.types.base import BaseEvent, RunEvent


class _ControlEvent(BaseEvent):
    by: str = ""
    reason: str | None = None


@event_type(
    Row(view="conversation_opened"), fold=messages.opened, authority=PEOPLE_AND_IMPORTS, author="principal",
    level="steps", lane=Lane("opened", "title"), search=Search(label="title"), traits={"names_handler"},
)  # fmt: skip
class Opened(BaseEvent):
    """A conversation begins: its title, and who handles it."""

    event: Literal["conversation.opened"] = "conversation.opened"
    title: str = ""
    handler: str | None = None
    parent: str | None = None
    forked_at: int | None = None
    demo: bool = False


@event_type(
    Row(view="conversation_forked"), fold=forks.forked, authority=PEOPLE_AND_IMPORTS, author="principal", level="chat",
    lane=Lane("forked", "reason"), traits={"names_handler"},
)  # fmt: skip
class Forked(_ControlEvent):
    """A fork goes on from here: the events before are those of `parent` up to `forked_at`, copied. `by` made it.
    `changed`, where the next message is one of the parent's in other words: its seq there."""

    event: Literal["conversation.forked"] = "conversation.forked"
    parent: str
    forked_at: int
    title: str = ""
    handler: str | None = None
    changed: int | None = None


@event_type(
    Row(view="conversation_moved"), authority=OURS, author="principal", level="chat", lane=Lane("moved to", "to"),
)  # fmt: skip
class Moved(BaseEvent):
    """A later span of a trace named its conversation: all that is told above is told in `to`, and this conversation is
    listed no more."""

    event: Literal["conversation.moved"] = "conversation.moved"
    to: str
    reason: str | None = None


@event_type(
    Row(view="handler_changed"), fold=runs.handler, authority=OURS, author="principal", level="steps",
    lane=Lane("now handles this conversation"), traits={"names_handler"},
)  # fmt: skip
class HandlerChanged(RunEvent):
    """Another agent answers what is said to the conversation from now on."""

    event: Literal["conversation.handler"] = "conversation.handler"
    handler: str


@event_type(
    Row(view="control_action", glyph="pause", words="paused: agents finish their turn and wait"),
    fold=control.paused, authority=PEOPLE, author="principal",
    level="chat", lane=Lane("paused", "reason"), done_verb="paused it",
)  # fmt: skip
class Paused(_ControlEvent):
    """No run starts here until it is resumed; what runs ends its turn and waits. `by` did it."""

    event: Literal["conversation.paused"] = "conversation.paused"


@event_type(
    Row(view="control_action", glyph="play", words="resumed: agents continue"),
    fold=control.resumed, authority=PEOPLE, author="principal",
    level="chat", lane=Lane("resumed", "reason"), done_verb="resumed it",
    traits={"wakes_worker"},
)  # fmt: skip
class Resumed(_ControlEvent):
    """Runs start again, and runs that were suspended by the pause continue."""

    event: Literal["conversation.resumed"] = "conversation.resumed"


@event_type(
    Row(view="control_action", glyph="hand", words="took over, agents paused"),
    fold=control.taken_over, authority=PEOPLE, author="principal",
    level="chat", lane=Lane("took over", "reason"), done_verb="took over",
)  # fmt: skip
class TakenOver(_ControlEvent):
    """A person answers here instead of the agents: `by` is the owner."""

    event: Literal["conversation.taken_over"] = "conversation.taken_over"


@event_type(
    Row(view="control_action", glyph="agent", words="handed control back to the agents"),
    fold=control.handed_back, authority=PEOPLE, author="principal", level="chat", lane=Lane("handed back", "reason"),
    done_verb="handed back", traits={"wakes_worker"},
)  # fmt: skip
class HandedBack(_ControlEvent):
    """The agents answer again, first what came meanwhile. `owner` had held it."""

    event: Literal["conversation.handed_back"] = "conversation.handed_back"
    owner: str = ""
