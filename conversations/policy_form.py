"""The policy as a file: what `manage.py policy` prints and loads, and the API answers and takes.

    {"format": "switchboard-policy/1", "policies": [
      {"agent": "Triage", "tool": "file_incident", "rule": "ask", "effect": "destructive", "note": "until Monday",
       "deadline_s": 900, "on_expiry": "notify", "notify": "admin", "four_eyes": true, "no_always": true},
      {"tool": "chat_send", "rule": "deny"}]}

Only `rule` has to be there; an empty agent or tool means all of them. `deadline_s` is how many seconds a question may
wait, `on_expiry` what happens then (wait, reject, or notify a role); `no_always` has a person decide each call.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from conversations.errors import Invalid
from conversations.models.people import ROLES
from conversations.policy import EFFECTS, ENDS, MOST, RULES, Row

FORMAT = "switchboard-policy/1"
TEXTS = ("agent", "tool", "rule", "effect", "note", "on_expiry", "notify")
SWITCHES = ("four_eyes", "no_always")
FIELDS = ("agent", "tool", "rule", "effect", "note", "deadline_s", "on_expiry", "notify", *SWITCHES)
LONGEST_WAIT = 366 * 24 * 3600  # seconds
LONGEST = {"agent": 200, "tool": 401, "note": 500}
_TIME = re.compile(r"([0-9]{1,9}) ?(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
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
    told: dict[str, Any] = {field: str(fields.get(field) or "").strip() for field in TEXTS}
    told |= {field: bool(fields.get(field)) for field in SWITCHES}
    return Row(**told, deadline_s=fields.get("deadline_s") or None)


def seconds_of(text: str) -> int | None:
    """Read a time that a person wrote: `90`, `90 s`, `15 min`, `2 h`, `3 d`; nothing is None. Raises Invalid."""
    if not text.strip():
        return None
    found = _TIME.fullmatch(text.strip().lower())
    if found is None:
        raise Invalid("expected a time like 90 s, 15 min, 2 h or 3 d", field="deadline_s")
    return int(found[1]) * _SECONDS[(found[2] or "s")[0]]


def time_of(seconds: float) -> str:
    """Write seconds as a person would, so that `seconds_of` reads them back."""
    for mark, unit in (("d", "d"), ("h", "h"), ("m", "min")):
        if seconds >= _SECONDS[mark] and seconds % _SECONDS[mark] == 0:
            return f"{seconds // _SECONDS[mark]:g} {unit}"
    return f"{seconds:g} s"


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
    return found + list(_problems_of_terms(one))


def _problems_of_terms(one: dict[str, Any]) -> Iterator[str]:
    """Tell what is wrong of what a rule says of questions."""
    limit = one.get("deadline_s")
    is_number = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is not None and not (is_number and 0 < limit <= LONGEST_WAIT):
        yield f".deadline_s: expected a whole number of seconds, 1 to {LONGEST_WAIT:,}"
    if (one.get("on_expiry") or "") not in ("", *ENDS):
        yield f".on_expiry: expected one of {', '.join(ENDS)}, or nothing"
    if (one.get("notify") or "") not in ("", *ROLES):
        yield f".notify: expected one of {', '.join(ROLES)}, or nothing"
    elif one.get("notify") and one.get("on_expiry") != "notify":
        yield ".notify: a role is told only with on_expiry notify"
    for field in SWITCHES:
        if not isinstance(one.get(field), bool | None):
            yield f".{field}: expected true or false"


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
