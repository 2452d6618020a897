"""A question to a person about a tool call, and its decision: the part of a block that asks. Called by calls."""

import re
from typing import NamedTuple

from markupsafe import Markup

from conversations import principals
from conversations.fragments import faces, jsontree, richtext, times
from conversations.fragments.times import When
from conversations.fragments.who import Who, who
from conversations.log.events import LEFT, Call

FIELDS = frozenset(
    {"approval_id", "why", "deadline", "on_expiry", "notify", "decision", "message", "reason", "arguments_digest"}
)
_STATES = {"approve": "approved", "reject": "rejected", "respond": "answered", "edit": "edited"}
_ENDS = {"approval.cancelled": "withdrawn", "approval.expired": "expired"}
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Question(NamedTuple):
    """What templates/events/question.html draws. `approval` is its id while it can be decided, else empty."""

    # waiting, approved, rejected, answered, edited, withdrawn (its run ended), expired, over: nobody decided; left: nor
    # had anybody where a fork begins
    state: str
    approval: str
    asker: Markup
    asked: When
    why: Markup | None
    decider: Markup | None
    decided: When | None
    message: Markup | None
    reason: Markup | None
    edited: Markup | None = None  # the arguments that a person wrote
    answer: Markup | None = None  # what a person answered for the tool
    rule: str = ""  # the always rule that approved it, or that was made with the decision
    is_by_rule: bool = False  # `decider` made the rule; nobody was asked


def of_call(call: Call, asked: faces.Read) -> Question:
    """Read a call's question from the event that asked and the one that decided."""
    decided = faces.read(call.decided) if call.decided else None
    state = call.status if call.status in ("waiting", LEFT) else "over"
    if decided:
        state = _ENDS.get(decided.event.kind) or _STATES.get(str(decided.body.get("decision")), "approved")
    rule = _rule(decided, "rule") if decided else ""
    approval = asked.body.get("approval_id")
    is_open = state == "waiting" and isinstance(approval, str) and _ID.fullmatch(approval) is not None
    return Question(
        state=state,
        approval=str(approval) if is_open else "",
        asker=faces.named(who(asked.said.speaker, asked.event.principal)),
        asked=_when(asked),
        why=_words(asked, "why"),
        decider=faces.named(_decider(decided)) if decided and _has_decider(state, decided) else None,
        decided=_when(decided) if decided else None,
        message=_words(decided, "message") if decided else None,
        reason=_words(decided, "reason") if decided else None,
        edited=_json(decided, "args_raw") if decided and state == "edited" else None,
        answer=_json(decided, "output") if decided and state == "answered" else None,
        rule=rule or (_rule(decided, "makes_rule") if decided else ""),
        is_by_rule=bool(rule),
    )


def _has_decider(state: str, decided: faces.Read) -> bool:
    """Tell whether somebody is to be named: a question that ended by itself was ended by a person, or by nobody."""
    return state not in _ENDS.values() or decided.event.principal.startswith("user:")


def _rule(decided: faces.Read, name: str) -> str:
    """Answer the id of a rule that one of our events names."""
    found = decided.body.get(name)
    is_ours = principals.is_ours(decided.event.principal) and isinstance(found, str)
    return str(found) if is_ours and _ID.fullmatch(str(found)) else ""


def _decider(decided: faces.Read) -> Who:
    """Answer who decided, or made the rule: what a token or a rule decided is written down by the system, with the
    name."""
    principal, by = decided.event.principal, decided.body.get("rule_by") or decided.body.get("by")
    if principal == "system" and isinstance(by, str) and by.startswith("user:"):
        return who(by, by)
    if principal == "system" and isinstance(by, str) and by.startswith("token:"):
        return who(by, by)
    is_person = principal.startswith("user:")
    return who(principal, principal) if is_person else who("system" if principals.is_ours(principal) else principal)


def _when(read: faces.Read) -> When:
    return times.of_event(read.event.at, read.event.principal, {}).shown


def _json(read: faces.Read, name: str) -> Markup | None:
    text = read.body.get(name)
    if not isinstance(text, str):
        return None
    return jsontree.draw(text) if name == "args_raw" else jsontree.draw_text(text)


def _words(read: faces.Read, name: str) -> Markup | None:
    text = read.body.get(name)
    return richtext.inline(text.strip()[:2000]) if isinstance(text, str) and text.strip() else None
