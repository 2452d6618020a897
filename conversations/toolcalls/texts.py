"""Words in what calls were asked and answered: a test of one call's events, and of the messages around it.

It looks into the stored text of each call that is walked past, so it is always within the bounds of a walk; what a
body has escaped (`\\u00e9`) is not found.
"""

from collections.abc import Sequence
from typing import Any

NEAR = 12  # events before and after a call whose messages count as around it
SAYING = ("message", "output", "user_message")


def matching(words: Sequence[str], where: str) -> tuple[str, tuple[Any, ...]]:
    """Answer the SQL that every word is in the call's steps, or with `around` in those or one message near it."""
    said = " AND ".join(["UPPER(e.body) LIKE UPPER(%s) ESCAPE '!'"] * len(words))
    patterns = tuple(f"%{_escaped(word)}%" for word in words)
    sql = (
        "EXISTS (SELECT 1 FROM conversations_event e WHERE e.conversation_id=t.conversation_id"
        f" AND e.seq IN (t.called_seq,t.finished_seq) AND {said})"
    )
    if where != "around":
        return sql, patterns
    kinds = ",".join(["%s"] * len(SAYING))
    near = (
        "EXISTS (SELECT 1 FROM conversations_event e WHERE e.conversation_id=t.conversation_id"
        f" AND e.seq BETWEEN t.called_seq-{NEAR} AND t.called_seq+{NEAR} AND e.kind IN ({kinds}) AND {said})"
    )
    return f"({sql} OR {near})", (*patterns, *SAYING, *patterns)


def _escaped(word: str) -> str:
    return word.replace("!", "!!").replace("%", "!%").replace("_", "!_")
