"""Untrusted JSON as a foldable tree, as fields, or as text, depending on its size.

The text of an element with `data-source` is the JSON itself; only fields have it hidden behind them. `whole` is
that text, `path` is the `data-path` of a row, `value` is the row's text without the row's own `.around` (its key and
comma). Numbers keep their digits and objects their duplicate keys.
"""

import json
import re
from typing import Any

from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.html_escape import escape, safe
from conversations.core.json_values import refuse_constant
from conversations.rendering import ansi_codes

MAX_TEXT = 64_000  # characters; longer JSON is drawn as text
MAX_NODES = 300
MAX_DEPTH = 16
MAX_KEY = 120  # characters, since every row below repeats its path
CLIP = 600  # characters of a string, then "show all"
CLIP_TEXT = 4_000  # characters of a text that is no JSON
CLIP_LINES = 40
OPEN_ROWS = 24  # an object with more, or below the second level, starts folded
MAX_FIELDS = 16

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_KEY = re.compile(r"[a-z][a-z0-9_]{0,40}")
_COPIES = (
    '<span class="copies"><button type="button" data-copy="value" title="Copy value" aria-label="Copy value"></button>'
    '<button type="button" data-copy="path" title="Copy path" aria-label="Copy path"></button></span>'
)

Pairs = list[tuple[str, Any]]  # an object as it came; the values are JSON again


class Object(Pairs):
    """An object's pairs in order, including duplicate keys."""


class Number(str):
    """A number with its original digits."""

    __slots__ = ()


def parse(text: str) -> Any:
    """Parse JSON as Object, list, str, Number, bool or None. Raises ValueError, also if it nests too deeply."""
    try:
        return json.loads(
            text, object_pairs_hook=Object, parse_int=Number, parse_float=Number, parse_constant=refuse_constant
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def draw(text: str) -> Markup:
    """Draw JSON text as a tree, else as text."""
    if len(text) > MAX_TEXT:
        return draw_text(text)
    try:
        value = parse(text)
    except ValueError:
        return draw_text(text)
    return draw_value(value) if is_drawable(value) else draw_text(text)


def draw_value(value: Any) -> Markup:
    """Draw a value that `is_drawable` as a tree."""
    return safe(f'<div class="json" data-source dir="auto">{_row("", value, "$", "", 0)}</div>')


def draw_text(text: str) -> Markup:
    """Draw text as it is, with terminal colors, clipped after 40 lines or 4,000 characters with its size shown."""
    return safe(f'<div class="output" data-source dir="auto">{_clipped(text, CLIP_TEXT, _printed)}</div>')


def draw_verbatim(text: str) -> Markup:
    """Draw text as it is, with terminal escapes visible as characters; clipped like `draw_text`."""
    return safe(f'<div class="output" data-source dir="auto">{_clipped(text, CLIP_TEXT, _worded)}</div>')


def draw_fields(value: Any) -> Markup | None:
    """Draw a flat object as a definition list; None if it is not flat or has too many fields."""
    if not isinstance(value, Object) or not 1 <= len(value) <= MAX_FIELDS or not all(map(_is_field, value)):
        return None
    rows = (f'{_term(key)}<dd dir="auto">{_detail(item)}</dd>' for key, item in value)
    return safe(f'<dl class="result">{"".join(rows)}</dl>')


def draw_result(value: Any, text: str) -> Markup:
    """Draw the value of JSON text as fields, with that text hidden behind them for copying; else as a tree or text."""
    fields = draw_fields(value)
    return fields + safe(f"<div data-source hidden>{_visible(text)}</div>") if fields else draw(text)


def is_drawable(value: Any) -> bool:
    """Return whether a value is within `MAX_NODES`, `MAX_DEPTH` and `MAX_KEY` of the tree."""
    level, count = [value], 0
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, Object):
                if any(len(key) > MAX_KEY for key, _ in item):
                    return False
                deeper += (child for _, child in item)
            elif isinstance(item, list):
                deeper += item
        count += len(level)
        if count > MAX_NODES:
            return False
        if not deeper:
            return True
        level = deeper
    return False


def _row(key: str, value: Any, path: str, comma: str, depth: int) -> str:
    """Draw one row: a key, a value, and their copy buttons. `key` is HTML, `comma` ends the row unless it is the
    last."""
    margin = "  " * depth
    after = f'<span class="around">{comma}</span>' if comma else ""
    if isinstance(value, list) and value:
        inner = _container(key, value, path, after, depth)
    else:
        inner = f"{key}{_scalar(value)}{after}"
    return f'\n{margin}<div class="node" data-path="{escape(path)}">{inner}{_COPIES}</div>'


def _container(key: str, value: list[Any], path: str, after: str, depth: int) -> str:
    is_object = isinstance(value, Object)
    last = len(value) - 1
    rows = []
    for index, item in enumerate(value):
        name, child = item if is_object else ("", item)
        label = f'<span class="around"><span class="k">{_string(name)}</span>: </span>' if is_object else ""
        comma = "," if index < last else ""
        rows.append(_row(label, child, _step(path, name if is_object else index), comma, depth + 1))
    is_open = " open" if depth < 2 and len(value) <= OPEN_ROWS else ""
    left, right = "{}" if is_object else "[]"
    summary = f'<summary data-count="{len(value):,}" data-end="{right}">{key}{left}</summary>'
    return f"<details{is_open}>{summary}{''.join(rows)}\n{'  ' * depth}{right}{after}</details>"


def _scalar(value: Any) -> str:
    if isinstance(value, Number):
        return f'<span class="n">{_clipped(value, CLIP, escape)}</span>'
    if isinstance(value, str):
        return f'<span class="s">{_clipped(json.dumps(value, ensure_ascii=False), CLIP, _visible)}</span>'
    if isinstance(value, list):
        return "{}" if isinstance(value, Object) else "[]"
    return f'<span class="b">{json.dumps(value)}</span>'


def _string(text: str) -> str:
    return _visible(json.dumps(text, ensure_ascii=False))


def _visible(text: str) -> str:
    return hidden_characters.to_json_html(escape(text))


def _printed(text: str) -> str:
    return hidden_characters.to_html(ansi_codes.draw(text))


def _worded(text: str) -> str:
    return hidden_characters.to_html(escape(text))


def _clipped(text: str, limit: int, draw_part: Any) -> str:
    """Draw the beginning, and the rest behind "show all" with the size. The label is not text, so copies stay
    complete."""
    cut = _cut(text, limit)
    if cut == len(text):
        return str(draw_part(text))
    label = f"Show all {len(text):,} characters"
    return (
        f'{draw_part(text[:cut])}<details class="rest"><summary aria-label="{label}" data-label="{label}"></summary>'
        f"{draw_part(text[cut:])}</details>"
    )


def _cut(text: str, limit: int) -> int:
    """Return where the beginning ends: after 40 lines or `limit` characters, unless little remains."""
    end = -1
    for _ in range(CLIP_LINES):
        end = text.find("\n", end + 1, limit)
        if end < 0:
            return limit if len(text) > limit + limit // 4 else len(text)
    return end + 1 if end + 1 < len(text) else len(text)


def _step(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _IDENTIFIER.fullmatch(key) else f"{path}[{json.dumps(key)}]"


def _is_field(pair: tuple[str, Any]) -> bool:
    key, value = pair
    if isinstance(value, Object):
        return not value
    if isinstance(value, list):
        return len(value) <= 8 and all(not isinstance(item, list) and len(str(item)) <= 80 for item in value)
    return 1 <= len(key) <= 60


def _term(key: str) -> str:
    """Draw a key as words: `due_date` as "Due date", with the key as its title."""
    if _PLAIN_KEY.fullmatch(key):
        return f'<dt title="{key}">{key[0].upper()}{key[1:].replace("_", " ")}</dt>'
    return f'<dt dir="auto">{_worded(key)}</dt>'


def _detail(value: Any) -> str:
    if isinstance(value, Number):
        return escape(value)
    if isinstance(value, str):
        return _clipped(value, CLIP, _worded)
    if isinstance(value, list):
        return ", ".join(map(_detail, value)) or '<span class="faint">none</span>'
    return f'<span class="b">{json.dumps(value)}</span>'
