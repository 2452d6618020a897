"""Compare arguments with a schema, field by field: valid, invalid, unknown to the schema. For pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conversations.tool_calls.schemas import validation
from conversations.tool_calls.schemas.schema_table import fields_of

MAX_FIELDS = 60  # fields
MAX_CHECKED = 64 * 1024  # characters of arguments that are checked
PROBLEMS = 50

Schema = dict[str, Any]  # JSON
_MISSING = object()


@dataclass(frozen=True, slots=True)
class FieldReport:
    """One argument, with its value in `sent` if it was sent. `verdict`: fits, left out, missing, unknown, or wrong;
    `why`: the problem."""

    name: str
    type: str
    is_required: bool
    is_sent: bool
    sent: Any
    verdict: str
    why: str = ""


def fit_of(sent: Mapping[str, Any], schema: Schema, *, size: int = 0) -> list[FieldReport]:
    """Check arguments against a schema; larger ones than `MAX_CHECKED` characters (`size`) are not validated."""
    wrong = _wrong(sent, schema) if size <= MAX_CHECKED else {}
    fields = {row.name: row for row in fields_of(schema)[0] if row.depth == 0}
    rows = []
    for name in list(dict.fromkeys([*fields, *sent]))[:MAX_FIELDS]:
        field, value = fields.get(name), sent.get(name, _MISSING)
        is_required = field is not None and field.is_required
        verdict, why = _verdict(field is not None, is_required, value is not _MISSING, wrong.get(name, ""))
        shown = None if value is _MISSING else value
        kind = field.type if field else ""
        rows.append(FieldReport(name, kind, is_required, value is not _MISSING, shown, verdict, why))
    return rows


def _verdict(is_known: bool, is_required: bool, is_sent: bool, why: str) -> tuple[str, str]:
    if not is_sent:
        return ("missing" if is_required else "left out"), ""
    if not is_known:
        return "unknown", ""
    return ("wrong", why) if why else ("fits", "")


def _wrong(sent: Mapping[str, Any], schema: Schema) -> dict[str, str]:
    """Return the first problem of each invalid argument, by name."""
    messages: dict[str, str] = {}
    try:
        for error in validation.problems(dict(sent), schema, most=PROBLEMS):
            if error.absolute_path:
                messages.setdefault(str(error.absolute_path[0]), error.message[:300])
    except validation.UncheckableSchema:
        return {}  # a schema that is none checks nothing
    return messages
