"""Convert a run's recorded events to the events of a response's stream. One encoder per response.

Text is streamed as deltas while it is generated. Its message is closed after its turn's output: by the stored answer,
if that comes next, which alone says whether the message was cut. At the end the stored answer is authoritative: parts
of it that were not streamed are streamed then, and streamed parts that it does not contain are closed as incomplete.
Calls of the client's tools come from it alone: the record masks them, and shortens long ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from conversations.asgi.responses import resource, run_fields
from conversations.events import response_ids
from conversations.events.log.records import Stored
from conversations.events.response_ids import Json
from conversations.runs.responses.create import Received

_encode = msgspec.json.Encoder().encode


class StreamFrame(NamedTuple):
    """One event of the stream: its type, its JSON, and its number."""

    kind: str
    data: bytes
    number: int = 0


Frames = list[StreamFrame]


class OpenMessage:
    """A message that is being streamed."""

    __slots__ = ("head", "id", "index", "phase", "place", "sent", "turn")

    def __init__(self, id_: str, index: int, turn: int | None, phase: str = "") -> None:
        self.id, self.index, self.turn = id_, index, turn
        self.phase: Json = {"phase": phase} if phase else {}
        self.sent: list[str] = []
        self.place = f'"item_id":"{id_}","output_index":{index},"content_index":0'
        self.head = f',{self.place},"delta":'.encode()


WAITING, RESUMED = "switchboard:response.waiting", "switchboard:response.resumed"  # kinds of our own: `slug:type`
_DELTA = "response.output_text.delta"
_DELTA_HEAD = b'{"type":"response.output_text.delta","sequence_number":%d'
_DELTA_TAIL = b',"logprobs":[]}'


class Encoder:
    """Tracks what of a response was streamed.

    Events from the record are numbered from 0 without gaps, with the same numbers for every reader. An event that ends
    one reader's stream while the run continues is not in the record: it repeats the last number, so that a reader that
    resumes after that number gets the rest, with nothing repeated or left out.
    """

    def __init__(self, received: Received, starting_after: int = -1) -> None:
        """Start after the number of the reader's last event, `starting_after`; -1 for none."""
        self._received = received
        self._sequence = 0
        self._told_last = starting_after
        self._is_broken_off = False
        self._index = 0  # of the next item
        self._open: dict[str, OpenMessage] = {}
        self._writing: dict[int | None, OpenMessage] = {}  # those of them that a turn writes
        self._ended: tuple[OpenMessage, str, str] | None = None  # one to be closed, with its text and status
        self._closed: set[str] = set()
        self._thoughts: dict[str, int] = {}  # indexes of reasoning items that were added, and are not done
        self._questions: list[Json] = []  # that were asked since it last went on
        self._is_waiting = False
        self._has_begun = False
        self.final: Json | None = None  # the response, once it is over

    def begin(self) -> Frames:
        """Start the stream: the response exists; and it waits, if it does."""
        if not self._received.must_wait:
            return [self._whole("response.created", resource.resource(self._received, "in_progress"))]
        waiting = resource.resource(self._received, "queued")
        return [self._whole("response.created", waiting), self._whole("response.queued", waiting)]

    def encode(self, event: Stored) -> Frames:
        """Return the stream events for an event of the conversation; for most there are none."""
        if event.run != self._received.run or self.final is not None:
            return []
        if (rule := _RULES.get(event.kind)) is not None:
            return self._close_ended() + rule(self, event)
        if (final := resource.ending(self._received, event)) is not None:
            return self._end(final)
        return [] if run_fields.is_beside_the_end(event) else self._close_ended()

    def mark_sent(self, frames: Frames) -> None:
        """Record that these events were sent."""
        self._told_last = max(self._told_last, *(frame.number for frame in frames[-1:]), -1)

    def break_off(self, final: Json, *, error: Json | None = None, at_once: bool = False) -> Frames:
        """End this reader's stream while the run continues: with an error of the stream itself, if any, and the
        response as it then is.

        `at_once`: without closing the open messages, which would repeat their text.
        """
        self._is_broken_off = True
        frames = [] if error is None else [self._whole("error", error, name="error")]
        return frames + (self._last(final) if at_once else self._end(final))

    def _end(self, final: Json) -> Frames:
        """End the stream with the complete response."""
        frames: Frames = []
        for item in final["output"]:
            frames += self._rest(item)
        frames += self._close_ended()
        for id_, index in self._thoughts.items():
            frames.append(self._item("done", index, _thought(id_)))
        self._thoughts = {}
        for message in list(self._open.values()):
            frames += self._close(message, "".join(message.sent), "incomplete")
        return [*frames, *self._last(final)]

    def _last(self, final: Json) -> Frames:
        self.final = final
        kind = final["status"] if final["status"] in ("completed", "incomplete") else "failed"
        return [self._whole(f"response.{kind}", final)]

    def _started(self, _: Stored) -> Frames:
        if self._has_begun:
            return []
        self._has_begun = True
        return [self._whole("response.in_progress", resource.resource(self._received, "in_progress"))]

    def _approval_requested(self, event: Stored) -> Frames:
        approval = run_fields.approval(event)
        self._questions.append({"id": approval.approval_id, "tool": approval.name, "call_id": approval.tool_call_id})
        return []

    def _waits(self, event: Stored) -> Frames:
        """Return what it waits for: nothing else happens until a person, or a server, acts."""
        fields, self._is_waiting = run_fields.waiting(event), True
        body: Json = {"reason": fields.reason, "approvals": self._questions}
        body |= {"server": fields.server} if fields.server else {}
        return [self._own(WAITING, body)]

    def _resumed(self, _: Stored) -> Frames:
        was_waiting, self._is_waiting, self._questions = self._is_waiting, False, []
        return [self._own(RESUMED, {})] if was_waiting else []

    def _own(self, kind: str, body: Json) -> StreamFrame:
        received = self._received
        about = {"response_id": received.response, "conversation_id": received.conversation, "run_id": received.run}
        return self._frame(kind, _encode(about | body).decode()[1:-1])

    def _token(self, event: Stored) -> Frames:
        spoken = run_fields.spoken(event)
        if spoken.parent_call is not None or not (spoken.text or spoken.lengths):
            return []
        pieces = spoken.pieces
        message = self._writing.get(spoken.turn)
        if message is not None:
            return self._deltas(message, pieces)
        id_ = response_ids.message_item_id(self._received.response, spoken.turn)
        if id_ in self._closed:
            return []
        thoughts = self._announce(spoken)
        frames, message = self._begin(id_, spoken.turn, spoken.phase)
        return thoughts + frames + self._deltas(message, pieces)

    def _output(self, event: Stored) -> Frames:
        spoken = run_fields.spoken(event)
        id_ = response_ids.message_item_id(self._received.response, spoken.turn)
        message = self._open.get(id_)
        if spoken.parent_call is not None or id_ in self._closed or (message is None and not spoken.text):
            return []
        status = "incomplete" if spoken.is_partial else "completed"
        frames = self._announce(spoken) if message is None else []
        if spoken.refusal and message is None:
            content = [{"type": "refusal", "refusal": spoken.text}]
            item: Json = {"type": "message", "id": id_, "status": status, "role": "assistant", "content": content}
            return frames + self._rest(item)
        if message is None:
            begun, message = self._begin(id_, spoken.turn, spoken.phase)
            frames += begun
        self._ended = message, spoken.text, status
        return frames + self._rest_of_text(message, spoken.text)

    def _close_ended(self) -> Frames:
        ended, self._ended = self._ended, None
        return self._close(*ended) if ended is not None and ended[0].id in self._open else []

    def _announce(self, spoken: run_fields.SpokenFields) -> Frames:
        """Add the reasoning items before a message; what they contain is known only at the end."""
        frames: Frames = []
        for nth in range(1, spoken.thoughts + 1):
            id_ = response_ids.reasoning_item_id(self._received.response, spoken.turn, nth)
            index = self._thoughts[id_] = self._next()
            frames.append(self._item("added", index, _thought(id_)))
        return frames

    def _begin(self, id_: str, turn: int | None = None, phase: str = "") -> tuple[Frames, OpenMessage]:
        """Open a message and its one part."""
        message = self._open[id_] = self._writing[turn] = OpenMessage(id_, self._next(), turn, phase)
        item: Json = {"type": "message", "id": id_, "status": "in_progress", "role": "assistant", "content": []}
        item |= message.phase
        part = _encode(_part("")).decode()
        return [
            self._item("added", message.index, item),
            self._frame("response.content_part.added", f'{message.place},"part":{part}'),
        ], message

    def _deltas(self, message: OpenMessage, pieces: Sequence[str]) -> Frames:
        message.sent += pieces
        first, head = self._sequence, message.head
        self._sequence += len(pieces)
        return [
            StreamFrame(_DELTA, b"%b%b%b%b" % (_DELTA_HEAD % number, head, _encode(piece), _DELTA_TAIL), number)
            for number, piece in enumerate(pieces, first)
        ]

    def _rest_of_text(self, message: OpenMessage, text: str) -> Frames:
        """Return a delta that may be one reader's own, and so may have no number of its own; none for no rest."""
        sent = "".join(message.sent)
        rest = text[len(sent) :] if text.startswith(sent) else ""
        if not rest:
            return []
        message.sent.append(rest)
        number = self._number()
        data = b"%b%b%b%b" % (_DELTA_HEAD % number, message.head, _encode(rest), _DELTA_TAIL)
        return [StreamFrame(_DELTA, data, number)]

    def _close(self, message: OpenMessage, text: str, status: str, item: Json | None = None) -> Frames:
        """Close a message with its whole text, after streaming the rest of it."""
        del self._open[message.id], self._writing[message.turn]
        self._closed.add(message.id)
        frames, part = self._rest_of_text(message, text), _part(text)
        default_item: Json = {
            "type": "message",
            "id": message.id,
            "status": status,
            "role": "assistant",
            "content": [part],
        }
        whole = item or default_item | message.phase
        encoded = _encode(text).decode()
        frames += [
            self._frame("response.output_text.done", f'{message.place},"text":{encoded},"logprobs":[]'),
            self._frame("response.content_part.done", f'{message.place},"part":{_encode(part).decode()}'),
        ]
        for nth, more in enumerate(whole["content"][1:], 1):
            frames += self._refusal(whole, message.index, nth, str(more.get("refusal")))
        return [*frames, self._item("done", message.index, whole)]

    def _rest(self, item: Json) -> Frames:
        """Stream the part of an item of the complete answer that was not streamed yet."""
        id_, kind = str(item.get("id")), item.get("type")
        text = _text(item)
        if id_ in self._closed:
            return []
        if (message := self._open.get(id_)) is not None:
            if self._ended is not None and self._ended[0] is message:
                message.sent = [text or ""]  # all of it, though it was changed since: the numbers stay the same
            return self._close(message, text or "", str(item.get("status")), item if text is not None else None)
        if kind == "message" and text is not None:
            frames, message = self._begin(id_, phase=str(item.get("phase") or ""))
            return frames + self._close(message, text, str(item.get("status")), item)
        self._closed.add(id_)
        if (index := self._thoughts.pop(id_, None)) is not None:
            return [self._item("done", index, item)]
        index = self._next()
        if kind == "function_call":
            return self._call(item, index)
        if kind == "message" and (refusal := _only_refusal(item)) is not None:
            return self._refused(item, index, refusal)
        return [self._item("added", index, item), self._item("done", index, item)]

    def _call(self, item: Json, index: int) -> Frames:
        position, arguments = f'"item_id":"{item["id"]}","output_index":{index}', _encode(item["arguments"]).decode()
        kind = "response.function_call_arguments"
        return [
            self._item("added", index, item | {"arguments": "", "status": "in_progress"}),
            self._frame(f"{kind}.delta", f'{position},"delta":{arguments}'),
            self._frame(f"{kind}.done", f'{position},"arguments":{arguments}'),
            self._item("done", index, item),
        ]

    def _refused(self, item: Json, index: int, text: str) -> Frames:
        added = self._item("added", index, item | {"content": [], "status": "in_progress"})
        return [added, *self._refusal(item, index, 0, text), self._item("done", index, item)]

    def _refusal(self, item: Json, index: int, nth: int, text: str) -> Frames:
        """Return the events of the `nth` part of a message, a refusal."""
        position = f'"item_id":"{item["id"]}","output_index":{index},"content_index":{nth}'
        refusal = _encode(text).decode()
        empty, whole = (_encode({"type": "refusal", "refusal": refusal_text}).decode() for refusal_text in ("", text))
        return [
            self._frame("response.content_part.added", f'{position},"part":{empty}'),
            self._frame("response.refusal.delta", f'{position},"delta":{refusal}'),
            self._frame("response.refusal.done", f'{position},"refusal":{refusal}'),
            self._frame("response.content_part.done", f'{position},"part":{whole}'),
        ]

    def _item(self, what: str, index: int, item: Json) -> StreamFrame:
        fields = f'"output_index":{index},"item":{_encode(item).decode()}'
        return self._frame(f"response.output_item.{what}", fields)

    def _whole(self, kind: str, value: Json, *, name: str = "response") -> StreamFrame:
        return self._frame(kind, f'"{name}":{_encode(value).decode()}')

    def _frame(self, kind: str, fields: str) -> StreamFrame:
        number = self._number()
        return StreamFrame(kind, f'{{"type":"{kind}","sequence_number":{number},{fields}}}'.encode(), number)

    def _number(self) -> int:
        if self._is_broken_off:
            return max(0, self._told_last)
        number, self._sequence = self._sequence, self._sequence + 1
        return number

    def _next(self) -> int:
        index, self._index = self._index, self._index + 1
        return index


def _thought(id_: str) -> Json:
    return {"type": "reasoning", "id": id_, "summary": []}


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _text(item: Json) -> str | None:
    """Return the text of a message of one text, with or without a refusal after it."""
    part, *more = _parts(item) or [{}]
    is_text = part.get("type") == "output_text" and not part.get("annotations")
    return part["text"] if is_text and all(other.get("type") == "refusal" for other in more) else None


def _only_refusal(item: Json) -> str | None:
    part, *more = _parts(item) or [{}]
    return part["refusal"] if part.get("type") == "refusal" and not more else None


def _parts(item: Json) -> list[Json]:
    content: Any = item.get("content")
    return content if item.get("type") == "message" and isinstance(content, list) else []


_RULES: dict[str, Callable[[Encoder, Stored], Frames]] = {
    "run.started": Encoder._started,
    "run.waiting": Encoder._waits,
    "run.resumed": Encoder._resumed,
    "approval.requested": Encoder._approval_requested,
    "token": Encoder._token,
    "output": Encoder._output,
}
