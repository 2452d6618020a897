"""Addresses on a bus: `prefix:suffix`. The rule is the library's; the record and every bus ask it."""

from __future__ import annotations

import re
from functools import lru_cache

from switchboard.errors import Refused

POSTED = ("chat", "control", "signal", "dlq")  # whose messages are kept one by one
PREFIXES = ("stream", *POSTED)
MAX_SUFFIX = 200  # characters of a suffix: a conversation's id or an agent's name
MAX_REMEMBERED = 256  # characters of a topic that may be right: the judgement of a longer one is not kept
_UNFIT = re.compile("[\0\ud800-\udfff]")


def fault(topic: str) -> str | None:
    """Return what is wrong with a topic; None when it is right."""
    if len(topic) > MAX_REMEMBERED:
        return _fault(topic)
    return _known_fault(topic)


def _fault(topic: str) -> str | None:
    prefix, mark, suffix = topic.partition(":")
    is_right = (
        prefix in PREFIXES and mark and suffix.strip() and len(suffix) <= MAX_SUFFIX and not _UNFIT.search(suffix)
    )
    if is_right:
        return None
    names = ", ".join(f"{prefix}:…" for prefix in PREFIXES)
    return f"must be {names} with 1 to {MAX_SUFFIX} characters after the colon; got {topic[:80]!r}"


_known_fault = lru_cache(4096)(_fault)  # the same few topics come again and again


def recipient_of(text: str) -> tuple[str, str]:
    """Read `chat:{conversation}` or `agent:{Name}`: answer the kind and the name. Raises ValueError for another one."""
    kind, _, name = text.strip().partition(":")
    if kind not in ("chat", "agent") or not name.strip():
        raise ValueError(f"recipient must be chat:{{conversation_id}} or agent:{{Name}}; got {text!r}")
    return kind, name.strip()


def of_message(conversation: str, name: str) -> list[str]:
    """Return where a message goes: always to its conversation's chat, and to its agent's, once each (§3.3)."""
    return list(dict.fromkeys([f"chat:{conversation}", f"chat:{name}"]))


def check(topic: str) -> None:
    """Raise `Refused` for a topic that no bus takes."""
    if wrong := fault(topic):
        raise Refused(wrong, field="topic")
