"""The results of a run so far: the objects that its tools returned, as short lists of fields. No query."""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from markupsafe import Markup

from conversations.core.json_values import parse_object
from conversations.events.log.records import Stored
from conversations.rendering import event_rows, richtext

FIELDS = 6  # of a result
LETTERS = 160  # of a value


class RunResult(NamedTuple):
    """What a tool returned: its name, the event, and drawn fields."""

    name: Markup
    seq: int
    fields: list[tuple[Markup, Markup]]


def of_events(events: Iterable[Stored]) -> list[RunResult]:
    """Return the results in the events that ended calls; what is not an object with plain fields is left out."""
    drawn = (_result(event) for event in events)
    return [result for result in drawn if result.fields]


def _result(event: Stored) -> RunResult:
    read = event_rows.parse_event(event)
    texts = ((name, text) for name, value in _object(read.body).items() if (text := _text(value)))
    fields = [(_label(name), richtext.one_line(text, LETTERS)) for name, text in islice(texts, FIELDS)]
    return RunResult(richtext.one_line(read.payload.name or "tool", LETTERS), event.seq, fields)


def _object(body: Mapping[str, Any]) -> Mapping[str, Any]:
    value = body.get("output", body.get("result_summary"))
    if isinstance(value, str) and value.startswith("{"):
        return parse_object(value) or {}
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value) if isinstance(value, str | int | float) else ""


def _label(name: str) -> Markup:
    words = name.replace("_", " ").strip()
    return richtext.one_line(words[:1].upper() + words[1:], LETTERS)
