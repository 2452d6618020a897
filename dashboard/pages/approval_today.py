"""What would happen to an approval request's call today, by the current rules and tool. Used by the request's card; it
starts nothing."""

from conversations.core.errors import NotFound
from conversations.models import AutoApprovalRule
from conversations.rendering import event_rows, richtext
from conversations.runs.approvals import auto_approval_rules, request_terms
from conversations.runs.policy import evaluate
from conversations.runs.replay.eligibility import ReplayEligibility, eligibility_of
from conversations.tool_calls import call_record
from conversations.tool_calls.call_record import CallRecord
from dashboard.pages.base_context import Part


def today_context(call: str) -> Part | None:
    """Return the context of `partials/approval_today.html`; None if the call is not recorded."""
    try:
        recorded = call_record.find(call)
    except NotFound:
        return None
    eligibility = eligibility_of(recorded.row, recorded.called_body)
    notes = [*eligibility.notes, *(text for text in _asked_today(eligibility) if text)]
    glyph, text = _today(eligibility)
    if eligibility.rule == "ask" and not eligibility.why_not and (rule := _rule(recorded, eligibility)) is not None:
        glyph, text = "done", "It would run: an auto-approval rule applies"
        notes.append(
            f"The rule was created by {rule.made_by}. It applies to calls by agents; a replay still needs approval."
        )
    return {"call": recorded.row.id, "glyph": glyph, "words": text, "notes": [richtext.inline(note) for note in notes]}


def _rule(recorded: CallRecord, eligibility: ReplayEligibility) -> AutoApprovalRule | None:
    """Return the auto-approval rule that would approve the call, without counting a use."""
    about = evaluate.about(recorded.row.agent, recorded.tool)
    if recorded.call.approval_request is None or request_terms.of_call(about).no_always:
        return None
    request = event_rows.parse_event(recorded.call.approval_request).body
    call = auto_approval_rules.call_of({**request, "schema": eligibility.schema}, eligibility.team)
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
