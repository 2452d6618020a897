"""Determine which calls an auto-approval rule matches. Used by the gate and the actions.

A rule matches one tool (by its lookup key, and only while it is the tool for which the rule was created: of the same
schema, origin, MCP server and team), one agent or any, and arguments: exactly the same object, or partially, an object
that they contain. Arguments are compared as canonical JSON, with secrets masked, as in the record; arguments that are
not an object or contain a secret match no rule.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.db.models import F

from conversations.core import secret_masking
from conversations.core.database_clock import database_now
from conversations.core.db_threads import RunInThread
from conversations.core.ids import text_digest
from conversations.core.ttl_cache import TtlCache
from conversations.models import AutoApprovalRule

MAX_RULES = 1_000  # live rules; the actions make no more
MAX_ARGUMENTS = 64 * 1024  # characters of a rule's arguments
IN_TURN = (F("uses").asc(nulls_first=True), F("made_at"), F("id"))  # one without a number of uses spares the others


class ToolIdentity(NamedTuple):
    """What makes two tools of one lookup key the same one. In a rule, an empty field matches any tool."""

    schema: str = ""
    origin: str = ""
    mcp_server: str = ""
    team: str = ""

    def matches(self, tool: "ToolIdentity") -> bool:
        """Return whether a rule for this tool is for the other one too."""
        return all(own in ("", other) for own, other in zip(self, tool, strict=True))


class MatchedCall(NamedTuple):
    """A call that waits or would wait, as rules see it. `arguments` None: they are not an object, or contain a masked
    secret."""

    agent: str
    tool: str
    lookup_key: str
    identity: ToolIdentity
    effect: str
    arguments: dict[str, Any] | None


Rules = Mapping[str, list[AutoApprovalRule]]  # by lookup key


def call_of(request: Mapping[str, Any], team: str = "") -> MatchedCall:
    """Return the call from its `approval.requested` event and the team of its run."""
    tool = str(request.get("qualified_name") or request.get("name") or "")
    return MatchedCall(
        agent=str(request.get("agent") or ""),
        tool=tool,
        lookup_key=str(request.get("lookup_key") or f"bare:{tool}"),
        identity=identity_of(request, team),
        effect=str(request.get("effect") or ""),
        arguments=_arguments(request),
    )


def identity_of(tool: Mapping[str, Any], team: str) -> ToolIdentity:
    """Return a tool's identity from an approval request, or from the facts of a tool that is offered."""
    schema, origin, mcp_server = (str(tool.get(name) or "") for name in ("schema", "origin", "mcp_server"))
    return ToolIdentity(schema, origin, mcp_server, team)


def tool_of(rule: AutoApprovalRule) -> ToolIdentity:
    """Return the identity of the tool that a rule is for."""
    return ToolIdentity(rule.schema, rule.origin, rule.mcp_server, rule.team)


def fits(rule: AutoApprovalRule, call: MatchedCall, *, is_destructive: bool) -> bool:
    """Return whether a rule matches a call. A destructive call must match exactly: agent, tool and arguments."""
    if rule.lookup_key != call.lookup_key or rule.agent not in ("", call.agent) or call.arguments is None:
        return False
    if not tool_of(rule).matches(call.identity):
        return False
    if is_destructive and not (rule.agent and rule.is_exact):
        return False
    if rule.is_exact:
        return rule.digest == digest(call.arguments)
    return contains(call.arguments, json.loads(rule.arguments))


def contains(whole: object, part: object) -> bool:
    """Return whether a JSON value contains another: every field of an object; any other value must be equal."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and contains(whole[name], part[name]) for name in part)
    return canonical(whole) == canonical(part)


def canonical(value: object) -> str:
    """Return canonical JSON, in which equal values are equal texts; 1, 1.0 and true all differ. Raises ValueError for
    NaN."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical JSON."""
    return text_digest(canonical(value))


def live() -> list[AutoApprovalRule]:
    """Read the rules that may approve something now, in the order in which they are applied. Sync."""
    return list(AutoApprovalRule.objects.live(database_now()).order_by(*IN_TURN)[:MAX_RULES])


def by_key(rules: Iterable[AutoApprovalRule]) -> dict[str, list[AutoApprovalRule]]:
    """Group rules by tool."""
    grouped: dict[str, list[AutoApprovalRule]] = {}
    for rule in rules:
        grouped.setdefault(rule.lookup_key, []).append(rule)
    return grouped


def rules() -> Rules:
    """Return the live rules, at most half a second old. Sync."""
    return _cache.answer()


async def rules_in(do: RunInThread) -> Rules:
    """Return the live rules, at most half a second old; `do` runs the query. For event loops."""
    return await _cache.answer_in(do)


def forget() -> None:
    """Discard the cached rules because they have changed. Called after the commit."""
    _cache.forget()


def _arguments(request: Mapping[str, Any]) -> dict[str, Any] | None:
    arguments = request.get("args")
    if not isinstance(arguments, dict):
        return None
    try:
        return None if secret_masking.MASK in canonical(arguments) else arguments
    except (ValueError, RecursionError):
        return None


_cache: TtlCache[Rules] = TtlCache(lambda: by_key(live()), {})
