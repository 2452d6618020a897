"""200 payloads that somebody's program may send: each is either kept as it is or refused with a reason, never a crash.

`CASES` are for every door: `payload` is the bytes of one bus message's payload, to be sent on `TOPIC`; `is_fit` says
whether the lenient reading (§3.1) keeps it. The HTTP door answers a fit one 201 and another 400 or 413; the
recorder stores a fit one and puts another into the quarantine. `LARGE` are made on demand.
"""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

CONVERSATION = "poison"
TOPIC = f"stream:{CONVERSATION}"


class Case(NamedTuple):
    """One payload, and whether it is kept."""

    name: str
    payload: bytes
    is_fit: bool


class Large(NamedTuple):
    """A payload made when it is wanted."""

    name: str
    make: Callable[[], bytes]


def message(**fields: Any) -> dict[str, Any]:
    """Return an ordinary message, with these fields on top."""
    return {
        "type": "message",
        "conversation_id": CONVERSATION,
        "sender": "agent:Poison",
        "recipient": "agent:Cook",
        "content": "taste this",
    } | fields


def compact(value: Any) -> bytes:
    """Write it as magent2 does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


GOOD = compact(message())
_OPEN = GOOD[:-1]  # without the closing brace


def _cut() -> list[Case]:
    """A write that was cut off, after every eleventh byte."""
    return [Case(f"cut after {n} bytes", GOOD[:n], False) for n in range(0, len(GOOD), 11)]


def _syntax() -> list[Case]:
    texts = {
        "single quotes": b"{'type':'message','conversation_id':'poison'}",
        "a trailing comma": _OPEN + b",}",
        "a missing comma": b'{"type":"message" "conversation_id":"poison"}',
        "a missing colon": b'{"type" "message"}',
        "a comment": _OPEN + b',/* hi */"a":1}',
        "a line comment": b"// hi\n" + GOOD,
        "bare keys": b'{type:"message",conversation_id:"poison"}',
        "python's True": _OPEN + b',"a":True}',
        "python's None": _OPEN + b',"a":None}',
        "undefined": _OPEN + b',"a":undefined}',
        "hexadecimal": _OPEN + b',"a":0x1F}',
        "a leading zero": _OPEN + b',"a":012}',
        "a leading plus": _OPEN + b',"a":+1}',
        "a bare point": _OPEN + b',"a":.5}',
        "a trailing point": _OPEN + b',"a":5.}',
        "half an exponent": _OPEN + b',"a":5e}',
        "a lone minus": _OPEN + b',"a":-}',
        "an unknown escape": _OPEN + b',"a":"\\x41"}',
        "half an escape": _OPEN + b',"a":"\\u00"}',
        "an octal escape": _OPEN + b',"a":"\\101"}',
        "a raw newline in a text": _OPEN + b',"a":"one\ntwo"}',
        "a raw tab in a text": _OPEN + b',"a":"one\ttwo"}',
        "a raw escape in a text": _OPEN + b',"a":"\x1b[31mred"}',
        "a raw NUL in a text": _OPEN + b',"a":"one\0two"}',
        "a raw NUL in the conversation's id": b'{"type":"message","conversation_id":"poi\0son"}',
        "a NUL before it": b"\0" + GOOD,
        "a NUL behind it": GOOD + b"\0",
        "only NULs": b"\0" * 64,
        "two objects": GOOD + GOOD,
        "two lines": GOOD + b"\n" + GOOD,
        "text behind it": GOOD + b" and so on",
        "a bracket too many": GOOD + b"}",
        "the wrong bracket": _OPEN + b"]",
        "an unclosed text": _OPEN + b',"a":"x}',
        "an unclosed array": _OPEN + b',"a":[1,2}',
        "a number as a key": b'{1:"message"}',
        "null as a key": b'{null:"message"}',
        "a key alone": b'{"type"}',
        "a smart quote": "{“type”:“message”}".encode(),
        "nothing": b"",
        "a space": b" ",
        "newlines": b"\n\n\n",
        "quoted twice": compact(GOOD.decode()),
        "base64": b"eyJ0eXBlIjoibWVzc2FnZSJ9",
        "a form": b"type=message&conversation_id=poison",
        "XML": b"<message><conversation_id>poison</conversation_id></message>",
        "YAML": b"type: message\nconversation_id: poison\n",
        "CSV": b"type,conversation_id\nmessage,poison\n",
        "a server-sent event": b"data: " + GOOD + b"\n\n",
        "HTTP": b"POST / HTTP/1.1\r\nHost: x\r\n\r\n" + GOOD,
        "a traceback": b'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: no',
        "python's own text": str(message()).encode(),
    }
    return [Case(name, text, False) for name, text in texts.items()]


def _bytes() -> list[Case]:
    texts = {
        "gzip": gzip.compress(GOOD, mtime=0),
        "pickle": pickle.dumps(message()),
        "UTF-16": GOOD.decode().encode("utf-16"),
        "UTF-16 without a mark": GOOD.decode().encode("utf-16-le"),
        "UTF-32": GOOD.decode().encode("utf-32"),
        "Latin-1": compact(message(content="né")).decode().encode("latin-1"),
        "a UTF-8 mark": b"\xef\xbb\xbf" + GOOD,
        "a stray continuation": _OPEN + b',"a":"\x80"}',
        "an overlong slash": _OPEN + b',"a":"\xc0\xaf"}',
        "an overlong NUL": _OPEN + b',"a":"\xc0\x80"}',
        "a cut character": _OPEN + b',"a":"\xe2\x82"}',
        "beyond Unicode": _OPEN + b',"a":"\xf4\x90\x80\x80"}',
        "five bytes": _OPEN + b',"a":"\xf8\x88\x80\x80\x80"}',
        "the byte FF": _OPEN + b',"a":"\xff"}',
        "the byte FE": b"\xfe" + GOOD,
        "a raw high surrogate": _OPEN + b',"a":"\xed\xa0\x80"}',
        "a raw low surrogate": _OPEN + b',"a":"\xed\xb0\x80"}',
        "a raw surrogate pair": _OPEN + b',"a":"\xed\xa0\xbd\xed\xb8\x80"}',
        "a raw surrogate in the conversation's id": b'{"type":"message","conversation_id":"p\xed\xa0\x80"}',
        "a raw surrogate as a key": _OPEN + b',"\xed\xa0\x80":1}',
        "every byte": bytes(range(256)),
        "a PNG": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
        "an ELF": b"\x7fELF\x02\x01\x01\x00",
        "a zip": b"PK\x03\x04\x14\x00\x00\x00",
        "msgpack": b"\x82\xa4type\xa7message\xaaconversati",
        "protobuf": b"\x0a\x07message\x12\x06poison",
    }
    return [Case(name, text, False) for name, text in texts.items()]


def _not_objects() -> list[Case]:
    texts = (
        b"null",
        b"true",
        b"false",
        b"0",
        b"-1",
        b"1.5",
        b'""',
        b'"text"',
        b"[]",
        b"[1,2]",
        b"[{}]",
        b"[" + GOOD + b"]",
    )
    return [Case(f"no object: {text[:20].decode()}", text, False) for text in texts]


def _constants() -> list[Case]:
    cases = []
    for constant in ("NaN", "Infinity", "-Infinity"):
        cases += [
            Case(f"{constant} as a field", _OPEN + f',"a":{constant}}}'.encode(), False),
            Case(f"{constant} in an array", _OPEN + f',"a":[1,{constant}]}}'.encode(), False),
            Case(f"{constant} as an index", _OPEN + f',"index":{constant}}}'.encode(), False),
            Case(f"{constant} as metadata", _OPEN + f',"metadata":{{"hop":{constant}}}}}'.encode(), False),
            Case(f"{constant} as all", constant.encode(), False),
        ]
    return cases


def _depth() -> list[Case]:
    def nested(opening: bytes, middle: bytes, closing: bytes, depth: int) -> bytes:
        return _OPEN + b',"a":' + opening * depth + middle + closing * depth + b"}"

    return [
        Case("99 objects deep", nested(b'{"a":', b"1", b"}", 99), True),
        Case("99 arrays deep", nested(b"[", b"", b"]", 99), True),
        Case("100 arrays deep within", nested(b"[", b"", b"]", 100), False),
        Case("101 objects deep", nested(b'{"a":', b"1", b"}", 101), False),
        Case("10,000 arrays deep", nested(b"[", b"", b"]", 10_000), False),
        Case("10,000 objects deep", nested(b'{"a":', b"1", b"}", 10_000), False),
        Case("10,000 of both", nested(b'[{"a":', b"1", b"}]", 5_000), False),
        Case("10,000 brackets that never close", b"[" * 10_000, False),
        Case("100,000 braces that never close", b'{"a":' * 100_000, False),
        Case("brackets in a text", compact(message(content="[" * 10_000)), True),
        Case("1,000 arrays side by side", compact(message(a=[[] for _ in range(1000)])), True),
        Case("quotes and brackets in a text", compact(message(content='\\"[{' * 500)), True),
    ]


def _hostile_names() -> list[Case]:
    names = ("__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "__class__", "__init__", "$where")
    names += ("a.b", "", " ", "\u202e", "id\u0000", "<script>")
    return [
        Case(f"a key {name!r}", compact(message(**{name: {"polluted": True}})).replace(b"\0", b"\\u0000"), True)
        for name in names
    ]


def _escapes() -> list[Case]:
    texts = {
        "an escaped high surrogate": _OPEN + b',"a":"\\ud800"}',
        "an escaped low surrogate": _OPEN + b',"a":"\\udc00"}',
        "surrogates the wrong way round": _OPEN + b',"a":"\\udc00\\ud800"}',
        "an escaped surrogate as words": b'{"type":"message","conversation_id":"poison","content":"x\\ud800y"}',
        "an escaped surrogate as sender": b'{"type":"message","conversation_id":"poison","sender":"a\\ud800"}',
        "an escaped surrogate as id": b'{"type":"message","conversation_id":"poison","id":"esc-\\ud800"}',
        "an escaped surrogate as a key": _OPEN + b',"\\ud800":1}',
        "an escaped NUL": _OPEN + b',"a":"\\u0000"}',
        "an escaped NUL as words": b'{"type":"message","conversation_id":"poison","content":"x\\u0000y"}',
        "an escaped NUL as sender": b'{"type":"message","conversation_id":"poison","sender":"a\\u0000"}',
        "an escaped NUL as id": b'{"type":"message","conversation_id":"poison","id":"nul-\\u0000"}',
        "an escaped NUL as kind": b'{"event":"odd\\u0000kind","conversation_id":"poison"}',
        "a surrogate pair": _OPEN + b',"a":"\\ud83d\\ude00"}',
    }
    return [Case(name, text, True) for name, text in texts.items()]


def _wrong_types() -> list[Case]:
    odd: dict[str, Any] = {"a number": 5, "true": True, "null": None, "an array": [1], "an object": {"a": 1}}
    fields = ("type", "sender", "content", "id", "metadata", "created_at")
    return [
        Case(f"{field} is {name}", compact(message(**{field: value})), True)
        for field in fields
        for name, value in odd.items()
    ]


def _numbers() -> list[Case]:
    digits = b"9" * 400
    return [
        Case("an integer of 400 digits", _OPEN + b',"a":' + digits + b"}", True),
        Case("an index of 400 digits", _OPEN + b',"index":' + digits + b"}", True),
        Case("a negative turn", compact(message(turn=-(10**12))), True),
        Case("an index beyond 32 bits", compact(message(index=1 << 31)), True),
        Case("a duration below zero", compact(message(event="tool_step", name="t", duration_ms=-1)), True),
        Case("a duration of an age", compact(message(event="tool_step", name="t", duration_ms=1e300)), True),
        Case("a duration of 400 digits", _OPEN + b',"event":"tool_step","duration_ms":' + digits + b"}", True),
        Case("a float beyond all", _OPEN + b',"event":"tool_step","index":1.5,"args":{"x":1e999}}', True),
        Case("an integer of 5,000 digits", _OPEN + b',"a":' + b"9" * 5_000 + b"}", True),
        Case("a token with a float beyond all", _OPEN + b',"event":"token","text":"x","a":1e999}', True),
        Case("a token with 5,000 digits", _OPEN + b',"event":"token","text":"x","a":' + b"9" * 5_000 + b"}", True),
        Case("a kind of 1,000 characters", compact(message(event="k" * 1000)), True),
        Case("an id of 10,000 characters", compact(message(id="i" * 10_000)), True),
        Case("a sender of 10,000 characters", compact(message(sender="s" * 10_000)), True),
        Case("a conversation's id of 201 characters", compact(message(conversation_id="c" * 201)), False),
        Case("10,000 keys", compact(message(**{f"k{n}": n for n in range(10_000)})), True),
        Case("the same key twice", _OPEN + b',"content":"again"}', True),
        Case("spaces everywhere", b"  " + GOOD.replace(b":", b" : ") + b"  ", True),
    ]


CASES: list[Case] = [
    *_cut(),
    *_syntax(),
    *_bytes(),
    *_not_objects(),
    *_constants(),
    *_depth(),
    *_hostile_names(),
    *_escapes(),
    *_wrong_types(),
    *_numbers(),
]

LARGE: list[Large] = [
    Large(
        "one byte over 1 MiB",
        lambda: compact(message(content=""))[:-2] + b"x" * ((1 << 20) + 1 - len(compact(message(content="")))) + b'"}',
    ),
    Large("8 MiB of words", lambda: compact(message(content="w" * (8 << 20)))),
    Large("50 MiB of words", lambda: compact(message(content="w" * (50 << 20)))),
    Large("50 MiB of brackets", lambda: b"[" * (50 << 20)),
]
