"""The policy's file format, which `manage.py policy` prints and loads, and the API returns and accepts.

    {"format": "switchboard-policy/1", "policies": [
      {"agent": "Triage", "tool": "file_incident", "rule": "ask", "effect": "destructive", "note": "until Monday",
       "deadline_s": 900, "on_expiry": "notify", "notify": "admin", "four_eyes": true, "no_always": true},
      {"tool": "chat_send", "rule": "deny"}]}

Only `rule` is required; an empty agent or tool means all of them. `deadline_s` is how many seconds an approval request
may wait, `on_expiry` what happens then (wait, reject, or notify a role); with `no_always` a person decides every call.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from conversations.core.errors import Invalid
from conversations.models.people import ROLES
from conversations.runs.policy.evaluate import EFFECTS, ENDS, MAX_RULES, RULES, PolicyRule

FORMAT = "switchboard-policy/1"
TEXTS = ("agent", "tool", "rule", "effect", "note", "on_expiry", "notify")
SWITCHES = ("four_eyes", "no_always")
FIELDS = ("agent", "tool", "rule", "effect", "note", "deadline_s", "on_expiry", "notify", *SWITCHES)
MAX_WAIT = 366 * 24 * 3600  # seconds
MAX_LENGTHS = {"agent": 200, "tool": 401, "note": 500}
_PROBLEM = re.compile(r"\.?(?P<field>.*?):? (?P<what>(?:must|unknown) .*)", re.DOTALL)
_TIME = re.compile(r"([0-9]{1,9}) ?(s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
TOLD = 20  # wrong places that are reported at once


def dump(rows: Iterable[PolicyRule]) -> dict[str, Any]:
    """Return the file's content for these rows; what is empty is left out."""
    policies = [{field: value for field in FIELDS if (value := getattr(row, field))} for row in rows]
    return {"format": FORMAT, "policies": policies}


def text(rows: Iterable[PolicyRule]) -> str:
    """Return the file's text, with one line per rule."""
    lines = ",\n".join(f"  {json.dumps(policy, ensure_ascii=False)}" for policy in dump(rows)["policies"])
    return f'{{"format": "{FORMAT}", "policies": [' + (f"\n{lines}\n]}}\n" if lines else "]}\n")


def read(content: str) -> list[PolicyRule]:
    """Parse a file. Raises Invalid that lists every error (the first 20)."""
    try:
        value = json.loads(content)
    except RecursionError:
        raise Invalid("must be JSON with fewer levels of nesting") from None
    except ValueError as error:
        where = f"line {error.lineno}, column {error.colno}: " if isinstance(error, json.JSONDecodeError) else ""
        raise Invalid(f"{where}must be JSON: {error}") from None
    return load(value)


def load(value: object) -> list[PolicyRule]:
    """Load the content of a file. Raises like `read`."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise Invalid(f'the file must be an object with "format": "{FORMAT}"', field="format")
    listed = value.get("policies")
    if not isinstance(listed, list):
        raise Invalid("policies must be a list of rules", field="policies")
    wrong = [f"{name}: unknown field" for name in value if name not in ("format", "policies")]
    if len(listed) > MAX_RULES:
        raise Invalid(f"policies must have at most {MAX_RULES:,} rules; got {len(listed):,}", field="policies")
    rows: dict[tuple[str, str], PolicyRule] = {}
    for number, entry in enumerate(listed):
        path = f"policies[{number}]"
        if problems := _problems(entry):
            wrong += [f"{path}{problem}" for problem in problems]
            continue
        row = row_of(entry)
        if row.target in rows:
            wrong.append(f"{path}: there is already a rule for {describe_target(row)}")
        rows[row.target] = row
    if wrong:
        more = f"; and {len(wrong) - TOLD} more" if len(wrong) > TOLD else ""
        raise Invalid("; ".join(wrong[:TOLD]) + more, field="policies")
    return list(rows.values())


def row_of(fields: dict[str, Any]) -> PolicyRule:
    """Create a row from its fields. Raises Invalid naming the invalid one."""
    for problem in _problems(fields):
        match = _PROBLEM.fullmatch(problem)
        assert match is not None
        raise Invalid(match["what"], field=match["field"])
    values: dict[str, Any] = {field: str(fields.get(field) or "").strip() for field in TEXTS}
    values |= {field: bool(fields.get(field)) for field in SWITCHES}
    return PolicyRule(**values, deadline_s=fields.get("deadline_s") or None)


def seconds_of(text: str) -> int | None:
    """Parse a duration as people write it: `90`, `90 s`, `15 min`, `2 h`, `3 d`; an empty text is None. Raises
    Invalid."""
    if not text.strip():
        return None
    match = _TIME.fullmatch(text.strip().lower())
    if match is None:
        raise Invalid("must be a duration such as 90 s, 15 min, 2 h or 3 d", field="deadline_s")
    return int(match[1]) * _SECONDS[(match[2] or "s")[0]]


def time_of(seconds: float) -> str:
    """Format seconds as people write them, so that `seconds_of` can parse them."""
    for mark, unit in (("d", "d"), ("h", "h"), ("m", "min")):
        if seconds >= _SECONDS[mark] and seconds % _SECONDS[mark] == 0:
            return f"{seconds // _SECONDS[mark]:g} {unit}"
    return f"{seconds:g} s"


def describe_target(row: PolicyRule) -> str:
    """Describe the agent and tool that a row applies to."""
    return f"{row.tool or 'every tool'} by {row.agent or 'every agent'}"


def _problems(entry: object) -> list[str]:
    if not isinstance(entry, dict):
        return [" must be an object"]
    problems = [f".{str(name)[:60]}: unknown field" for name in entry if name not in FIELDS]
    for field, longest in MAX_LENGTHS.items():
        problems += _wrong_text(field, entry.get(field), longest)
    if entry.get("rule") not in RULES:
        problems.append(f".rule must be one of {', '.join(RULES)}")
    if (entry.get("effect") or "") not in ("", *EFFECTS):
        problems.append(f".effect must be one of {', '.join(EFFECTS)}, or absent")
    return problems + list(_problems_of_terms(entry))


def _problems_of_terms(entry: dict[str, Any]) -> Iterator[str]:
    """Return the errors in a rule's terms for approval requests."""
    limit = entry.get("deadline_s")
    is_number = isinstance(limit, int) and not isinstance(limit, bool)
    if limit is not None and not (is_number and 0 < limit <= MAX_WAIT):
        yield f".deadline_s must be a whole number of seconds from 1 to {MAX_WAIT:,}"
    if (entry.get("on_expiry") or "") not in ("", *ENDS):
        yield f".on_expiry must be one of {', '.join(ENDS)}, or absent"
    if (entry.get("notify") or "") not in ("", *ROLES):
        yield f".notify must be one of {', '.join(ROLES)}, or absent"
    elif entry.get("notify") and entry.get("on_expiry") != "notify":
        yield ".notify must only be given with on_expiry notify"
    for field in SWITCHES:
        if not isinstance(entry.get(field), bool | None):
            yield f".{field} must be true or false"


def _wrong_text(field: str, value: object, longest: int) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str):
        return [f".{field} must be a string"]
    if len(value.strip()) > longest:
        return [f".{field} must be at most {longest} characters; got {len(value):,}"]
    if any(not c.isprintable() for c in value.strip()):
        return [f".{field} must not contain control characters"]
    return []
