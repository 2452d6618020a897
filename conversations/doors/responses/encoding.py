"""A run's events, as the record has them → the events of a response's stream. One encoder a response.

Text comes as deltas while it is written and is closed by its turn's output. At the end the stored answer is the truth:
what of it was not streamed is streamed then, what was streamed and is not in it is closed as incomplete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from conversations import envelopes, responses
from conversations.actions.responses import Received
from conversations.doors.responses import resource
from conversations.log.events import Stored
from conversations.responses import Json

_encode = msgspec.json.Encoder().encode


class Frame(NamedTuple):
    """One event of the stream: its type, and itself as JSON."""

    kind: str
    data: bytes


Frames = list[Frame]


class Said(msgspec.Struct, gc=False):
    """What is read of a token and of an output."""

    text: str = ""
    turn: int = 0
    parent_call: str | None = None
    is_partial: bool = False
    refusal: bool = False


class Step(msgspec.Struct):
    """What is read of a tool step."""

    name: str = ""
    origin: str | None = None
    status: str | None = None
    tool_call_id: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")
    args_raw: str | None = None
    parent_call: str | None = None


class Message:
    """A message that is being written."""

    __slots__ = ("head", "id", "index", "place", "sent", "turn")

    def __init__(self, id_: str, index: int, turn: int | None) -> None:
        self.id, self.index, self.turn = id_, index, turn
        self.sent: list[str] = []
        self.place = f'"item_id":"{id_}","output_index":{index},"content_index":0'
        self.head = f',{self.place},"delta":'.encode()


_said = msgspec.json.Decoder(Said)
_step = msgspec.json.Decoder(Step)
_DELTA = "response.output_text.delta"
_DELTA_HEAD = b'{"type":"response.output_text.delta","sequence_number":%d'
_DELTA_TAIL = b',"logprobs":[]}'


class Encoder:
    """Knows what of a response was told so far."""

    def __init__(self, received: Received) -> None:
        self._received = received
        self._sequence = 0
        self._index = 0  # of the next item
        self._open: dict[str, Message] = {}
        self._writing: dict[int | None, Message] = {}  # those of them that a turn writes
        self._closed: set[str] = set()
        self._uses: dict[str, int] = {}
        self._has_begun = False
        self.final: Json | None = None  # the response, once it is over

    def begin(self) -> Frames:
        """Say that it is there; and that it waits, where it does."""
        if not self._received.must_wait:
            return [self._whole("response.created", resource.resource(self._received, "in_progress"))]
        waiting = resource.resource(self._received, "queued")
        return [self._whole("response.created", waiting), self._whole("response.queued", waiting)]

    def take(self, event: Stored) -> Frames:
        """Answer what an event of the conversation makes of the stream; most make nothing."""
        if event.run != self._received.run or self.final is not None:
            return []
        if (rule := _RULES.get(event.kind)) is not None:
            return rule(self, event)
        if (final := resource.ending(self._received, event)) is not None:
            return self.end(final)
        return []

    def end(self, final: Json) -> Frames:
        """End the stream by the whole response."""
        self.final = final
        frames: Frames = []
        for item in final["output"]:
            frames += self._rest(item)
        for message in list(self._open.values()):
            frames += self._close(message, "".join(message.sent), "incomplete")
        kind = final["status"] if final["status"] in ("completed", "incomplete") else "failed"
        return [*frames, self._whole(f"response.{kind}", final)]

    def error(self, body: Json) -> Frame:
        """Tell an error of the stream itself."""
        return self._whole("error", body, name="error")

    def _started(self, _: Stored) -> Frames:
        if self._has_begun:
            return []
        self._has_begun = True
        return [self._whole("response.in_progress", resource.resource(self._received, "in_progress"))]

    def _token(self, event: Stored) -> Frames:
        said = _read(event)
        if said.parent_call is not None or not said.text:
            return []
        message = self._writing.get(said.turn)
        if message is not None:
            return [self._delta(message, said.text)]
        id_ = responses.message_item_id(self._received.response, said.turn)
        if id_ in self._closed:
            return []
        frames, message = self._begin(id_, said.turn)
        return [*frames, self._delta(message, said.text)]

    def _output(self, event: Stored) -> Frames:
        said = _read(event)
        id_ = responses.message_item_id(self._received.response, said.turn)
        message = self._open.get(id_)
        if said.parent_call is not None or id_ in self._closed or (message is None and not said.text):
            return []
        status = "incomplete" if said.is_partial else "completed"
        if said.refusal and message is None:
            content = [{"type": "refusal", "refusal": said.text}]
            return self._rest({"type": "message", "id": id_, "status": status, "role": "assistant", "content": content})
        frames: Frames = []
        if message is None:
            frames, message = self._begin(id_, said.turn)
        return frames + self._close(message, said.text, status)

    def _tool_step(self, event: Stored) -> Frames:
        """Tell a call that is the client's to answer; those that run here are not told."""
        step = _step.decode(event.body)
        is_call = step.origin == "external" and step.status is None
        if not is_call or step.parent_call is not None or not step.tool_call_id:
            return []
        nth = self._uses[step.tool_call_id] = self._uses.get(step.tool_call_id, 0) + 1
        arguments = step.args_raw if step.args_raw is not None else bytes(step.args).decode()
        item: Json = {"type": "function_call", "status": "completed", "name": step.name, "arguments": arguments}
        item["id"] = responses.call_item_id(self._received.response, step.tool_call_id, nth)
        return self._rest(item | {"call_id": step.tool_call_id})

    def _begin(self, id_: str, turn: int | None = None) -> tuple[Frames, Message]:
        """Open a message and its one part."""
        message = self._open[id_] = self._writing[turn] = Message(id_, self._next(), turn)
        item = {"type": "message", "id": id_, "status": "in_progress", "role": "assistant", "content": []}
        part = _encode(_part("")).decode()
        return [
            self._item("added", message.index, item),
            self._made("response.content_part.added", f'{message.place},"part":{part}'),
        ], message

    def _delta(self, message: Message, text: str) -> Frame:
        message.sent.append(text)
        sequence, self._sequence = self._sequence, self._sequence + 1
        return Frame(_DELTA, b"".join((_DELTA_HEAD % sequence, message.head, _encode(text), _DELTA_TAIL)))

    def _close(self, message: Message, text: str, status: str, item: Json | None = None) -> Frames:
        """Close a message with its whole text, told first as far as it was not yet."""
        del self._open[message.id], self._writing[message.turn]
        self._closed.add(message.id)
        sent = "".join(message.sent)
        rest = text[len(sent) :] if text.startswith(sent) else ""
        frames = [self._delta(message, rest)] if rest else []
        part = _part(text)
        whole = item or {"type": "message", "id": message.id, "status": status, "role": "assistant", "content": [part]}
        encoded = _encode(text).decode()
        return [
            *frames,
            self._made("response.output_text.done", f'{message.place},"text":{encoded},"logprobs":[]'),
            self._made("response.content_part.done", f'{message.place},"part":{_encode(part).decode()}'),
            self._item("done", message.index, whole),
        ]

    def _rest(self, item: Json) -> Frames:
        """Tell an item of the whole answer as far as it was not told yet."""
        id_, kind = str(item.get("id")), item.get("type")
        text = _only_text(item)
        if id_ in self._closed:
            return []
        if (message := self._open.get(id_)) is not None:
            return self._close(message, text or "", str(item.get("status")), item if text is not None else None)
        if kind == "message" and text is not None:
            frames, message = self._begin(id_)
            return frames + self._close(message, text, str(item.get("status")), item)
        self._closed.add(id_)
        index = self._next()
        if kind == "function_call":
            return self._call(item, index)
        if kind == "message" and (refusal := _only_refusal(item)) is not None:
            return self._refused(item, index, refusal)
        return [self._item("added", index, item), self._item("done", index, item)]

    def _call(self, item: Json, index: int) -> Frames:
        place, arguments = f'"item_id":"{item["id"]}","output_index":{index}', _encode(item["arguments"]).decode()
        kind = "response.function_call_arguments"
        return [
            self._item("added", index, item | {"arguments": "", "status": "in_progress"}),
            self._made(f"{kind}.delta", f'{place},"delta":{arguments}'),
            self._made(f"{kind}.done", f'{place},"arguments":{arguments}'),
            self._item("done", index, item),
        ]

    def _refused(self, item: Json, index: int, text: str) -> Frames:
        place, refusal = f'"item_id":"{item["id"]}","output_index":{index},"content_index":0', _encode(text).decode()
        empty, whole = (_encode({"type": "refusal", "refusal": said}).decode() for said in ("", text))
        return [
            self._item("added", index, item | {"content": [], "status": "in_progress"}),
            self._made("response.content_part.added", f'{place},"part":{empty}'),
            self._made("response.refusal.delta", f'{place},"delta":{refusal}'),
            self._made("response.refusal.done", f'{place},"refusal":{refusal}'),
            self._made("response.content_part.done", f'{place},"part":{whole}'),
            self._item("done", index, item),
        ]

    def _item(self, what: str, index: int, item: Json) -> Frame:
        told = f'"output_index":{index},"item":{_encode(item).decode()}'
        return self._made(f"response.output_item.{what}", told)

    def _whole(self, kind: str, value: Json, *, name: str = "response") -> Frame:
        return self._made(kind, f'"{name}":{_encode(value).decode()}')

    def _made(self, kind: str, fields: str) -> Frame:
        sequence, self._sequence = self._sequence, self._sequence + 1
        return Frame(kind, f'{{"type":"{kind}","sequence_number":{sequence},{fields}}}'.encode())

    def _next(self) -> int:
        index, self._index = self._index, self._index + 1
        return index


def _read(event: Stored) -> Said:
    try:
        return _said.decode(event.body)
    except msgspec.MsgspecError:  # half a character, as some models stream them
        said = envelopes.read(event.body.encode("utf-8", "replace"))
        return Said(said.text or "", said.turn or 0)


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _only_text(item: Json) -> str | None:
    """Answer a message's text where that is all it holds."""
    part = _only_part(item)
    return part["text"] if part.get("type") == "output_text" and not part.get("annotations") else None


def _only_refusal(item: Json) -> str | None:
    part = _only_part(item)
    return part["refusal"] if part.get("type") == "refusal" else None


def _only_part(item: Json) -> Json:
    content: Any = item.get("content")
    is_one = item.get("type") == "message" and isinstance(content, list) and len(content) == 1
    return content[0] if is_one else {}


_RULES: dict[str, Callable[[Encoder, Stored], Frames]] = {
    "run.started": Encoder._started,
    "token": Encoder._token,
    "output": Encoder._output,
    "tool_step": Encoder._tool_step,
}
