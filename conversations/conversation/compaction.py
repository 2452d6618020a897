"""Compact a conversation for `/v1/responses/compact`: one item that stands for all of it and is accepted as input
again.

No model is asked. Every message is kept, long ones shortened; of a tool call one line: its name and the beginnings of
its arguments and output. Only the newest 64,000 characters are kept. The text is signed with this deployment's key, not
encrypted: the sender knows it, and unsigned text is rejected. Equal items give equal text.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from django.core import signing

from conversations.events.response_ids import text_of as words_of

SALT = "responses.compact"
MESSAGE, PIECE, WHOLE = 4_000, 400, 64_000  # characters of a message, of a call's parts, of all
OPENING = "Earlier in this conversation, shortened:"
_CUT = "…"

Json = Mapping[str, Any]


def item_of(items: Iterable[Json]) -> dict[str, str]:
    """Compact input and output items into one item."""
    lines: list[str] = []
    for item in items:
        lines += _lines(item)
    text = "\n".join(lines)
    text = text if len(text) <= WHOLE else _CUT + text[1 - WHOLE :]
    sealed = signing.Signer(salt=SALT).sign_object({"text": text}, compress=True)
    return {
        "type": "compaction",
        "id": f"cmp_{hashlib.sha256(sealed.encode()).hexdigest()[:32]}",
        "encrypted_content": sealed,
    }


def text_of(item: Json) -> str | None:
    """Return the text that a compaction item stands for, for a model; None if it was not made here."""
    try:
        payload = signing.Signer(salt=SALT).unsign_object(str(item.get("encrypted_content")))
    except (signing.BadSignature, ValueError):
        return None
    return f"{OPENING}\n{payload['text']}"


def _lines(item: Json) -> list[str]:
    match item.get("type"):
        case "message":
            return [f"{item.get('role')}: {_cut(words_of(item.get('content')), MESSAGE)}"]
        case "function_call":
            return [f"called {item.get('name')}: {_cut(str(item.get('arguments')), PIECE)}"]
        case "function_call_output":
            return [f"output: {_cut(words_of(item.get('output')), PIECE)}"]
        case "compaction":
            text = text_of(item)
            return [text.removeprefix(f"{OPENING}\n")] if text else []
    return []


def _cut(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + _CUT
