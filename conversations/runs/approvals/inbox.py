"""Present approval requests for pages, the API and the state topic `approvals` (`live_requests`)."""

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.template.loader import get_template
from django.urls import reverse
from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.errors import Invalid, NotFound
from conversations.core.html_escape import safe
from conversations.core.micros import to_datetime
from conversations.events import log, recorded_arguments
from conversations.events.log.records import Stored
from conversations.models import Approval, ToolCall
from conversations.models.approval import DECISION_WORDS
from conversations.models.tool_call import NEWEST_FIRST
from conversations.rendering import agent_colors, call_question, richtext, tool_call_block
from conversations.rendering.participant_marks import ParticipantMark, mark_for_name
from conversations.runs.approvals import (
    auto_approval_rules,
    inbox_filters,
    pending_counts,
    replay_origin,
    request_terms,
    stranded_requests,
)
from conversations.runs.budgets import budget_requests
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Declared
from conversations.runs.policy.file_format import describe_target

logger = logging.getLogger(__name__)

LATELY = 5  # calls of an agent that are shown beside its approval request
STATUSES = ("pending", "decided", "expired", "cancelled")
THEN = {"wait": "it keeps waiting", "reject": "the call is rejected", "notify": "{role} is notified"}
MAX_ESCALATED = 200
MAX_BYTES = 8 << 20  # of the requests of a page, or one request
ALL_DECISIONS = frozenset({"approve", "edit", "reject", "respond"})
OVER = {"cancelled": "withdrawn"}  # status → word
GLYPHS = {**tool_call_block.STATES, "approved": "done", "executing": "running"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecentCall:
    """A recent call of an agent."""

    name: Markup
    status: str
    conversation: str
    seq: int
    at: datetime

    @property
    def glyph(self) -> str:
        """The icon of its status."""
        return GLYPHS.get(self.status, "unknown")


@dataclass(frozen=True, slots=True)
class ApprovalCard:
    """An approval request. `request` is the body of `event`, which created it; `effect` and `terms` follow the current
    policy; `barred` are the principals who may not decide it (four eyes). `edited` are the arguments that a person
    entered instead, as JSON text; None if they were not changed. `stranded` says why its run cannot go on with it.
    `replay` is what a person requested, if the call replays another one."""

    row: Approval
    key: str
    title: Markup
    request: Json
    event: Stored
    agent: ParticipantMark
    effect: str
    policy: evaluate.Effective
    terms: request_terms.ApprovalTerms
    barred: frozenset[str]
    edited: str | None = None
    stranded: str = ""
    replay: replay_origin.ReplayOrigin | None = None

    @property
    def requester(self) -> ParticipantMark:
        """Who wants the call: the agent, or the person who wants to replay it."""
        return self.replay.by if self.replay else self.agent

    @property
    def is_open(self) -> bool:
        """Return whether it can still be decided."""
        return self.row.status == "pending"

    @property
    def version(self) -> int:
        """The seq of its last change."""
        return self.row.decided_seq or self.row.escalated_seq or self.row.asked_seq

    @property
    def asked_at(self) -> datetime:
        """When it was created."""
        return to_datetime(self.row.asked_at)

    @property
    def deadline(self) -> datetime | None:
        """Its deadline."""
        until = request_terms.deadline_of(self.row)
        return to_datetime(until) if until is not None else None

    @property
    def on_expiry(self) -> evaluate.OnExpiry:
        """What happens at the deadline."""
        return request_terms.terms_of_request(self.request)[0]

    @property
    def then(self) -> str:
        """What happens at the deadline, as text."""
        return THEN[self.on_expiry].format(
            role=hidden_characters.spelled_out(request_terms.terms_of_request(self.request)[1])
        )

    @property
    def escalated(self) -> str:
        """The role that was notified, while it is open."""
        return hidden_characters.spelled_out(self.row.escalated_to) if self.is_open else ""

    @property
    def risk(self) -> str:
        """What the policy states about such a call, beside its effect; empty if nothing."""
        row = self.policy.effect_by or self.policy.by
        note = f": {row.note}" if row is not None and row.note else ""
        if row is None:
            return "assumed for external agents" if self.is_external else "set in team code"
        return hidden_characters.spelled_out(f"by policy for {describe_target(row)}{note}")

    @property
    def verdict(self) -> str:
        """The outcome and who decided, as text; empty while it is open."""
        if self.is_open:
            return ""
        words = "approved by an auto-approval rule" if self.row.rule else self._outcome
        return hidden_characters.spelled_out(f"{words}; {self.stranded}" if self.stranded else words)

    @property
    def _outcome(self) -> str:
        words = DECISION_WORDS.get(self.row.decision or "", OVER.get(self.row.status, self.row.status))
        by = (self.row.decided_by or "").removeprefix("user:")
        return f"{words} by {by}" if by and by != "system" else words

    @property
    def glyph(self) -> str:
        """The icon of its outcome."""
        if self.is_open:
            return "waiting"
        if self.stranded:
            return "unknown"
        return "rejected" if self.row.decision in (None, "", "reject") else "done"

    @property
    def is_denied(self) -> bool:
        """Return whether the policy now denies the call, so that it would not run even if approved."""
        return self.is_open and self.policy.rule == "deny"

    @property
    def decisions(self) -> frozenset[str]:
        """The decisions that the requester accepts."""
        taken = self.request.get("decisions")
        return frozenset(map(str, taken)) if isinstance(taken, list) else ALL_DECISIONS

    @property
    def is_external(self) -> bool:
        """Return whether an external agent requested it: none of our rules approves its calls."""
        return "decisions" in self.request

    @property
    def is_budget(self) -> bool:
        """Return whether it is about a budget, without a call."""
        return budget_requests.is_budget(self.request)

    @property
    def name(self) -> str:
        """The tool's name, safe in text and attributes."""
        return hidden_characters.spelled_out(self.tool)

    @property
    def subject(self) -> str:
        """What it is about in a word or two: the tool's name, or more budget."""
        return "more budget" if self.is_budget else self.name

    @property
    def agent_name(self) -> str:
        """The agent's name, safe in text and attributes."""
        return hidden_characters.spelled_out(str(self.request.get("agent") or ""))

    @property
    def question(self) -> str:
        """The request as a question in words, safe in text and attributes; the tool's name if it has none."""
        if self.is_budget:
            return hidden_characters.spelled_out(str(self.request.get("why") or self.tool))
        return call_question.question_of(self.tool, self.request.get("args")) or self.name

    @property
    def tool(self) -> str:
        """The tool's qualified name, as recorded."""
        return str(self.request.get("qualified_name") or self.request.get("name") or "")

    @property
    def identity(self) -> dict[str, str]:
        """The recorded layers of the tool's identity."""
        names = {"origin": "Origin", "mcp_server": "MCP server", "namespace": "Namespace", "lookup_key": "Lookup key"}
        return {
            label: hidden_characters.spelled_out(str(self.request[name]))[:200]
            for name, label in names.items()
            if self.request.get(name)
        }


def page(
    *,
    status: str = "",
    before: str = "",
    limit: int = 50,
    is_oldest_first: bool = False,
    filters: inbox_filters.Filters = inbox_filters.NONE,
) -> tuple[list[ApprovalCard], str | None]:
    """Return requests newest first, or oldest first, and the id after which the next page starts. `status`: one of
    STATUSES, or all.

    Includes pending ones only if their run waits, because others cannot be decided. The first page starts with
    escalated ones (live, `#put` of static/js/approval-rows.js does the same), beyond the limit, as far as they do not
    exceed `MAX_BYTES`. A page ends early where its requests
    exceed `MAX_BYTES`, and with `filters` where as many requests were looked at as one page may. Raises `Invalid`.
    """
    approvals = _listed(status, is_oldest_first).select_related("conversation")
    first: list[Approval] = []
    if status == "pending":
        escalated = approvals.filter(id__in=_first_escalated(approvals))
        first = [] if before else inbox_filters.passing(escalated, filters)
        approvals = approvals.exclude(id__in=escalated.values_list("id", flat=True))
    if before:
        approvals = approvals.filter(**{"id__gt" if is_oldest_first else "id__lt": before[:64]})
    looked, is_full = inbox_filters.look(approvals) if filters else ([], False)
    if filters:
        approvals = approvals.filter(id__in=[request.id for request in looked if filters.takes(request)][: limit + 1])
    rows = list(approvals[: limit + 1])
    cards, read = _cards_within(rows[:limit], MAX_BYTES)
    end = rows[read - 1].id if read < len(rows) else looked[-1].id if is_full else None
    return [*cards_of(first), *cards], end


def _first_escalated(approvals: QuerySet[Approval]) -> list[str]:
    """Return the ids of the escalated requests that come before all others. The database measures them; none is
    read."""
    escalated = approvals.filter(status="pending", escalated_seq__gt=0)
    ids: list[str] = []
    total = 0
    for id_, size in inbox_filters.sizes(escalated, MAX_ESCALATED):
        total += size
        if ids and total > MAX_BYTES:
            break
        ids.append(id_)
    return ids


def facets(*, status: str, is_oldest_first: bool, filters: inbox_filters.Filters) -> list[inbox_filters.RequestFacet]:
    """Count what each agent, tool and risk would leave of the first requests with this status."""
    return inbox_filters.facets(_listed(status, is_oldest_first), filters)


def _listed(status: str, is_oldest_first: bool) -> QuerySet[Approval]:
    if status and status not in STATUSES:
        raise Invalid(f"must be one of {', '.join(STATUSES)}", field="status")
    approvals = Approval.objects.filter(conversation__is_staged=False)
    approvals = approvals.open() if status == "pending" else approvals.filter(status=status) if status else approvals
    return approvals.order_by("id" if is_oldest_first else "-id")


def stranded() -> list[ApprovalCard]:
    """Return the newest requests whose run ended before it could go on with them."""
    return cards_of(stranded_requests.newest())


def find(approval: str) -> ApprovalCard:
    """Return one request. Raises NotFound."""
    rows = Approval.objects.filter(id=approval[:64], conversation__is_staged=False).select_related("conversation")
    cards = cards_of(list(rows))
    if not cards:
        raise NotFound(f"there is no approval {approval[:80]!r}")
    return cards[0]


def block(card: ApprovalCard) -> Markup:
    """Render a request as its block in the transcript."""
    calls = log.calls_of(card.key, [card.event])
    return tool_call_block.card(calls[card.event.seq], reverse("conversation", args=[card.key]))


def recent_calls(card: ApprovalCard) -> list[RecentCall]:
    """Return the latest calls of the agent of an open request, without the requested call itself."""
    if not card.is_open:
        return []
    recent = _lately(str(card.request.get("agent") or ""))
    return [call for call in recent if call.seq != card.row.asked_seq or call.conversation != card.key][:LATELY]


def drawn(card: ApprovalCard) -> Markup:
    """Render a request as a row of the list, the same for everybody, on the page and live. One that cannot be rendered
    is left out and logged."""
    try:
        return safe(get_template("partials/approval_row.html").render({"card": card}).strip())
    except Exception:
        logger.exception("the approval request %r could not be drawn", card.row.id)
        return Markup()


def cards_of(rows: Sequence[Approval]) -> list[ApprovalCard]:
    """Build requests from rows. One whose event cannot be read is left out and logged."""
    return _cards_within(rows, math.inf)[0]


def _cards_within(rows: Sequence[Approval], most: float) -> tuple[list[ApprovalCard], int]:
    """Build requests from rows until they exceed `most` bytes; return them and how many rows were read. One whose event
    cannot be read is left out without affecting the others."""
    agent_colors.refresh_colors()
    cards: list[ApprovalCard] = []
    barred = pending_counts.excluded_approvers([row.id for row in rows if row.status == "pending"])
    ended = stranded_requests.reasons(rows)
    size = 0
    for number, row in enumerate(rows, 1):
        try:
            cards.append(_card(row, frozenset(barred.get(row.id, ())), ended.get(row.id, "")))
        except Exception:
            logger.exception("the approval request %r could not be drawn", row.id)
            continue
        size += len(cards[-1].event.body)
        if size > most:
            return cards, number
    return cards, len(rows)


def _card(row: Approval, barred: frozenset[str], stranded: str) -> ApprovalCard:
    key = row.conversation.key
    (event,) = log.read_after(key, row.asked_seq - 1, 1)
    request: Json = json.loads(event.body)
    agent = str(request.get("agent") or "")
    tool = auto_approval_rules.call_of(request).tool
    held = evaluate.for_tool(agent, tool, Declared("ask", evaluate.as_effect(request.get("effect"))))
    return ApprovalCard(
        row=row,
        key=key,
        title=richtext.inline((row.conversation.title or key)[:200]),
        request=request,
        event=event,
        agent=mark_for_name(agent),
        effect=held.effect,
        policy=held,
        terms=request_terms.of_call(evaluate.matching(evaluate.rows(), agent, tool)),
        barred=barred,
        edited=_edited(row),
        stranded=stranded,
        replay=replay_origin.of_request(row, request),
    )


def _edited(row: Approval) -> str | None:
    if row.decision != "edit" or row.decided_seq is None:
        return None
    return recorded_arguments.edited(recorded_arguments.body_of(row.conversation_id, row.decided_seq))


def _lately(agent: str) -> list[RecentCall]:
    fields = ("name", "namespace", "status", "conversation__key", "called_seq", "started_at")
    rows = ToolCall.objects.filter(Q(run__isnull=False), agent=agent).order_by(*NEWEST_FIRST).values_list(*fields)
    return [
        RecentCall(richtext.inline(f"{space}.{name}" if space and space != name else name), status, key, seq,
             to_datetime(at))
        for name, space, status, key, seq, at in rows[: LATELY + 1]
    ]  # fmt: skip
