"""The part of a call's page that makes it again: what would go, what it takes, and the form. Starts nothing."""

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
from conversations.rendering import event_rows, json_diff, json_tree, richtext
from conversations.runs.approvals import auto_approval_rules, terms
from conversations.runs.policy import evaluate
from conversations.runs.replay import eligibility, recorded_call
from conversations.runs.replay import request_replay as replays
from conversations.runs.replay.eligibility import ReplayEligibility
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

Part = dict[str, Any]  # what a template asks for by name


def today_of(recorded: RecordedCall) -> ReplayEligibility:
    """Return what the call's tool is today."""
    return eligibility.of_call(recorded.row, recorded.request)


def part(
    request: HttpRequest,
    recorded: RecordedCall,
    today: ReplayEligibility,
    entered: Mapping[str, str],
    error: SwitchboardError | None = None,
) -> Part:
    """Draw the form as it was filled in, and the request that it comes to."""
    schema = schema_of(today)
    sent = _object(recorded.ran)
    prepared, wrong = _requested(recorded, today, entered) if not today.why_not else ((sent or {}, "", False), None)
    wrong = error or wrong
    is_free = today.is_free(is_edited=prepared[2])
    may_replay = permissions.has_permission(request.user, "replay")
    targets = grants.granted_targets(request.user, grants.REPLAY) if may_replay else frozenset()
    return {
        "today": today,
        "why_not": richtext.inline(today.why_not),
        "is_free": is_free,
        "is_edited": prepared[2],
        "may": may_replay,
        "has_grant": not targets.isdisjoint({grants.ALL, today.tool}),
        "effect": EFFECTS[today.effect],
        "takes": "" if is_free else TAKES,
        "second": SECOND if today.needs_second else "It needs approval before it runs." if today.rule == "ask" else "",
        "notes": [richtext.inline(note) for note in today.notes],
        "by": _by(today),
        "request": request_parts(recorded, today, is_edited=prepared[2]),
        "goes": json_tree.draw(prepared[1]) if prepared[1] else None,
        "changes": json_diff.draw(recorded.ran, prepared[1]) if prepared[2] else None,
        "entries": argument_form.entries(schema, sent, entered or None, problems_of(wrong)) if schema else [],
        "has_schema": bool(schema),
        "raw": entered.get("raw") or (json.dumps(sent, indent=2, ensure_ascii=False) if sent is not None else ""),
        "entered": entered,
        "client_id": new_id(),
        "tool": hidden_characters.spelled_out(today.tool),
        "error": hidden_characters.spelled_out(wrong.sentence) if wrong else "",
    }


def posted_arguments(
    recorded: RecordedCall, today: ReplayEligibility, posted: Mapping[str, str]
) -> dict[str, Any] | str | None:
    """Read the arguments that a form gives; None for the recorded ones, which is what an untouched form gives."""
    how = posted.get("do", "")
    if how.endswith("raw"):
        return posted.get("raw", "")
    if not any(name.startswith(argument_form.PREFIX) for name in posted):
        return None
    schema, sent = schema_of(today), _object(recorded.ran)
    untouched = {f"{argument_form.PREFIX}{entry.name}": entry.value for entry in argument_form.entries(schema, sent)}
    now = {name: posted.get(name, "").replace("\r\n", "\n") for name in untouched}
    return None if now == untouched and sent is not None else argument_form.read(schema, posted)


def schema_of(today: ReplayEligibility) -> dict[str, Any]:
    """Return the JSON schema that arguments have to fit today."""
    schema = versions.body_of(today.schema).get("params_json_schema") if today.schema else None
    return schema if isinstance(schema, dict) else {}


def request_parts(recorded: RecordedCall, today: ReplayEligibility, *, is_edited: bool) -> list[tuple[str, Markup]]:
    """Return what a replay would be asked of the worker."""
    if not today.facts:
        return []
    limit = today.facts.get("timeout_s")
    guards = today.facts.get("guardrails")
    sides = guards if isinstance(guards, dict) else {}
    names = [str(name) for side in ("input", "output") for name in sides.get(side) or []]
    rows = [
        ("Tool", today.tool), ("Lookup key", today.text("lookup_key")), ("Agent", f"{today.agent} ({today.team})"),
        ("MCP server", today.text("mcp_server")), ("Call ID", "new"),
        ("Key", "key of the new call" if is_edited else eligibility.replay_root(recorded.row)),
        ("Enabled", today.text("enabled")), ("Guardrails", ", ".join(names) or "none"),
        ("Policy", {"allow": "allowed", "ask": "requires approval", "deny": "denied"}[today.rule]),
        ("Time limit", f"{limit:g} s" if isinstance(limit, int | float) else "the run's"),
        ("Memory", "the team’s current context; changes are not saved"),
    ]  # fmt: skip
    return [(term, richtext.inline(value[:400])) for term, value in rows if value]


def _requested(
    recorded: RecordedCall, today: ReplayEligibility, entered: Mapping[str, str]
) -> tuple[tuple[dict[str, Any], str, bool], SwitchboardError | None]:
    try:
        return replays.checked(recorded.as_ran, posted_arguments(recorded, today, entered), today.schema), None
    except Invalid as wrong:
        return ({}, "", False), wrong


def _by(today: ReplayEligibility) -> list[Markup]:
    reasons = [("requires approval", today.by), (f"treats it as {today.effect}", today.effect_by)]
    return [richtext.inline(f"The policy {reason} (set by {row.updated_by})") for reason, row in reasons if row]


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def question(call: str) -> Part | None:
    """Return what would happen to a question today: by the rules and the tool of now. Starts nothing."""
    try:
        recorded = recorded_call.find(call)
    except NotFound:
        return None
    today = today_of(recorded)
    notes = [*today.notes, *(text for text in _asked_today(today) if text)]
    glyph, text = _today(today)
    if today.rule == "ask" and not today.why_not and (rule := _rule(recorded, today)) is not None:
        glyph, text = "done", "It would run: an auto-approval rule applies"
        notes.append(
            f"The rule was created by {rule.made_by}. It applies to calls by agents; a replay still needs approval."
        )
    return {"call": recorded.row.id, "glyph": glyph, "words": text, "notes": [richtext.inline(note) for note in notes]}


def _rule(recorded: RecordedCall, today: ReplayEligibility) -> AutoApprovalRule | None:
    """Return the auto-approval rule that would approve the call, without counting a use."""
    about = evaluate.about(recorded.row.agent, recorded.tool)
    if recorded.call.approval_request is None or terms.of_call(about).no_always:
        return None
    call = auto_approval_rules.call_of(event_rows.read(recorded.call.approval_request).body)._replace(
        schema=today.schema
    )
    rules, is_destructive = auto_approval_rules.rules().get(call.lookup_key, ()), today.effect == "destructive"
    return next((rule for rule in rules if auto_approval_rules.fits(rule, call, is_destructive=is_destructive)), None)


def _today(today: ReplayEligibility) -> tuple[str, str]:
    if today.rule == "deny":
        return "rejected", "It would be denied without asking"
    if not today.facts or today.why_not:
        return "unknown", "It cannot be called"
    return ("waiting", "It would need approval") if today.rule == "ask" else ("done", "It would run without approval")


def _asked_today(today: ReplayEligibility) -> list[str]:
    reasons = [today.why_not]
    if today.by is not None and today.rule == "ask":
        reasons.append(f"Policy requires approval (set by {today.by.updated_by}).")
    if today.effect_by is not None:
        reasons.append(f"Policy treats it as {today.effect} (set by {today.effect_by.updated_by}).")
    if today.needs_second:
        reasons.append("It is destructive, so a second person has to approve a replay.")
    return reasons
