"""Questions about tool calls, as the approvals page and the `approvals` topic show them. Called by pages, API, hub."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.template.loader import get_template
from django.urls import reverse
from markupsafe import Markup

from conversations import always, badge, hues, log, policy, terms
from conversations.errors import Invalid, NotFound
from conversations.fragments import calls, hidden, richtext
from conversations.fragments.markup import safe
from conversations.fragments.who import Who, of_name
from conversations.log.events import Stored
from conversations.models import Approval, ToolCall
from conversations.models.tool_call import NEWEST_FIRST
from conversations.policy import EFFECTS, Declared, Effect
from conversations.policy_form import whom

logger = logging.getLogger(__name__)

LATELY = 5  # calls of an agent that are told beside its question
STATUSES = ("pending", "decided", "expired", "cancelled")
THEN = {"wait": "it keeps waiting", "reject": "the call is not made", "notify": "{role} is told"}
MOST_ESCALATED = 200
GLYPHS = {**calls.STATES, "approved": "done", "executing": "running"}

VERSION = Coalesce("decided_seq", "escalated_seq", "asked_seq")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Late:
    """What an agent did lately."""

    name: Markup
    status: str
    conversation: str
    seq: int
    at: datetime

    @property
    def glyph(self) -> str:
        """The sign of its status."""
        return GLYPHS.get(self.status, "unknown")


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `told` is the body of the event that asked, `drawn` its card; `effect` and `terms` by the
    operators' policy as it is now; `barred` are the principals who may not decide it (four eyes)."""

    row: Approval
    key: str
    title: Markup
    told: Json
    drawn: Markup
    agent: Who
    effect: str
    lately: list[Late]
    held: policy.Effective
    terms: terms.Terms
    barred: frozenset[str]

    @property
    def is_open(self) -> bool:
        """Tell whether it can be decided still."""
        return self.row.status == "pending"

    @property
    def version(self) -> int:
        """The seq that last changed it."""
        return self.row.decided_seq or self.row.escalated_seq or self.row.asked_seq

    @property
    def asked_at(self) -> datetime:
        """When it was asked."""
        return datetime.fromtimestamp(self.row.asked_at / 1e6, UTC)

    @property
    def deadline(self) -> datetime | None:
        """When its time is up."""
        until, limit_s = self.row.deadline, settings.CONFIG.approval_s
        if until is None and limit_s:
            until = self.row.asked_at + int(limit_s * 1e6)
        return datetime.fromtimestamp(until / 1e6, UTC) if until is not None else None

    @property
    def on_expiry(self) -> policy.OnExpiry:
        """What its end does."""
        return terms.asked(self.told)[0]

    @property
    def then(self) -> str:
        """What happens when its time is up."""
        return THEN[self.on_expiry].format(role=hidden.spell(terms.asked(self.told)[1]))

    @property
    def escalated(self) -> str:
        """The role that was told, while it is open."""
        return hidden.spell(self.row.escalated_to) if self.is_open else ""

    @property
    def risk(self) -> str:
        """What the operators' policy says of such a call, beside its effect; empty when it says nothing."""
        row = self.held.effect_by or self.held.by
        note = f": {row.note}" if row is not None and row.note else ""
        return hidden.spell(f"by the policy for {whom(row)}{note}") if row is not None else "by the team’s code"

    @property
    def name(self) -> str:
        """The tool, fit for text and attributes."""
        return hidden.spell(self.tool)

    @property
    def tool(self) -> str:
        """The tool's qualified name, as the record has it."""
        return str(self.told.get("qualified_name") or self.told.get("name") or "")

    @property
    def identity(self) -> dict[str, str]:
        """The layers of the tool's identity that the record has."""
        names = {"origin": "Origin", "mcp_server": "MCP server", "namespace": "Namespace", "lookup_key": "Lookup key"}
        return {words: hidden.spell(str(self.told[name]))[:200] for name, words in names.items() if self.told.get(name)}


def page(*, status: str = "", before: str = "", limit: int = 50) -> tuple[list[Question], str | None]:
    """Answer questions newest first, and the id that older ones come before. `status`: one of STATUSES, or all.

    Of pending ones only those whose run waits: the others cannot be decided; and on the first page those that were
    escalated before all others, beyond the limit. Raises `Invalid`.
    """
    if status and status not in STATUSES:
        raise Invalid(f"expected one of {', '.join(STATUSES)}", field="status")
    found = Approval.objects.filter(conversation__is_staged=False)
    found = found.open() if status == "pending" else found.filter(status=status) if status else found
    found = found.order_by("-id").select_related("conversation")
    first: list[Approval] = []
    if status == "pending":
        first = [] if before else list(found.exclude(escalated_seq=None)[:MOST_ESCALATED])
        found = found.filter(escalated_seq=None)
    if before:
        found = found.filter(id__lt=before[:64])
    rows = list(found[: limit + 1])
    return _questions([*first, *rows[:limit]]), rows[limit - 1].id if len(rows) > limit else None


def find(approval: str) -> Question:
    """Answer one question. Raises NotFound."""
    found = Approval.objects.filter(id=approval[:64], conversation__is_staged=False).select_related("conversation")
    questions = _questions(list(found))
    if not questions:
        raise NotFound(f"no approval {approval[:80]!r}")
    return questions[0]


def item(found: Question) -> Json:
    """Answer a question for programs."""
    row, told = found.row, found.told
    at = datetime.fromtimestamp(row.decided_at / 1e6, UTC).isoformat() if row.decided_at else None
    layers = ("name", "namespace", "qualified_name", "lookup_key", "origin", "mcp_server", "schema")
    return {
        "approval_id": row.id, "conversation_id": found.key, "run_id": row.run, "tool_call": row.tool_call,
        "tool_call_id": told.get("tool_call_id"), "agent": told.get("agent"),
        **{name: told.get(name) for name in layers},
        "arguments": told.get("args"), "args_raw": told.get("args_raw"), "why": told.get("why"),
        "effect": found.effect, "asked_seq": row.asked_seq, "asked_at": found.asked_at.isoformat(),
        "deadline": found.deadline.isoformat() if found.deadline else None,
        "on_expiry": found.on_expiry, "notify": terms.asked(told)[1] if found.on_expiry == "notify" else None,
        "escalated_to": row.escalated_to or None, "four_eyes": found.terms.four_eyes,
        "status": row.status, "decision": row.decision, "by": row.decided_by, "at": at, "rule": row.rule,
        "version": found.version, "url": reverse("approval", args=[row.id]),
    }  # fmt: skip


def drawn(found: Question) -> Markup:
    """Draw a question, the same for everybody: on the page and live. One that cannot be drawn is nothing, and told."""
    try:
        return safe(get_template("partials/approval.html").render({"q": found}).strip())
    except Exception:
        logger.exception("the question %r could not be drawn", found.row.id)
        return Markup()


class _Source:
    """The rows of the `approvals` topic."""

    def newest_rows(self, limit: int) -> list[Json]:
        """Answer the newest, whatever became of them."""
        return _rows(_visible().order_by("-id")[:limit])

    def changed_rows(self, conversations: Sequence[str], versions: Mapping[str, int]) -> list[Json]:
        """Answer what is new in these conversations; most of what happens there is about no question."""
        there = _visible().filter(conversation__key__in=conversations).order_by("-id")
        told = there.values_list("id", VERSION)[:100]
        changed = [key for key, version in told if versions.get(key) != version]
        return _rows(_visible().filter(id__in=changed).order_by("-id")) if changed else []

    def versions(self, limit: int) -> dict[str, tuple[str, int]]:
        """Answer the newest by id."""
        names = ("id", "conversation__key", VERSION)
        return {key: (of, version) for key, of, version in _visible().order_by("-id").values_list(*names)[:limit]}

    def standing(self) -> Json:
        """Count those that can still be decided."""
        return badge.standing()


SOURCE = _Source()


def _visible() -> QuerySet[Approval]:
    return Approval.objects.filter(conversation__is_staged=False)


def _rows(found: Iterable[Approval]) -> list[Json]:
    assert isinstance(found, QuerySet)
    return [
        {
            "key": one.row.id, "version": one.version, "status": one.row.status, "conversation_id": one.key,
            "escalated": one.escalated, "html": str(drawn(one)),
        }
        for one in _questions(list(found.select_related("conversation")))
    ]  # fmt: skip


def _questions(rows: Sequence[Approval]) -> list[Question]:
    """Make questions of rows; one whose event cannot be read costs itself alone."""
    hues.refresh()
    made: list[Question] = []
    lately: dict[str, list[Late]] = {}
    barred = badge.barred([row.id for row in rows if row.status == "pending"])
    for row in rows:
        try:
            made.append(_question(row, lately, frozenset(barred.get(row.id, ()))))
        except Exception:
            logger.exception("the question %r could not be drawn", row.id)
    return made


def _question(row: Approval, lately: dict[str, list[Late]], barred: frozenset[str]) -> Question:
    key = row.conversation.key
    asked = log.read_after(key, row.asked_seq - 1, 1)
    told: Json = json.loads(asked[0].body)
    agent = str(told.get("agent") or "")
    held = _held(agent, told)
    if row.status == "pending" and agent not in lately:
        lately[agent] = _lately(agent)
    return Question(
        row=row,
        key=key,
        title=richtext.inline((row.conversation.title or key)[:200]),
        told=told,
        drawn=_card(key, asked),
        agent=of_name(agent),
        effect=held.effect,
        held=held,
        terms=terms.of_call(policy.matching(policy.rows(), agent, always.call_of(told).tool)),
        barred=barred,
        lately=[one for one in lately.get(agent, []) if one.seq != row.asked_seq or one.conversation != key][:LATELY],
    )


def _card(key: str, asked: Sequence[Stored]) -> Markup:
    found = log.calls_of(key, asked)
    return calls.card(found[asked[0].seq], reverse("conversation", args=[key]))


def _held(agent: str, told: Json) -> policy.Effective:
    """Answer what holds for the call: as it was declared, tightened by the rules of now."""
    declared = told.get("effect")
    effect: Effect = next((one for one in EFFECTS if one == declared), "unsafe")
    tool = str(told.get("qualified_name") or told.get("name") or "")
    return policy.for_tool(agent, tool, Declared("ask", effect))


def _lately(agent: str) -> list[Late]:
    fields = ("name", "namespace", "status", "conversation__key", "called_seq", "started_at")
    rows = ToolCall.objects.filter(Q(run__isnull=False), agent=agent).order_by(*NEWEST_FIRST).values_list(*fields)
    return [
        Late(richtext.inline(f"{space}.{name}" if space and space != name else name), status, key, seq,
             datetime.fromtimestamp(at / 1e6, UTC))
        for name, space, status, key, seq, at in rows[: LATELY + 1]
    ]  # fmt: skip
