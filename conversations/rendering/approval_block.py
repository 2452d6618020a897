"""An approval request and its decision, as a part of the tool call's block. Called by `tool_call_block`."""

import json
import re
from typing import NamedTuple

from markupsafe import Markup

from conversations.core import principals
from conversations.events import registry
from conversations.events.log.records import LEFT, CallEvents
from conversations.rendering import diff_rows, event_rows, json_tree, richtext, timestamps
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from conversations.rendering.timestamps import When

FIELDS = frozenset(
    {"approval_id", "why", "deadline", "on_expiry", "notify", "decision", "message", "reason", "arguments_digest"}
)
SPENDERS = {"run": "This run", "conversation": "This conversation"}
_STATES = {"approve": "approved", "reject": "rejected", "respond": "answered", "edit": "edited"}
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class ApprovalBlock(NamedTuple):
    """The context of templates/events/approval_block.html. `approval` is its id while it can be decided, else empty."""

    # waiting, approved, rejected, answered, edited, withdrawn (its run ended), expired, over: nobody decided; left: nor
    # had anybody where a fork begins
    state: str
    approval: str
    asker: Markup
    asked_at: When
    why: Markup | None
    decider: Markup | None
    decided: When | None
    message: Markup | None
    reason: Markup | None
    edited: Markup | None = None  # the arguments that a person wrote
    changes: diff_rows.RenderedDiff | None = None  # what they made of those that were sent
    answer: Markup | None = None  # what a person answered for the tool
    rule: str = ""  # the auto-approval rule that approved it, or that was made with the decision
    is_auto_approved: bool = False  # `decider` made the rule; nobody was asked
    is_budget: bool = False  # no tool is called: what may be spent is spent
    spender: Markup | str = ""  # whose budget it is: that of the run, the conversation or the agent
    replay_by: Markup | None = None  # the person who requested the replay that waits; the agent wants nothing
    replay_reason: Markup | None = None


def closed_as(kind: str) -> str:
    """Return the state in which an event of this type closes an undecided approval request; empty for a decision."""
    return event_type.closes_request if (event_type := registry.declared(kind)) else ""


def of_call(call: CallEvents, request: event_rows.ParsedEvent) -> ApprovalBlock:
    """Return the approval request of a call, from the events of the request and the decision."""
    decided = event_rows.parse_event(call.approval_decision) if call.approval_decision else None
    state = call.status if call.status in ("waiting", LEFT) else "over"
    if decided:
        state = closed_as(decided.event.kind) or _STATES.get(str(decided.body.get("decision")), "approved")
    rule = _rule(decided, "rule") if decided else ""
    replay = _replay(call)
    asker = event_rows.named(mark_for(request.payload.speaker, request.event.principal))
    approval = request.body.get("approval_id")
    is_open = state == "waiting" and isinstance(approval, str) and _ID.fullmatch(approval) is not None
    return ApprovalBlock(
        state=state,
        approval=str(approval) if is_open else "",
        asker=asker,
        asked_at=_when(request),
        why=_words(request, "why"),
        decider=event_rows.named(_decider(decided)) if decided and _has_decider(decided) else None,
        decided=_when(decided) if decided else None,
        message=_words(decided, "message") if decided else None,
        reason=_words(decided, "reason") if decided else None,
        edited=_json(decided, "args_raw") if decided and state == "edited" else None,
        changes=_changes(request, decided) if decided and state == "edited" else None,
        answer=_json(decided, "output") if decided and state == "answered" else None,
        rule=rule or (_rule(decided, "makes_rule") if decided else ""),
        is_auto_approved=bool(rule),
        is_budget=request.body.get("origin") == "budget" and principals.is_ours(request.event.principal),
        spender=SPENDERS.get(_scope(request), asker),
        replay_by=event_rows.named(mark_for(event_rows.author(replay), event_rows.doer(replay))) if replay else None,
        replay_reason=_words(replay, "reason") if replay else None,
    )


def _scope(request: event_rows.ParsedEvent) -> str:
    """Return what a budget is for: run, conversation or agent."""
    arguments = request.body.get("args")
    return str(arguments.get("per")) if isinstance(arguments, dict) else ""


def _replay(call: CallEvents) -> event_rows.ParsedEvent | None:
    """Return the event that requested the call, if it is a replay of ours."""
    is_replay = call.called.kind == "replay.requested" and call.called.run is not None
    return event_rows.parse_event(call.called) if is_replay else None


def _has_decider(decided: event_rows.ParsedEvent) -> bool:
    """Return whether a decider is shown: a request that ended undecided was ended by a person or by nobody."""
    return not closed_as(decided.event.kind) or event_rows.doer(decided).startswith(("user:", "token:"))


def _rule(decided: event_rows.ParsedEvent, name: str) -> str:
    """Return the id of the rule that one of our events names; empty for none."""
    rule_id = decided.body.get(name)
    is_ours = principals.is_ours(decided.event.principal) and isinstance(rule_id, str)
    return str(rule_id) if is_ours and _ID.fullmatch(str(rule_id)) else ""


def _decider(decided: event_rows.ParsedEvent) -> ParticipantMark:
    """Return who decided, or who made the rule: decisions of a token or a rule are stored by the system, with the
    name."""
    principal, by = decided.event.principal, decided.body.get("rule_by") or decided.body.get("by")
    if principal == "system" and isinstance(by, str) and by.startswith(("user:", "token:")):
        return mark_for(by, by)
    if principal.startswith("user:"):
        return mark_for(principal, principal)
    return mark_for("system" if principals.is_ours(principal) else principal)


def _when(read: event_rows.ParsedEvent) -> When:
    return timestamps.of_event(read.event.at, read.event.principal, {}).shown


def _json(read: event_rows.ParsedEvent, name: str) -> Markup | None:
    text = read.body.get(name)
    if not isinstance(text, str):
        return None
    return json_tree.draw(text) if name == "args_raw" else json_tree.draw_text(text)


def _changes(request: event_rows.ParsedEvent, decided: event_rows.ParsedEvent) -> diff_rows.RenderedDiff | None:
    sent, ran = request.body.get("args_raw"), decided.body.get("args_raw")
    if sent is None and "args" in request.body:
        sent = json.dumps(request.body["args"])
    return diff_rows.draw(sent, ran) if isinstance(sent, str) and isinstance(ran, str) else None


def _words(read: event_rows.ParsedEvent, name: str) -> Markup | None:
    text = read.body.get(name)
    return richtext.inline(text.strip()[:2000]) if isinstance(text, str) and text.strip() else None
