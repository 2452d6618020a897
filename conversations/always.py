"""Rules by which calls are approved without asking again: which calls one is about. Asked by the gate and the actions.

A rule is about one tool (by its lookup key, and as long as it is the tool that the rule was made for), one agent or any
and arguments: exact, the same object; or partial, an object that they contain. Arguments are compared as canonical
JSON, with secrets covered, as the record has them; those that are no object fit no rule, nor do those with a secret.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import F

from conversations import masking
from conversations.kept import Kept
from conversations.models import AlwaysRule
from conversations.nodes import database_time

MOST = 1_000  # live rules; the actions make no more
MOST_ARGUMENTS = 64 * 1024  # characters of a rule's arguments
IN_TURN = (F("uses").asc(nulls_first=True), F("made_at"), F("id"))  # one without a number of uses spares the others


class Call(NamedTuple):
    """A call that waits or would: what rules look at. `arguments` None: they are no object, or cover a secret."""

    agent: str
    tool: str
    lookup_key: str
    schema: str
    effect: str
    arguments: dict[str, Any] | None


Rules = Mapping[str, list[AlwaysRule]]  # by lookup key


def call_of(told: Mapping[str, Any]) -> Call:
    """Read a call from the event that asks about it."""
    tool = str(told.get("qualified_name") or told.get("name") or "")
    return Call(
        agent=str(told.get("agent") or ""),
        tool=tool,
        lookup_key=str(told.get("lookup_key") or f"bare:{tool}"),
        schema=str(told.get("schema") or ""),
        effect=str(told.get("effect") or ""),
        arguments=_arguments(told),
    )


def fits(rule: AlwaysRule, call: Call, *, is_destructive: bool) -> bool:
    """Tell whether a rule is about a call. One that destroys has to be named exactly: agent, tool and arguments."""
    if rule.lookup_key != call.lookup_key or rule.agent not in ("", call.agent) or call.arguments is None:
        return False
    if rule.schema and rule.schema != call.schema:
        return False
    if is_destructive and not (rule.agent and rule.is_exact):
        return False
    if rule.is_exact:
        return rule.digest == digest(call.arguments)
    return contains(call.arguments, json.loads(rule.arguments))


def contains(whole: object, part: object) -> bool:
    """Tell whether a JSON value contains another: of objects every field, of all else the same value."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and contains(whole[name], part[name]) for name in part)
    return canonical(whole) == canonical(part)


def canonical(value: object) -> str:
    """Write a JSON value so that equal ones are equal texts; 1, 1.0 and true are three. Raises ValueError for NaN."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def digest(value: object) -> str:
    """Answer the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest()


def live() -> list[AlwaysRule]:
    """Read the rules that may approve something now, in the order in which they are asked. Sync."""
    return list(AlwaysRule.objects.live(database_time()).order_by(*IN_TURN)[:MOST])


def by_key(rules: Iterable[AlwaysRule]) -> dict[str, list[AlwaysRule]]:
    """Sort rules by the tools that they are about."""
    found: dict[str, list[AlwaysRule]] = {}
    for rule in rules:
        found.setdefault(rule.lookup_key, []).append(rule)
    return found


def rules() -> Rules:
    """Answer the live rules as they were half a second ago, or later. Sync."""
    return _kept.answer()


def known() -> Rules | None:
    """Answer them without a query, or None when that takes one. For event loops."""
    return _kept.fresh()


def forget() -> None:
    """The rules have changed: read them anew. Called after the commit."""
    _kept.forget()


def _arguments(told: Mapping[str, Any]) -> dict[str, Any] | None:
    found = told.get("args")
    if not isinstance(found, dict):
        return None
    try:
        return None if masking.MASK in canonical(found) else found
    except (ValueError, RecursionError):
        return None


_kept: Kept[Rules] = Kept(lambda: by_key(live()), {})
