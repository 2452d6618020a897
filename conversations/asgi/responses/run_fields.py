"""Read what the encoder of a response's stream needs of a run's recorded events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Annotated

import msgspec

from conversations.events import payload, response_ids
from conversations.events.log.records import Stored


class SpokenFields(msgspec.Struct, gc=False):
    """The fields that are read of a token, an output and a tool step."""

    text: str = ""
    turn: int = 0
    lengths: list[int] | None = None
    parent_call: str | None = None
    is_partial: bool = False
    refusal: bool = False
    phase: str = ""
    thoughts: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0  # each is an event of the stream
    origin: str | None = None

    @property
    def pieces(self) -> Sequence[str]:
        """The pieces that were joined, as many as there were even if the text was changed since: the numbers of what
        comes after them stay the same."""
        if not self.lengths:
            return (self.text,)
        ends = [*accumulate(self.lengths, initial=0)]
        ends[-1] = max(len(self.text), ends[-2])
        return [self.text[start:end] for start, end in pairwise(ends)]


class ApprovalFields(msgspec.Struct):
    """The fields that are read of an `approval.requested`."""

    approval_id: str = ""
    name: str = ""
    tool_call_id: str | None = None


class WaitingFields(msgspec.Struct):
    """The fields that are read of a `run.waiting`."""

    reason: str = ""
    server: str | None = None


_spoken = msgspec.json.Decoder(SpokenFields)
_approval = msgspec.json.Decoder(ApprovalFields)
_waiting = msgspec.json.Decoder(WaitingFields)


def spoken(event: Stored) -> SpokenFields:
    """Read a token, an output or a tool step."""
    try:
        return _spoken.decode(event.body)
    except msgspec.MsgspecError:  # a lone surrogate, as some models stream them
        parsed = payload.parse(event.body.encode("utf-8", "replace"))
        return SpokenFields(parsed.text or "", parsed.turn or 0)


def approval(event: Stored) -> ApprovalFields:
    """Read an `approval.requested`."""
    return _approval.decode(event.body)


def waiting(event: Stored) -> WaitingFields:
    """Read a `run.waiting`."""
    return _waiting.decode(event.body)


def is_beside_the_end(event: Stored) -> bool:
    """Return whether an event may stand between the last output and the stored answer."""
    is_step = event.kind == "tool_step"
    return event.kind == "model.turn" or (is_step and spoken(event).origin == response_ids.CLIENT_ORIGIN)
