"""How people steer conversations, as events (design 3.1): a part of the union in `kinds`. No Django."""

from typing import Literal

from conversations.kinds_base import BaseEvent, OurEvent


class _Steered(BaseEvent):
    by: str = ""
    reason: str | None = None


class Forked(_Steered):
    """A fork goes on from here: the events before are those of `parent` up to `forked_at`, copied. `by` made it.
    `changed`, where the next message is one of the parent's in other words: its seq there."""

    event: Literal["conversation.forked"]
    parent: str
    forked_at: int
    title: str = ""
    handler: str | None = None
    changed: int | None = None


class Paused(_Steered):
    """No run starts here until it is resumed; what runs ends its turn and waits. `by` did it."""

    event: Literal["conversation.paused"]


class Resumed(_Steered):
    """Runs start again, and those that were put aside go on."""

    event: Literal["conversation.resumed"]


class TakenOver(_Steered):
    """A person answers here instead of the agents: `by` is the owner."""

    event: Literal["conversation.taken_over"]


class HandedBack(_Steered):
    """The agents answer again, first what came meanwhile. `owner` had held it."""

    event: Literal["conversation.handed_back"]
    owner: str = ""


class RunStopping(OurEvent):
    """Somebody asked a run to end: after its turn (stop), or at once (cancel, which lets a call that has begun end for
    a few seconds, and abort, which does not). The run's end follows."""

    event: Literal["run.stopping"]
    run_id: str
    how: Literal["stop", "cancel", "abort"]
    by: str = ""
    reason: str | None = None
