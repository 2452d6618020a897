"""The facts of an audit entry (its `correlation`) as JSON. `chain.add_entry` writes them, whoever reads one parses
them."""

from collections.abc import Mapping
from typing import Any

from conversations.core.json_values import canonical, parse_object

MAX_TEXT = 4_000  # characters
_LENGTHS = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 0)  # items that a list or an object keeps, and an 8th of a text


def as_text(facts: Mapping[str, Any]) -> str:
    """Return them as compact JSON of at most `MAX_TEXT` characters; empty for none. Where there is more, lists, objects
    and texts end early and say so."""
    text = canonical(facts) if facts else ""
    for most in _LENGTHS:
        if len(text) <= MAX_TEXT:
            break
        text = canonical({name: _shortened(value, most) for name, value in facts.items()})
    return text


def parse(correlation: str) -> dict[str, Any]:
    """Return the facts of an entry. What is no JSON object, as in older entries that were cut at `MAX_TEXT`, is a
    `text`."""
    value = parse_object(correlation)
    return {"text": correlation} if value is None else value


def _shortened(value: Any, most: int) -> Any:  # any JSON value
    if isinstance(value, str):
        return value if len(value) <= 8 * most else f"{value[: 8 * most]}…"
    if isinstance(value, list | tuple):
        items = [_shortened(item, most) for item in value[:most]]
        return items if len(value) <= most else [*items, _rest(len(value) - most)]
    if isinstance(value, dict):
        fields = {name: _shortened(value[name], most) for name in list(value)[:most]}
        return fields if len(value) <= most else fields | {"…": _rest(len(value) - most)}
    return value


def _rest(count: int) -> str:
    return f"… {count:,} more"
