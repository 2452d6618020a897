"""The policy as a file: what `manage.py policy` prints and loads, and the API answers and takes.

    {"format": "switchboard-policy/1", "policies": [
      {"agent": "Triage", "tool": "file_incident", "rule": "ask", "effect": "destructive", "note": "until Monday"},
      {"tool": "chat_send", "rule": "deny"}]}

`agent`, `tool`, `effect` and `note` may be left out or empty; an empty agent or tool means all of them.
"""

import json
from collections.abc import Iterable
from typing import Any

from conversations.errors import Invalid
from conversations.policy import EFFECTS, MOST, RULES, Row

FORMAT = "switchboard-policy/1"
FIELDS = ("agent", "tool", "rule", "effect", "note")
LONGEST = {"agent": 200, "tool": 401, "note": 500}
TOLD = 20  # wrong places that are told at once


def written(rows: Iterable[Row]) -> dict[str, Any]:
    """Answer the file's content for these rows; what is empty is left out."""
    told = [{field: value for field in FIELDS if (value := getattr(row, field))} for row in rows]
    return {"format": FORMAT, "policies": told}


def text(rows: Iterable[Row]) -> str:
    """Write the file: a line a rule."""
    lines = ",\n".join(f"  {json.dumps(one, ensure_ascii=False)}" for one in written(rows)["policies"])
    return f'{{"format": "{FORMAT}", "policies": [' + (f"\n{lines}\n]}}\n" if lines else "]}\n")


def read(content: str) -> list[Row]:
    """Read a file. Raises Invalid that tells every wrong place (the first 20)."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}, column {error.colno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise Invalid(f"{where}this is no JSON: {error}") from None
    return parsed(value)


def parsed(value: object) -> list[Row]:
    """Read the content of a file. Raises as `read` does."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise Invalid(f'expected an object with "format": "{FORMAT}"', field="format")
    listed = value.get("policies")
    if not isinstance(listed, list):
        raise Invalid("policies: expected a list of rules", field="policies")
    wrong = [f"{name}: this field is unknown" for name in value if name not in ("format", "policies")]
    if len(listed) > MOST:
        raise Invalid(f"policies: {len(listed):,} rules; expected {MOST:,} at most", field="policies")
    rows: dict[tuple[str, str], Row] = {}
    for number, one in enumerate(listed):
        place = f"policies[{number}]"
        if problems := _problems(one):
            wrong += [f"{place}{problem}" for problem in problems]
            continue
        row = row_of(one)
        if row.target in rows:
            wrong.append(f"{place}: there is a rule for {whom(row)} already")
        rows[row.target] = row
    if wrong:
        more = f"; and {len(wrong) - TOLD} more" if len(wrong) > TOLD else ""
        raise Invalid("; ".join(wrong[:TOLD]) + more, field="policies")
    return list(rows.values())


def row_of(fields: dict[str, Any]) -> Row:
    """Make a row of its fields. Raises Invalid naming the one at fault."""
    for problem in _problems(fields):
        name, _, words = problem.lstrip(".").partition(": ")
        raise Invalid(words, field=name)
    return Row(**{field: str(fields.get(field) or "").strip() for field in FIELDS})  # type: ignore[arg-type]  # checked


def whom(row: Row) -> str:
    """Name what a row is about."""
    return f"{row.tool or 'every tool'} of {row.agent or 'every agent'}"


def _problems(one: object) -> list[str]:
    if not isinstance(one, dict):
        return [": expected an object"]
    found = [f".{str(name)[:60]}: this field is unknown" for name in one if name not in FIELDS]
    for field, longest in LONGEST.items():
        found += _wrong_text(field, one.get(field), longest)
    if one.get("rule") not in RULES:
        found.append(f".rule: expected one of {', '.join(RULES)}")
    if (one.get("effect") or "") not in ("", *EFFECTS):
        found.append(f".effect: expected one of {', '.join(EFFECTS)}, or nothing")
    return found


def _wrong_text(field: str, value: object, longest: int) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str):
        return [f".{field}: expected text"]
    if len(value.strip()) > longest:
        return [f".{field}: {len(value):,} characters; expected {longest} at most"]
    if any(not c.isprintable() for c in value.strip()):
        return [f".{field}: it has a character that is not printed"]
    return []
