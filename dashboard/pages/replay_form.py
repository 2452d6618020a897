"""The replay form on a call's page: what would be sent, what that requires, which arguments were posted, and what a
replay's approval request would show today (`approval_today`). It starts nothing."""

import json
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from markupsafe import Markup

from conversations.access import grants, permissions
from conversations.core import hidden_characters
from conversations.core.errors import Invalid, NotFound, SwitchboardError
from conversations.core.ids import new_id
from conversations.models import AutoApprovalRule
from conversations.rendering import diff_rows, event_rows, json_tree, richtext
from conversations.runs.approvals import auto_approval_rules, terms
from conversations.runs.policy import evaluate
from conversations.runs.replay import recorded_call, request_replay
from conversations.runs.replay.eligibility import ReplayEligibility, eligibility_of, idempotency_key
from conversations.runs.replay.recorded_call import RecordedCall
from conversations.tool_calls.schemas import argument_form, versions
from dashboard.pages.errors import problems_of

EFFECTS = {
    "read": "Read-only: one click is enough.",
    "idempotent": "Idempotent: one click repeats it with the recorded arguments and the original call’s key.",
    "unsafe": "Has side effects: each call takes effect again.",
    "destructive": "Destructive.",
}
TAKES = "Replaying it requires a grant, a reason, and the tool’s name typed in."
SECOND = "A second person has to approve it before it runs."
APPROVAL = "It needs approval before it runs."

Part = dict[str, Any]  # what a template asks for by name


def current_eligibility(recorded: RecordedCall) -> ReplayEligibility:
    """Return whether and how the call could be replayed now."""
    return eligibility_of(recorded.row, recorded.called_body)


def form_context(
    request: HttpRequest,
    recorded: RecordedCall,
    eligibility: ReplayEligibility,
    entered: Mapping[str, str],
    error: SwitchboardError | None = None,
) -> Part:
    """Return the form as it was filled in, with the request that would result."""
    schema = schema_of(eligibility)
    sent = _object(recorded.ran)
    prepared, wrong = ((sent or {}, "", False), None)
    if not eligibility.why_not:
        prepared, wrong = _requested(recorded, eligibility, entered)
    wrong = error or wrong
    is_one_click = eligibility.is_one_click(is_edited=prepared[2])
    may_replay = permissions.has_permission(request.user, "replay")
    targets = grants.granted_targets(request.user, grants.REPLAY) if may_replay else frozenset()
    return {
        "today": eligibility,
        "why_not": richtext.inline(eligibility.why_not),
        "is_one_click": is_one_click,
        "is_edited": prepared[2],
        "may": may_replay,
        "has_grant": not targets.isdisjoint({grants.ALL, eligibility.tool}),
        "effect": EFFECTS[eligibility.effect],
        "takes": "" if is_one_click else TAKES,
        "second": SECOND if eligibility.needs_second else APPROVAL if eligibility.rule == "ask" else "",
        "notes": [richtext.inline(note) for note in eligibility.notes],
        "by": _by(eligibility),
        "request": request_parts(recorded, eligibility, is_edited=prepared[2]),
        "goes": json_tree.draw(prepared[1]) if prepared[1] else None,
        "changes": diff_rows.draw(recorded.ran, prepared[1]) if prepared[2] else None,
        "entries": argument_form.entries(schema, sent, entered or None, problems_of(wrong)) if schema else [],
        "has_schema": bool(schema),
        "raw": entered.get("raw") or (json.dumps(sent, indent=2, ensure_ascii=False) if sent is not None else ""),
        "entered": entered,
        "client_id": new_id(),
        "tool": hidden_characters.spelled_out(eligibility.tool),
        "error": hidden_characters.spelled_out(wrong.sentence) if wrong else "",
    }


def posted_arguments(
    recorded: RecordedCall, eligibility: ReplayEligibility, posted: Mapping[str, str]
) -> dict[str, Any] | str | None:
    """Return the arguments in the form, an object or raw text; None for the recorded ones, as an untouched form has."""
    how = posted.get("do", "")
    if how.endswith("raw"):
        return posted.get("raw", "")
    if not any(name.startswith(argument_form.PREFIX) for name in posted):
        return None
    schema, sent = schema_of(eligibility), _object(recorded.ran)
    untouched = {f"{argument_form.PREFIX}{entry.name}": entry.value for entry in argument_form.entries(schema, sent)}
    now = {name: posted.get(name, "").replace("\r\n", "\n") for name in untouched}
    return None if now == untouched and sent is not None else argument_form.read(schema, posted)


def schema_of(eligibility: ReplayEligibility) -> dict[str, Any]:
    """Return the JSON schema that arguments must match now."""
    schema = versions.body_of(eligibility.schema).get("params_json_schema") if eligibility.schema else None
    return schema if isinstance(schema, dict) else {}


def request_parts(
    recorded: RecordedCall, eligibility: ReplayEligibility, *, is_edited: bool
) -> list[tuple[str, Markup]]:
    """Return what a replay would request from the worker, as terms and values."""
    if not eligibility.facts:
        return []
    limit = eligibility.facts.get("timeout_s")
    guards = eligibility.facts.get("guardrails")
    sides = guards if isinstance(guards, dict) else {}
    names = [str(name) for side in ("input", "output") for name in sides.get(side) or []]
    rows = [
        ("Tool", eligibility.tool), ("Lookup key", eligibility.text("lookup_key")),
        ("Agent", f"{eligibility.agent} ({eligibility.team})"),
        ("MCP server", eligibility.text("mcp_server")), ("Call ID", "new"),
        ("Key", "key of the new call" if is_edited else idempotency_key(recorded.row)),
        ("Enabled", eligibility.text("enabled")), ("Guardrails", ", ".join(names) or "none"),
        ("Policy", {"allow": "allowed", "ask": "requires approval", "deny": "denied"}[eligibility.rule]),
        ("Time limit", f"{limit:g} s" if isinstance(limit, int | float) else "the run's"),
        ("Memory", "the team’s current context; changes are not saved"),
    ]  # fmt: skip
    return [(term, richtext.inline(value[:400])) for term, value in rows if value]


def _requested(
    recorded: RecordedCall, eligibility: ReplayEligibility, entered: Mapping[str, str]
) -> tuple[tuple[dict[str, Any], str, bool], SwitchboardError | None]:
    try:
        arguments = posted_arguments(recorded, eligibility, entered)
        return request_replay.checked(recorded.as_ran, arguments, eligibility.schema), None
    except Invalid as wrong:
        return ({}, "", False), wrong


def _by(eligibility: ReplayEligibility) -> list[Markup]:
    reasons = [("requires approval", eligibility.by), (f"treats it as {eligibility.effect}", eligibility.effect_by)]
    return [richtext.inline(f"The policy {reason} (set by {row.updated_by})") for reason, row in reasons if row]


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def approval_today(call: str) -> Part | None:
    """Return how an approval request's call would be decided now, by the current rules and tool; None if the call is
    not recorded. It starts nothing."""
    try:
        recorded = recorded_call.find(call)
    except NotFound:
        return None
    eligibility = current_eligibility(recorded)
    notes = [*eligibility.notes, *(text for text in _asked_today(eligibility) if text)]
    glyph, text = _today(eligibility)
    if eligibility.rule == "ask" and not eligibility.why_not and (rule := _rule(recorded, eligibility)) is not None:
        glyph, text = "done", "It would run: an auto-approval rule applies"
        notes.append(
            f"The rule was created by {rule.made_by}. It applies to calls by agents; a replay still needs approval."
        )
    return {"call": recorded.row.id, "glyph": glyph, "words": text, "notes": [richtext.inline(note) for note in notes]}


def _rule(recorded: RecordedCall, eligibility: ReplayEligibility) -> AutoApprovalRule | None:
    """Return the auto-approval rule that would approve the call, without counting a use."""
    about = evaluate.about(recorded.row.agent, recorded.tool)
    if recorded.call.approval_request is None or terms.of_call(about).no_always:
        return None
    call = auto_approval_rules.call_of(event_rows.read(recorded.call.approval_request).body)._replace(
        schema=eligibility.schema
    )
    rules, is_destructive = auto_approval_rules.rules().get(call.lookup_key, ()), eligibility.effect == "destructive"
    return next((rule for rule in rules if auto_approval_rules.fits(rule, call, is_destructive=is_destructive)), None)


def _today(eligibility: ReplayEligibility) -> tuple[str, str]:
    if eligibility.rule == "deny":
        return "rejected", "It would be denied without asking"
    if not eligibility.facts or eligibility.why_not:
        return "unknown", "It cannot be called"
    return (
        ("waiting", "It would need approval")
        if eligibility.rule == "ask"
        else ("done", "It would run without approval")
    )


def _asked_today(eligibility: ReplayEligibility) -> list[str]:
    reasons = [eligibility.why_not]
    if eligibility.by is not None and eligibility.rule == "ask":
        reasons.append(f"Policy requires approval (set by {eligibility.by.updated_by}).")
    if eligibility.effect_by is not None:
        reasons.append(f"Policy treats it as {eligibility.effect} (set by {eligibility.effect_by.updated_by}).")
    if eligibility.needs_second:
        reasons.append("It is destructive, so a second person has to approve a replay.")
    return reasons
