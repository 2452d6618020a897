"""The replay form on a call's page: what would be sent, what that requires, and which arguments were posted. It starts
nothing."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest
from markupsafe import Markup

from conversations.access import grants, permissions
from conversations.core import hidden_characters
from conversations.core.errors import Invalid, SwitchboardError
from conversations.core.ids import new_id
from conversations.core.json_values import parse_object
from conversations.rendering import diff_rows, json_tree, richtext
from conversations.runs.replay import request_replay
from conversations.runs.replay.eligibility import ReplayEligibility, eligibility_of, idempotency_key
from conversations.tool_calls.call_record import CallRecord
from conversations.tool_calls.schemas import argument_form, versions
from dashboard.pages.base_context import Part
from dashboard.pages.errors import problems_of

EFFECTS = {
    "read": "Read-only: one click is enough.",
    "idempotent": "Idempotent: one click repeats it with the recorded arguments and the original call’s key.",
    "unsafe": "Has side effects: each call takes effect again.",
    "destructive": "Destructive.",
}
BUTTONS: dict[argument_form.Editor, str] = {"fields": "Run for real", "raw": "Run with this JSON"}
TAKES = "Replaying it requires a reason, and the tool’s name typed in."
SECOND = "A second person has to approve it before it runs."
APPROVAL = "It needs approval before it runs."


def current_eligibility(recorded: CallRecord) -> ReplayEligibility:
    """Return whether and how the call could be replayed now."""
    return eligibility_of(recorded.row, recorded.called_body)


def form_context(
    request: HttpRequest,
    recorded: CallRecord,
    eligibility: ReplayEligibility,
    entered: Mapping[str, str],
    error: SwitchboardError | None = None,
) -> Part:
    """Return the form as it was filled in, with the request that would result."""
    schema = schema_of(eligibility)
    sent = parse_object(recorded.ran.strip())
    prepared, wrong = ((sent or {}, "", False), None)
    if not eligibility.why_not:
        prepared, wrong = _requested(recorded, eligibility, entered)
    wrong = error or wrong
    is_one_click = eligibility.is_one_click(is_edited=prepared[2])
    may_replay = permissions.has_permission(request.user, "replay")
    targets = grants.granted_targets(request.user, grants.REPLAY) if may_replay else frozenset()
    return {
        "eligibility": eligibility,
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
        "raw": argument_form.as_posted(entered.get("raw", _raw(sent))),
        "raw_was": argument_form.as_posted(_raw(sent)),
        "entered": entered,
        "client_id": new_id(),
        "tool": hidden_characters.spelled_out(eligibility.tool),
        "error": hidden_characters.spelled_out(wrong.sentence) if wrong else "",
    }


def posted_arguments(
    recorded: CallRecord, eligibility: ReplayEligibility, posted: Mapping[str, str]
) -> dict[str, Any] | str | None:
    """Return the arguments in the form, an object or raw text; None for the recorded ones, as an untouched form has.
    Raises Invalid if the pressed button is not that of the edited arguments."""
    editor: argument_form.Editor = "raw" if posted.get("do", "").endswith("raw") else "fields"
    sent = parse_object(recorded.ran.strip())
    return argument_form.posted_arguments(
        schema_of(eligibility), sent, posted, raw=_raw(sent), editor=editor, buttons=BUTTONS
    )


def schema_of(eligibility: ReplayEligibility) -> dict[str, Any]:
    """Return the JSON schema that arguments must match now."""
    schema = versions.body_of(eligibility.schema).get("params_json_schema") if eligibility.schema else None
    return schema if isinstance(schema, dict) else {}


def request_parts(recorded: CallRecord, eligibility: ReplayEligibility, *, is_edited: bool) -> list[tuple[str, Markup]]:
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


def _raw(sent: dict[str, Any] | None) -> str:
    return "" if sent is None else argument_form.as_json(sent)


def _requested(
    recorded: CallRecord, eligibility: ReplayEligibility, entered: Mapping[str, str]
) -> tuple[tuple[dict[str, Any], str, bool], SwitchboardError | None]:
    try:
        arguments = posted_arguments(recorded, eligibility, entered)
        return request_replay.read_arguments(recorded.as_ran, arguments, eligibility), None
    except Invalid as wrong:
        return ({}, "", False), wrong


def _by(eligibility: ReplayEligibility) -> list[Markup]:
    reasons = [("requires approval", eligibility.by), (f"treats it as {eligibility.effect}", eligibility.effect_by)]
    return [richtext.inline(f"The policy {reason} (set by {row.updated_by})") for reason, row in reasons if row]
