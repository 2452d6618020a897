"""Which conversations need a person, why, and since when. Used by the list, for a page's rows and for all
conversations.

Five reasons: a call waits for approval, a person who took over owes a reply, an agent wrote to a person who has not
answered, a run looks stuck, a run failed. The words of their tags are `LABELS`. Across all conversations each is read
by an index of its own, so the cost does not depend on the record's size.
"""

import json
import re
import time
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from django.db.models import Exists, OuterRef, Subquery, Value
from django.db.models.functions import Substr

from conversations.events.log.sql import any_of
from conversations.listing.sql_conditions import fetch_rows
from conversations.models import Conversation, Event, Run
from conversations.models.run import FAILED, RunQuerySet
from conversations.runs import stuck_detection
from conversations.runs.budgets.evaluate import ORIGIN
from conversations.runs.stuck_detection import StuckRun

FAILED_FOR = 24 * 3600  # seconds for which a failed run needs a person; after that it is only shown as failed
ERROR_READ = 2_000  # characters of the event that ended a failed run
ERROR_SHOWN = 160  # characters of its error
_ERROR = re.compile(r'"error":\s*"((?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')
ASKED_FOR = 7 * 24 * 3600  # seconds for which a message to a person needs them; after that it is only shown
MAX_LISTED = 50  # conversations that are listed before all others
MAX_LOOKED_AT = 300  # failed, running or taken over, the newest of each


class Attention(NamedTuple):
    """Why a conversation needs a person. `reason`: approval, reply, message, stuck or failed; `since`: µs UTC;
    `person`: to whom the message is, as a principal. Only when asked about given conversations: `error`, the beginning
    of the failed run's error, and `agent` and `tool` of the call that waits longest, which may be about a budget
    instead."""

    reason: str
    since: int
    error: str = ""
    agent: str = ""
    tool: str = ""
    is_budget: bool = False
    is_replay: bool = False
    person: str = ""


class AllNeeds(NamedTuple):
    """All conversations that need a person, by row id, the longest waiting first, and since when (µs UTC) those whose
    newest run failed do, also if something else needs a person there."""

    needs: dict[int, Attention]
    failed: dict[int, int]


class Owned(NamedTuple):
    """A conversation that a person took over: the columns that show whether they owe a reply."""

    id: int
    owner: str
    last_at: int
    last_sender: str
    last_by: str


class UnansweredMessage(NamedTuple):
    """A participant to whom an agent wrote, who has not answered since: conversation, name, and when (µs UTC)."""

    id: int
    name: str
    at: int


_OLDEST = """SELECT a.conversation_id,MIN(a.asked_at) AS since FROM conversations_approval a WHERE a.status='pending'
AND EXISTS(SELECT 1 FROM conversations_run r WHERE r.id=a.run AND r.status='waiting')"""
_NO_CALLS = "SELECT o.conversation_id,o.since,'','','',NULL FROM ({oldest}) o"
_CALLS = """SELECT o.conversation_id,o.since,c.agent,c.name,c.origin,c.replay_of FROM ({oldest}) o
JOIN conversations_approval a ON a.conversation_id=o.conversation_id AND a.asked_at=o.since AND a.status='pending'
LEFT JOIN conversations_toolcall c ON c.id=a.tool_call ORDER BY a.asked_seq DESC"""
_ALL_ASKED = """SELECT p.conversation_id,p.name,p.asked_at FROM conversations_user u
CROSS JOIN conversations_participant p WHERE u.is_active AND p.name='user:'||u.username AND p.asked_at>0
AND p.asked_at>=%s ORDER BY p.asked_at DESC LIMIT %s"""
# Account by account: many more persons than have accounts may be asked in one conversation.
_ASKED = """SELECT * FROM (SELECT c.id,'user:'||u.username,(SELECT p.asked_at FROM conversations_participant p
WHERE p.conversation_id=c.id AND p.name='user:'||u.username AND p.asked_at>=%s) AS at
FROM conversations_conversation c CROSS JOIN conversations_user u WHERE u.is_active AND c.id{}) AS asked
WHERE at IS NOT NULL ORDER BY at DESC"""
LABELS = {"approval": "approval", "reply": "reply", "message": "message", "stuck": "looks stuck", "failed": "failed"}
TONES = {"approval": "waiting", "reply": "waiting", "message": "waiting", "stuck": "failed", "failed": "failed"}


def attention_of(
    *,
    waiting: Collection[int],
    failed: Collection[int],
    owned: Iterable[Owned],
    with_questions: Collection[int] = (),
    stuck: Mapping[int, StuckRun],
) -> dict[int, Attention]:
    """Return why conversations (by row id) need a person: those with a run that waits for approval, those whose newest
    run failed, those that a person took over, those (of `with_questions`) where agents wrote to people, and those with
    stuck runs."""
    by_failure = _failed(failed) if failed else {}
    by_approval = _approvals(waiting) if waiting else {}
    by_message = _messages(_unanswered(with_questions)) if with_questions else {}
    # what comes later goes before: an approval request before all else
    return by_failure | _stuck(stuck) | by_message | _replies(owned) | by_approval


def all_needs() -> AllNeeds:
    """Return all conversations that need a person; of each reason but approvals at most `MAX_LOOKED_AT`."""
    running = list(_top_level().filter(status="running").values_list("conversation", flat=True)[:MAX_LOOKED_AT])
    owned = Conversation.objects.exclude(owner="").order_by("-last_at").values_list(*Owned._fields)[:MAX_LOOKED_AT]
    stuck = stuck_detection.stuck_runs(running)
    unanswered = fetch_rows(_ALL_ASKED, [oldest_asked(), MAX_LOOKED_AT])
    by_message = _messages(UnansweredMessage(*row) for row in unanswered)
    failed = _failed()
    needs = failed | _stuck(stuck) | by_message | _replies(Owned(*row) for row in owned) | _approvals()
    shown = set(Conversation.objects.visible().filter(id__in=needs).values_list("id", flat=True))
    longest = sorted(needs.keys() & shown, key=lambda id_: (needs[id_].since, id_))
    return AllNeeds({id_: needs[id_] for id_ in longest}, {id_: failed[id_].since for id_ in failed.keys() & shown})


def _top_level() -> RunQuerySet:
    return Run.objects.filter(kind="agent", parent_call=None)


def _approvals(conversations: Collection[int] | None = None) -> dict[int, Attention]:
    """Return the open approval requests by conversation, read by raw SQL, since building the query takes longer than
    running it; for given conversations with the call."""
    test, values = any_of(list(conversations)) if conversations is not None else ("", [])
    among = f" AND a.conversation_id{test}" if test else ""
    query = _CALLS if conversations is not None else _NO_CALLS
    rows = fetch_rows(query.format(oldest=f"{_OLDEST}{among} GROUP BY a.conversation_id"), values)
    return {
        id_: Attention(
            "approval",
            since,
            agent=agent or "",
            tool=tool or "",
            is_budget=origin == ORIGIN,
            is_replay=replay_of is not None,
        )
        for id_, since, agent, tool, origin, replay_of in rows
    }


def _replies(owned: Iterable[Owned]) -> dict[int, Attention]:
    """Return the conversations that a person took over and in which another person spoke last."""
    return {row.id: Attention("reply", row.last_at) for row in owned if _owes_reply(row)}


def _owes_reply(row: Owned) -> bool:
    is_person = bool(row.last_sender) and not row.last_sender.startswith("agent:") and not row.last_by
    return is_person and row.last_sender.removeprefix("user:") != row.owner.removeprefix("user:")


def oldest_asked() -> int:
    """Return since when a message to a person needs them, µs UTC."""
    return _oldest(ASKED_FOR)


def _unanswered(conversations: Collection[int]) -> list[UnansweredMessage]:
    """Return the messages of agents to people with an account who have not answered, the oldest last."""
    test, values = any_of(list(conversations))
    rows = fetch_rows(_ASKED.format(test), [oldest_asked(), *values])
    return [UnansweredMessage(*row) for row in rows]


def _messages(unanswered: Iterable[UnansweredMessage]) -> dict[int, Attention]:
    """Return the conversations in which agents wrote to people, of which the oldest come last."""
    return {row.id: Attention("message", row.at, person=row.name) for row in unanswered}


def _oldest(seconds: int) -> int:
    return time.time_ns() // 1000 - seconds * 1_000_000


def _stuck(stuck: Mapping[int, StuckRun]) -> dict[int, Attention]:
    return {id_: Attention("stuck", run.since) for id_, run in stuck.items()}


def _failed(conversations: Collection[int] | None = None) -> dict[int, Attention]:
    """Return the conversations whose newest run failed recently."""
    newer = Run.objects.filter(conversation=OuterRef("conversation"), parent_call=None, kind="agent")
    newer = newer.filter(queued_seq__gt=OuterRef("queued_seq")).exclude(status="delivered")
    ended = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("ended_seq")).values("at")
    failed = _top_level().filter(status__in=FAILED).exclude(Exists(newer))
    body: Subquery | Value = Value("")
    if conversations is not None:
        failed = failed.filter(conversation__in=list(conversations))
        body = Subquery(ended.values(start=Substr("body", 1, ERROR_READ))[:1])
    rows = failed.order_by("-id").annotate(at=Subquery(ended[:1]), start=body)
    oldest = _oldest(FAILED_FOR)
    return {
        id_: Attention("failed", at, _error(start or ""))
        for id_, at, start in rows.values_list("conversation", "at", "start")[:MAX_LOOKED_AT]
        if at is not None and at >= oldest
    }


def _error(start: str) -> str:
    """Return the first line of an error from the beginning of an event's body, which may be cut off anywhere."""
    error = _ERROR.search(start)
    if error is None:
        return ""
    text = str(json.loads(f'"{error[1]}"')).encode("utf-8", "ignore").decode()  # cut between two halves of a character
    return next(iter(text.splitlines()), "")[:ERROR_SHOWN]
