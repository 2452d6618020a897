"""The wire form of what the hub sends (§3.5). Encoded once for all subscribers of a feed."""

import json
import struct
from collections.abc import Callable, Iterable, Sequence
from json.encoder import encode_basestring
from typing import Any

from conversations.events.log.records import Stored
from conversations.rendering.event_renderer import Fragment

MAX_EVENTS = 500  # of one frame
MAX_TEXT = 256 * 1024  # characters of one frame, unless one event is longer
LARGE = 64 * 1024  # bytes of a frame; of larger ones only a few go out in one turn of the event loop
_quoted: Callable[[str], str] = encode_basestring  # a JSON string, every character beyond ASCII as it is
OVERHEAD = 200  # bytes of a frame beside its own: two objects, three integers, a place in a ring


class Frame:
    """A prepared frame with the seqs it carries, stored as the bytes to send."""

    __slots__ = ("encoded", "first", "last")

    def __init__(self, first: int, last: int, text: str) -> None:
        self.first, self.last = first, last
        self.encoded = encode_text_frame(text.encode("utf-8", "surrogatepass"))

    @property
    def size(self) -> int:
        """The approximate size in memory, in bytes."""
        return len(self.encoded) + OVERHEAD

    @property
    def is_large(self) -> bool:
        """Return whether writing it takes long compared with the other work of a turn of the loop."""
        return len(self.encoded) > LARGE

    @property
    def message(self) -> dict[str, str]:
        """The frame as an ASGI message, for a client that cannot take bytes now. Created on each call, because few need
        it."""
        text = self.encoded[_head_size(self.encoded) :].decode("utf-8", "surrogatepass")
        return {"type": "websocket.send", "text": text}


def _head_size(frame: bytes) -> int:
    return {126: 4, 127: 10}.get(frame[1], 2)


def encode_text_frame(payload: bytes) -> bytes:
    """Return a complete server text frame: unmasked, so the bytes are the same for everybody (RFC 6455, section
    5.2)."""
    n = len(payload)
    if n < 126:
        return struct.pack("!BB", 0x81, n) + payload
    if n < 65536:
        return struct.pack("!BBH", 0x81, 126, n) + payload
    return struct.pack("!BBQ", 0x81, 127, n) + payload


def events(topic: str, epoch: str, items: Sequence[tuple[int, str]]) -> list[Frame]:
    """Pack encoded events (seq, JSON text) into frames `{t, topic, epoch, events}`."""
    head = f'{{"t":"events","topic":{json.dumps(topic)},"epoch":{json.dumps(epoch)},"events":['
    frames: list[Frame] = []
    start, size = 0, 0
    for i, (_, text) in enumerate(items):
        if i > start and (i - start >= MAX_EVENTS or size + len(text) > MAX_TEXT):
            frames.append(_frame(head, items[start:i]))
            start, size = i, 0
        size += len(text)
    if start < len(items):
        frames.append(_frame(head, items[start:]))
    return frames


def _frame(head: str, items: Sequence[tuple[int, str]]) -> Frame:
    return Frame(items[0][0], items[-1][0], head + ",".join([text for _, text in items]) + "]}")


def data(stored: Iterable[Stored]) -> list[tuple[int, str]]:
    """Encode events as `{seq, kind, at, body}`, with the stored body inserted without decoding it."""
    return [(e.seq, f'{{"seq":{e.seq},"kind":{_kind(e.kind)},"at":{e.at},"body":{e.body}}}') for e in stored]


def drawn(event: Stored, fragment: Fragment) -> str:
    """Encode one event as it was drawn: `{seq, kind, at}`, and what there is of `group`, `html` or `text`, `opens` and
    `also`."""
    item = f'{{"seq":{event.seq},"kind":{_kind(event.kind)},"at":{event.at}'
    if fragment.group:
        item += f',"group":{_quoted(fragment.group)}'
    if fragment.html is not None:
        item += f',"html":{_quoted(fragment.html)}'
    elif fragment.text:
        item += f',"text":{_quoted(fragment.text)}'
    if fragment.opens is not None:
        item += f',"opens":{_quoted(fragment.opens)}'
    if fragment.also:
        also = ",".join([f'{{"group":{_quoted(group)},"html":{_quoted(html)}}}' for group, html in fragment.also])
        item += f',"also":[{also}]'
    return item + "}"


def _kind(kind: str) -> str:
    return f'"{kind}"' if kind.isalnum() else json.dumps(kind)


def control(t: str, **fields: Any) -> str:
    """Encode any other frame, such as caught_up, reset, moved, head, rows and error."""
    return json.dumps({"t": t, **fields}, separators=(",", ":"), ensure_ascii=False)
