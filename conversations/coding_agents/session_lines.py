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

    def rest(self, *, is_over: bool) -> list[SessionEvent]:
        """Return the events of earlier lines that only the end makes certain. `is_over`: no line will follow; else
        the program may be writing."""


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


class ToolCallIds:
    """Ids for the starts and ends of tool calls, from the calls' own. An id that begins again in another line once its
    call has ended is another call: its number is in the id. A line that comes again is the same."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts
        self._open: dict[str, bool] = {}  # by call, whether the newest of that id is without a result
        self._numbers = Counter[str]()  # by call: how many of that id have begun
        self._by_line: dict[tuple[str, str, str], int] = {}

    def started(self, call: str, line: str) -> str:
        """Return the id of a call's start; `line` is what tells its line from others."""
        if not self._open.get(call) and ("call", call, line) not in self._by_line:
            self._numbers[call] += 1
            self._open[call] = True
        return self._of("call", call, line)

    def ended(self, call: str, line: str) -> str:
        """Return the id of a call's end."""
        if ("result", call, line) not in self._by_line:
            self._open[call] = False
        return self._of("result", call, line)

    def _of(self, what: str, call: str, line: str) -> str:
        number = self._by_line.setdefault((what, call, line), self._numbers[call])
        return derived_id(*self._parts, what, call, *([str(number)] if number > 1 else []))


def line_key(line: Line, *names: str) -> str:
    """Return what tells a line from others: the first of these fields that is a text, else a digest of the line."""
    return next((text for name in names if (text := text_of(line.get(name)))), None) or text_digest(repr(line))


def number_of(usage: object, *names: str) -> int:
    """Return the sum of these token counts."""
    values = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return sum(value for value in values if type(value) is int and 0 <= value < 1 << 53)


def usage_of(usage: object, *, inputs: tuple[str, ...], cached: str, output: str, written: str = "") -> dict[str, int]:
    """Return an answer's usage in our terms; empty if it reports none. Each argument names fields of it; `cached` and
    `written` are the input that was read from a cache, and written to one."""
    spent = {"input_tokens": number_of(usage, *inputs), "output_tokens": number_of(usage, output)}
    if not any(spent.values()):
        return {}
    of_cache = {"cache_write_tokens": number} if (number := number_of(usage, written)) else {}
    return spent | {"cached_tokens": number_of(usage, cached)} | of_cache
