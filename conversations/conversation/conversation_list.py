"""The list of conversations: the newest, the matching ones, and how a row looks. Called by the page, the API and the
state topic `fleet`.

Conversations are read by an index, then their runs, participants and one person's read markers, in one query each.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from conversations.access import permissions
from conversations.conversation import attention, group_trends, list_query, row_people, spending
from conversations.conversation.conversation_row import GROUPS, RUN_STATES, ConversationRow, drawn
from conversations.conversation.external_handling import external, may_be_external
from conversations.conversation.imported_history import ConversationEnd, history_among
from conversations.conversation.list_query import ListFilters
from conversations.core import principals, recent_activity
from conversations.core.errors import NotFound
from conversations.core.micros import to_datetime
from conversations.events.log.sql import any_of
from conversations.events.projections.participants import kind_of
from conversations.listing.sql_conditions import fetch_rows
from conversations.models import Conversation, Run, User
from conversations.rendering import agent_colors
from conversations.rendering.sparkline import Sparkline
from conversations.runs import stuck_detection
from conversations.runs.approvals import pending_counts

MAX_DRAWN = 300  # rows of one frame
FILTERS = {
    "open": "Open",
    "paused": "Paused",
    "person": "Taken over",
    "mine": "Taken over by me",
    "waiting": "Waiting for approval",
}

_RUNS = {"interrupted": "failed", "incompatible": "failed", **{name: name for name in RUN_STATES}}

_COLUMNS = (
    *("id", "key", "title", "state", "owner", "handler", "is_demo", "head_seq"),
    *("last_at", "last_sender", "last_by", "last_line", "messages", "tool_calls", "errors", "forked_at"),
    *("activity", "opened_by"),
)

_ended = itemgetter(*(_COLUMNS.index(name) for name in ConversationEnd._fields))
_owned = itemgetter(*(_COLUMNS.index(name) for name in attention.Owned._fields))

_NEWEST_RUNS = """SELECT conversation_id,status,reason FROM conversations_run r
WHERE conversation_id{} AND parent_call IS NULL AND (status IN ('waiting','running','queued')
OR queued_seq=(SELECT MAX(queued_seq) FROM conversations_run WHERE conversation_id=r.conversation_id
AND parent_call IS NULL AND status<>'delivered'))"""


@dataclass(frozen=True, slots=True)
class ConversationGroups:
    """The unfiltered list: conversations that need a person, the longest waiting first, then the others, newest
    first."""

    rows: dict[str, list[ConversationRow]]  # by the groups of `GROUPS`
    beyond: dict[str, int]  # by group: conversations that are counted, and not among the rows
    has_more_live: bool  # than are counted
    runs: int  # that are running
    runs_queued: list[int]  # when those of the last hour were queued, µs UTC
    waiting: list[int]  # since when each conversation needs a person, µs UTC
    failures: list[int]  # of conversations whose newest run failed in the last day: when, µs UTC

    @property
    def oldest(self) -> datetime | None:
        """Return since when someone has been waiting for a person; None if nobody is."""
        waiting = self.rows["attention"]
        return to_datetime(waiting[0].need.since) if waiting and waiting[0].need else None

    @property
    def trends(self) -> dict[str, Sparkline]:
        """Return small drawings beside the figures: what began to wait and what failed of late, the events of the live
        rows, and the runs that were queued."""
        moments = {"attention": self.waiting, "failed": self.failures, "runs": self.runs_queued}
        return group_trends.drawings(moments, self.rows["live"], time.time_ns() // 1000)


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Some rows, newest first; `cursor`: where older ones begin, None at the end. `read_at` and `looked_to` are µs UTC,
    the latter how far back the walk went if it ended before the page was full."""

    rows: list[ConversationRow]
    cursor: str | None
    read_at: int
    looked_to: int | None = None

    @property
    def looked_back_to(self) -> datetime | None:
        """Return `looked_to` as a datetime; None if it is not set."""
        return to_datetime(self.looked_to) if self.looked_to is not None else None


def newest_conversations(
    *,
    q: str = "",
    participant: str = "",
    state: str = "",
    before: str = "",
    limit: int = 60,
    reader: User | None = None,
    agent: str = "",
) -> ConversationPage:
    """List the conversations that contain every word of `q` in title, id or last line and have `participant` (a name).

    `state` is one of `FILTERS`; `mine` are those the reader has taken over. With `agent` only those in which someone
    else named that agent. Raises Invalid for a cursor or a state that is not one of ours.
    """
    read_at = time.time_ns() // 1000
    holder = str(permissions.principal_of(reader)) if reader else ""
    filters = ListFilters(q=q, participant=participant, state=state, holder=holder, agent=agent)
    result = list_query.find(filters, _COLUMNS, before=before, limit=limit)
    page = _rows(result.rows[:limit], reader)
    after = str(result.after) if result.after else page[-1].cursor if len(result.rows) > limit else None
    return ConversationPage(
        rows=page,
        cursor=after,
        read_at=read_at,
        looked_to=result.after.at if result.after else None,
    )


def grouped(page: ConversationPage, reader: User | None) -> ConversationGroups:
    """Group the newest conversations (`page`), with all that need a person first, however old."""
    here = {row.id: row for row in page.rows}
    needs, failed = attention.all_needs()
    further = [id_ for id_ in list(needs)[: attention.MAX_LISTED] if id_ not in here]
    records = Conversation.objects.visible().filter(id__in=further).values_list(*_COLUMNS) if further else ()
    by_group: dict[str, list[ConversationRow]] = {group: [] for group in GROUPS}
    for row in [*page.rows, *(row for row in _rows(records, reader) if row.need)]:
        by_group[row.group].append(row)
    by_group["attention"].sort(key=lambda row: (row.need.since if row.need else 0, row.id))
    drawn_needs = {row.id: row.need for row in by_group["attention"] if row.need}
    live, has_more = group_trends.live_beyond(here, needs) if page.cursor else (0, False)
    return ConversationGroups(
        rows=by_group,
        beyond={"attention": len(needs.keys() - drawn_needs.keys()), "live": live, "quiet": 0},
        has_more_live=has_more,
        runs=Run.objects.filter(status="running", parent_call=None).count(),
        runs_queued=group_trends.runs_queued(page.read_at),
        waiting=[need.since for need in (needs | drawn_needs).values()],
        failures=list(failed.values()),
    )


def rows(keys: Sequence[str]) -> list[dict[str, Any]]:
    """Draw these conversations as the `fleet` topic sends them, the same for every reader: key, version, messages,
    cursor, html.

    At most the newest 300: a list shows 200, and pages reload the whole each minute.
    """
    conversations = Conversation.objects.visible().filter(key__in=keys).newest_first()
    return _drawn(_rows(conversations.values_list(*_COLUMNS)[:MAX_DRAWN]))


def newest_rows(limit: int = 100) -> list[dict[str, Any]]:
    """Draw the newest conversations: the snapshot of the `fleet` topic (§3.5)."""
    return _drawn(_rows(Conversation.objects.visible().newest_first().values_list(*_COLUMNS)[:limit]))


def find(key: str) -> ConversationRow:
    """Return one conversation's row. Raises NotFound."""
    matches = _rows(Conversation.objects.visible().filter(key=key).values_list(*_COLUMNS))
    if not matches:
        raise NotFound(f"there is no conversation {key[:80]!r}")
    return matches[0]


def versions(limit: int = 100) -> dict[str, int]:
    """Return the head of each of the newest conversations, by key: the `fleet` topic compares them to find missed
    changes."""
    return dict(Conversation.objects.visible().newest_first().values_list("key", "head_seq")[:limit])


class _Source:
    """The rows of the `fleet` topic."""

    def newest_rows(self, limit: int) -> list[dict[str, Any]]:
        return newest_rows(limit)

    def changed_rows(self, conversations: Sequence[str], versions: Mapping[str, int]) -> list[dict[str, Any]]:
        return rows(conversations)

    def versions(self, limit: int) -> dict[str, tuple[str, int]]:
        return {key: (key, version) for key, version in versions(limit).items()}

    def waiting_counts(self) -> dict[str, Any]:
        return pending_counts.pending_counts()


SOURCE = _Source()


def _drawn(page_rows: list[ConversationRow]) -> list[dict[str, Any]]:
    return [
        {
            "key": row.key,
            "version": row.head_seq,
            "at": row.last_at,
            "messages": row.messages,
            "cursor": row.cursor,
            "html": str(drawn(row)),
        }
        for row in page_rows
    ]


def _rows(records: Iterable[tuple[Any, ...]], reader: User | None = None) -> list[ConversationRow]:
    """Make rows from `_COLUMNS`, with participants (people first, then agents, by name), the state of runs, and for a
    reader the number of messages they have read."""
    agent_colors.refresh_colors()
    fetched = list(records)
    ids = [values[0] for values in fetched]
    runs = _runs(ids)
    stuck = stuck_detection.stuck_runs([id_ for id_ in ids if runs.get(id_) == "running"])
    people = row_people.read(ids, reader)
    needs = attention.attention_of(
        waiting=[id_ for id_ in ids if runs.get(id_) == "waiting"],
        failed=[id_ for id_ in ids if runs.get(id_) == "failed"],
        owned=[attention.Owned(*_owned(values)) for values in fetched if values[_COLUMNS.index("owner")]],
        with_questions=people.with_questions,
        stuck=stuck,
    )
    costs = spending.costs_of(ids)
    places = [_COLUMNS.index(name) for name in ("id", "opened_by", "handler")]
    candidates = [id_ for id_, *about in map(itemgetter(*places), fetched) if may_be_external(*about)]
    agents = {id_: [name for name in people.named.get(id_, ()) if kind_of(name) == "agent"] for id_ in candidates}
    externals = external(agents)
    history = _history(fetched)
    return [
        ConversationRow(
            **(columns := dict(zip(_COLUMNS, values, strict=True))),
            **_participants(people.named.get(values[0], [])),
            read_count=people.read_counts.get(values[0], _unmarked(columns)) if reader else None,
            run=runs.get(values[0], ""),
            alarm=_why_stuck(stuck.get(values[0])),
            need=needs.get(values[0]),
            is_external=values[0] in externals,
            is_history=values[0] in history,
            cost=costs[values[0]].words if values[0] in costs else "",
        )
        for values in fetched
    ]


def _history(records: Iterable[tuple[Any, ...]]) -> set[int]:
    """Return which of these conversations are imported history; nothing depends on it after an hour."""
    oldest = time.time_ns() // 1000 - recent_activity.KEPT * recent_activity.SPAN_US
    ends = (ConversationEnd(*_ended(values)) for values in records)
    return history_among(end for end in ends if end.last_at > oldest)


def _participants(named: Sequence[str]) -> dict[str, Any]:
    """Return a row's participants, people first, then by name, and whether there are more."""
    kinds = [(name, kind_of(name)) for name in named[: row_people.MAX_NAMED]]
    first = sorted(kinds, key=lambda participant: (participant[1] == "agent", participant[0]))
    return {"participants": tuple(first), "has_more_participants": len(named) > row_people.MAX_NAMED}


def _unmarked(columns: Mapping[str, Any]) -> int:
    """Return how many messages count as read by a reader who never opened the conversation: of an import all it has by
    now."""
    return int(columns["messages"]) if principals.is_imported(columns["opened_by"]) else 0


def _why_stuck(run: stuck_detection.StuckRun | None) -> str:
    return f"{run.agent} {run.words}" if run else ""


def _runs(ids: Sequence[int]) -> dict[int, str]:
    """Return the most urgent state among each conversation's unfinished runs and its newest one; only an approval
    request counts as waiting."""
    states: dict[int, set[str]] = {}
    if not ids:
        return {}
    test, values = any_of(ids)
    for conversation, status, reason in fetch_rows(_NEWEST_RUNS.format(test), values):
        if status == "waiting" and reason != "approval":
            status = "" if reason == "pause" else "queued"
        states.setdefault(conversation, set()).add(_RUNS.get(status, ""))
    return {key: next((name for name in RUN_STATES if name in labels), "") for key, labels in states.items()}
