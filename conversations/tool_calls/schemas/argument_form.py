"""Turn a tool's schema into form fields, and a posted form into arguments. Called by pages of approvals and replays."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote

from conversations.core import hidden_characters
from conversations.core.errors import Invalid
from conversations.events.payload import clean_text
from conversations.tool_calls.schemas.argument_check import InvalidArguments
from conversations.tool_calls.schemas.schema_table import resolve, type_of

MAX_FIELDS = 40  # fields; a tool with more is edited as JSON
LEVELS = 8  # of variants in one another; a definition may refer to itself
PREFIX = "arg."  # of a field's name in the form
_UNSAFE = re.compile(r"""["%\s\x00-\x1f\x7f\ud800-\udfff]""")
EXPECTED = {"number": "a number", "choice": "one of its choices"}

Schema = dict[str, Any]  # JSON
Kind = Literal["line", "text", "number", "choice", "json"]
Editor = Literal["", "fields", "raw"]  # of arguments in a form; none for a button that runs them as they are


@dataclass(frozen=True, slots=True)
class FormField:
    """One field. `value`: its text; `was`: the text of the original argument (both as a browser returns them);
    `choices`: values with labels; `problem`: what is wrong with the entered value."""

    name: str
    label: str
    kind: Kind
    type: str
    value: str
    choices: tuple[tuple[str, str], ...]
    description: str
    is_required: bool
    was: str = ""
    problem: str = ""

    @property
    def control(self) -> str:
        """Return its name in the form."""
        return control_of(self.name)

    @property
    def is_edited(self) -> bool:
        """Return whether the field differs from the original argument."""
        return self.value != self.was

    @property
    def was_words(self) -> str:
        """Return the original value as the field shows it."""
        return dict(self.choices).get(self.was, hidden_characters.spelled_out(self.was)[:200])


def entries(
    schema: Schema,
    arguments: Mapping[str, Any] | None,
    entered: Mapping[str, str] | None = None,
    problems: Mapping[str, str] | None = None,
) -> list[FormField]:
    """Return the fields of the top level, filled with `arguments`, or with what was `entered` before; `problems` by
    field name."""
    properties = _properties(schema)
    if len(properties) > MAX_FIELDS:
        return []
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    fields = [_entry(name, inner, schema, arguments or {}, entered or {}, name in needed) for name, inner in properties]
    return [replace(field, problem=(problems or {}).get(field.name, "")) for field in fields]


def read(schema: Schema, posted: Mapping[str, str], arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `arguments` with the edits of a posted form. A cleared field is null if that is allowed, an empty text if
    it is a text, else omitted. Raises InvalidArguments."""
    edited = dict(arguments or {})
    problems: dict[str, str] = {}
    inner = dict(_properties(schema))
    for name, text in _edits(schema, arguments, posted).items():
        kind, is_nullable, choices = _kind(inner[name], schema)
        if text == "" and is_nullable:
            edited[name] = None
        elif text == "" and kind not in ("line", "text"):
            edited.pop(name, None)
        else:
            try:
                edited[name] = _value(text, kind, dict(choices))
            except (ValueError, RecursionError):
                problems[name] = f"must be {EXPECTED.get(kind, 'JSON')}"
    if problems:
        name, problem = next(iter(problems.items()))
        raise InvalidArguments(f"the field {name} {problem}", problems=problems)
    return edited


def posted_arguments(
    schema: Schema, arguments: Mapping[str, Any] | None, posted: Mapping[str, str], *,
    raw: str, editor: Editor, buttons: Mapping[Editor, str],
) -> dict[str, Any] | str | None:  # fmt: skip
    """Return the arguments that a posted form asks for: an object if its fields were edited, a text if its JSON was,
    None for `arguments` as they are. `raw` is the JSON that was drawn, `editor` the one whose button was pressed,
    `buttons` their names. Raises Invalid if another editor was edited: no button drops an edit."""
    fields, text = _edits(schema, arguments, posted), as_posted(posted.get("raw", raw))
    drawn = {field.control for field in entries(schema, arguments)}
    if any(name.startswith(PREFIX) and name not in drawn for name in posted):
        raise Invalid("The tool no longer has the fields of this form: enter your edits again")
    is_raw_edited = text != as_posted(raw)
    if fields and is_raw_edited:
        raise Invalid("You edited the arguments both in the fields and as JSON: undo the edits in one of the two")
    if fields and editor != "fields":
        raise Invalid(f"You edited the arguments: choose {buttons['fields']}, or undo the edits")
    if is_raw_edited and editor != "raw":
        raise Invalid(f"You edited the JSON: choose {buttons['raw']}, or undo the edits")
    if is_raw_edited:
        return text
    return read(schema, posted, arguments) if fields else None


def as_json(arguments: Mapping[str, Any]) -> str:
    """Write arguments as JSON for editing, with invisible characters as escapes (the same JSON)."""
    text = json.dumps(arguments, indent=2, ensure_ascii=False)
    return text if hidden_characters.is_clean(text.replace("\n", "")) else json.dumps(arguments, indent=2)


def control_of(argument: str) -> str:
    """Return the name of an argument's field in the form, with `%XX` for what a browser changes in a name or a server
    strips from it: quotation marks, blanks, controls."""
    return PREFIX + _UNSAFE.sub(lambda match: quote(match[0], safe="", errors="replace"), argument)


def as_posted(text: str) -> str:
    """Return a text as a browser returns it from a form, with LF as line ends: it replaces what HTML cannot hold."""
    return clean_text(text.replace("\r\n", "\n").replace("\r", "\n"))


def _edits(schema: Schema, arguments: Mapping[str, Any] | None, posted: Mapping[str, str]) -> dict[str, str]:
    """Return the entered texts of the fields that differ from the original arguments, by name."""
    return {field.name: field.value for field in entries(schema, arguments, posted) if field.is_edited}


def _value(text: str, kind: Kind, choices: Mapping[str, str]) -> Any:
    if kind in ("line", "text"):
        return text
    if kind == "choice" and text not in choices:
        raise ValueError(text)
    return json.loads(text)


def _entry(
    name: str, inner: Any, root: Schema, arguments: Mapping[str, Any], entered: Mapping[str, str], is_required: bool
) -> FormField:
    kind, _, choices = _kind(inner, root)
    was = as_posted(_shown(arguments[name], kind)) if name in arguments else ""
    value = as_posted(entered.get(control_of(name), was))
    about = inner.get("description") if isinstance(inner, dict) else None
    description = about if isinstance(about, str) else ""
    others = {text for text in (was, value) if kind == "choice" and text and text not in dict(choices)}
    choices += tuple((text, f"{_label(text)} (not a choice)") for text in sorted(others))
    is_long = kind == "line" and (len(value) > 60 or "\n" in value + was)
    return FormField(
        name=name, label=hidden_characters.spelled_out(name), kind="text" if is_long else kind,
        type=hidden_characters.spelled_out(type_of(inner, root))[:80], value=value, choices=choices,
        description=hidden_characters.spelled_out(description)[:300], is_required=is_required, was=was,
    )  # fmt: skip


def _shown(value: Any, kind: Kind) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) and kind in ("line", "text") else json.dumps(value, ensure_ascii=False)


def _kind(inner: Any, root: Schema, levels: int = LEVELS) -> tuple[Kind, bool, tuple[tuple[str, str], ...]]:
    """Return a field's kind, whether it may be null, and its choices as JSON texts with labels."""
    resolved = resolve(inner, root)
    variants = resolved.get("anyOf")
    if isinstance(variants, list):
        others = [resolve(variant, root) for variant in variants]
        plain = [variant for variant in others if variant.get("type") != "null"]
        if len(plain) == 1 and levels:
            kind, _, choices = _kind(plain[0], root, levels - 1)
            return kind, len(plain) < len(others), choices
        return "json", False, ()
    if isinstance(values := resolved.get("enum"), list):
        texts = [json.dumps(value, ensure_ascii=False) for value in values]
        return "choice", False, tuple((text, _label(text)) for text in texts)
    match resolved.get("type"):
        case "boolean":
            return "choice", False, (("true", "yes"), ("false", "no"))
        case "string":
            return "line", False, ()
        case "integer" | "number":
            return "number", False, ()
    return "json", False, ()


def _label(text: str) -> str:
    return hidden_characters.spelled_out(text.strip('"'))[:80]


def _properties(schema: Schema) -> list[tuple[str, Any]]:
    properties = schema.get("properties")
    return [(str(name), inner) for name, inner in properties.items()] if isinstance(properties, dict) else []
