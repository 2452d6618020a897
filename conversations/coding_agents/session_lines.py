"""What the parsers of session files share: a line of JSON in, events out, whether the file is complete or growing.

A parser remembers what later lines need: who speaks, which calls are open. It is the same for imports and followers, so
that both make the same events of the same lines.
"""

from collections import Counter
from typing import Any, Protocol

from conversations.coding_agents.session_events import SessionEvent, SessionSpeaker, derived_id
from conversations.core.ids import text_digest
from conversations.core.json_values import text_of

Line = dict[str, Any]  # JSON


class SessionReader(Protocol):
    """Parses the lines of one session in order."""

    speaker: SessionSpeaker

    def events(self, line: Line) -> list[SessionEvent]:
        """Return the events of a line. Raises Invalid that says what was expected."""

    def rest(self) -> list[SessionEvent]:
        """Return the events of earlier lines that only the end makes certain."""


class LineIds:
    """Ids for lines that have none: from their content, and from how often the same line came before."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        self._repeated = Counter[str]()

    def of(self, line: Line, *names: str) -> str:
        """Return the id of a line: the first of these fields that is a text, else one derived from the whole line."""
        own = next((text for name in names if (text := text_of(line.get(name)))), None)
        if own is not None:
            return derived_id(*self._parts, own)
        content = text_digest(repr(line))
        self._repeated[content] += 1
        return derived_id(*self._parts, content, str(self._repeated[content]))


def number_of(usage: object, *names: str) -> int:
    """Return the sum of these token counts."""
    values = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return sum(value for value in values if type(value) is int and 0 <= value < 1 << 53)


def usage_of(usage: object, *, inputs: tuple[str, ...], cached: str, output: str) -> dict[str, int]:
    """Return an answer's usage in our terms; empty if it reports none."""
    spent = {"input_tokens": number_of(usage, *inputs), "output_tokens": number_of(usage, output)}
    return spent | {"cached_tokens": number_of(usage, cached)} if any(spent.values()) else {}
