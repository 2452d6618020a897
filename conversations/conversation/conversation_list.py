"""The list of conversations: what is newest, what matches, how a row looks. Called by the page, the API and the hub.

Conversations by their index, then what belongs to those: runs, participants, one person's read markers, each one query.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from django.db import connection
from django.template.loader import get_template
from markupsafe import Markup

from conversations.access import permissions
from conversations.conversation import attention, list_query
from conversations.conversation.list_query import ListFilters
from conversations.core import hidden_characters
from conversations.core.errors import NotFound
from conversations.core.html_escape import safe
from conversations.core.micros import to_datetime
from conversations.events.log.sql import marks
from conversations.models import Approval, Conversation, Run, User
from conversations.rendering import agent_colors, ansi_codes, richtext
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from conversations.runs import stuck_detection
from conversations.runs.approvals import pending_counts

logger = logging.getLogger(__name__)

MAX_MARKS = 4  # of participants drawn in a row; the rest is a number
MAX_DRAWN = 300  # rows of one frame
LIVE_FOR = 300  # seconds after its last event for which a conversation is in the group Live
GROUPS = {"attention": "Need a person", "live": "Live", "quiet": "Quiet"}
STATES = {"person": "Taken over", "paused": "Paused", "open": "Open"}
GLYPHS = {
    "approval": ("waiting", "Waiting for approval"),
    "stuck": ("stuck", "Looks stuck"),
    "failed": ("failed", "Failed"),
}
FILTERS = {
    "open": "Open",
    "paused": "Paused",
    "person": "Taken over",
    "mine": "Taken over by me",
    "waiting": "Waiting for approval",
}

RUNS = {
    "waiting": ("waiting", "waiting for approval"),
    "running": ("running", "running"),
    "queued": ("queued", "queued"),
    "failed": ("failed", "failed"),
}
_RUNS = {"interrupted": "failed", "incompatible": "failed", **{name: name for name in RUNS}}

_COLUMNS = (
    *("id", "key", "title", "state", "owner", "handler", "is_demo", "head_seq"),
    *("last_at", "last_sender", "last_by", "last_line", "messages", "tool_calls", "errors", "forked_at"),
)

_owned = itemgetter(*(_COLUMNS.index(name) for name in attention.Owned._fields))

_PARTICIPANTS = "SELECT conversation_id,name,kind FROM conversations_participant WHERE conversation_id IN ({})"
_MARKERS = """SELECT conversation_id,messages_seen FROM conversations_readmarker
WHERE conversation_id IN ({}) AND user_id=%s"""
_NEWEST_RUNS = """SELECT conversation_id,status,reason FROM conversations_run r
WHERE conversation_id IN ({}) AND parent_call IS NULL AND (status IN ('waiting','running','queued')
OR queued_seq=(SELECT MAX(queued_seq) FROM conversations_run WHERE conversation_id=r.conversation_id
AND parent_call IS NULL))"""


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation as the list shows it. `seen`: how many messages the reader has seen; None in everybody's row."""

    id: int
    key: str
    title: str
    state: str
    owner: str
    handler: str
    is_demo: bool
    head_seq: int
    last_at: int  # µs UTC
    last_sender: str
    last_by: str
    last_line: str
    messages: int
    tool_calls: int
    errors: int
    forked_at: int | None = None
    participants: tuple[tuple[str, str], ...] = ()  # name, kind
    seen: int | None = None
    run: str = ""  # waiting, running, queued or failed: what its newest runs come to
    alarm: str = ""  # why its run looks stuck
    need: attention.Attention | None = None  # why it needs a person

    @property
    def group(self) -> str:
        """Return the group of the list: attention, live or quiet."""
        if self.need:
            return "attention"
        is_live = self.run in ("running", "queued") or self.last_at > time.time_ns() // 1000 - LIVE_FOR * 1_000_000
        return "live" if is_live else "quiet"

    @property
    def need_drawn(self) -> tuple[str, str, datetime] | None:
        """Return why it needs a person as it is drawn: tone, words, since when."""
        if self.need is None:
            return None
        reason, since = self.need
        return attention.TONES[reason], attention.LABELS[reason], to_datetime(since)

    @property
    def run_state(self) -> tuple[str, str] | None:
        """What is drawn of its runs: the glyph and the word."""
        return RUNS.get(self.run)

    @property
    def shown_state(self) -> str:
        """Owned goes before paused goes before open (§3.6)."""
        return "person" if self.owner else "paused" if self.state == "paused" else "open"

    @property
    def glyph(self) -> tuple[str, str]:
        """Return the sign at the row's beginning and its words: what needs a person, else what goes on."""
        if self.need and self.need.reason in GLYPHS:
            return GLYPHS[self.need.reason]
        if self.run == "running" and self.shown_state == "open":
            return "running", "Working"
        return self.shown_state, STATES[self.shown_state]

    @property
    def alarmed(self) -> Markup:
        """Why it looks stuck, every character visible; fit for text and attributes."""
        return _visible(self.alarm)

    @property
    def unread(self) -> int:
        """Messages since the reader's last look; 0 in a row for everybody."""
        return 0 if self.seen is None else max(0, self.messages - self.seen)

    @property
    def marked(self) -> list[ParticipantMark]:
        """The participants whose marks are drawn."""
        return [mark_for(name) for name, _ in self.participants[:MAX_MARKS]]

    @property
    def unmarked(self) -> int:
        """How many participants have no mark."""
        return max(0, len(self.participants) - MAX_MARKS)

    @property
    def held_by(self) -> ParticipantMark | None:
        """The person who holds it."""
        return mark_for(self.owner, self.owner) if self.owner else None

    @property
    def handled_by(self) -> ParticipantMark | None:
        """The agent who handles it."""
        return mark_for(f"agent:{strip_prefix(self.handler)}") if self.handler else None

    @property
    def said_by(self) -> ParticipantMark | None:
        """Who said the last line."""
        return mark_for(self.last_sender) if self.last_sender else None

    @property
    def sent_by(self) -> str:
        """The person who said it under that name; empty for everybody else."""
        return hidden_characters.spelled_out(self.last_by)

    @property
    def said(self) -> Markup:
        """The last line, every character visible."""
        return _visible(self.last_line)

    @property
    def caption(self) -> Markup:
        """What the row is called: the title, else the id."""
        return _visible(self.title or self.key)

    @property
    def hint(self) -> str:
        """The id, where the title hides it; fit for an attribute."""
        return hidden_characters.spelled_out(self.key) if self.title else ""

    @property
    def counts(self) -> tuple[tuple[str, str, int, str], ...]:
        """The counters as they are drawn: tone, words, number, and the number in at most five characters."""
        numbers = (
            ("", "messages", self.messages),
            ("", "tool calls", self.tool_calls),
            ("failed", "errors", self.errors),
        )
        return tuple((*counter, compact_row(counter[2])) for counter in numbers)

    @property
    def cursor(self) -> str:
        """Where the page after this row begins."""
        return f"{self.last_at}.{self.id}"

    @property
    def unread_words(self) -> str:
        """The unread count as it is drawn."""
        return compact_row(self.unread)

    @property
    def moment(self) -> datetime:
        """When the last event was committed."""
        return to_datetime(self.last_at)


@dataclass(frozen=True, slots=True)
class ConversationGroups:
    """The list before any filter: who needs a person, the longest waiting first, then the others, newest first."""

    rows: dict[str, list[ConversationRow]]  # by the groups of `GROUPS`
    runs: int  # that are running
    failed: int  # rows that need a person since their run failed

    @property
    def oldest(self) -> datetime | None:
        """Return since when somebody has been waiting for a person."""
        waiting = self.rows["attention"]
        return to_datetime(waiting[0].need.since) if waiting and waiting[0].need else None


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Some rows, newest first; `cursor` is where older ones begin, None at the end. `read_at` and `looked_to`: µs
    UTC, the latter how far back was looked where that ended before the page was full."""

    rows: list[ConversationRow]
    cursor: str | None
    read_at: int
    looked_to: int | None = None

    @property
    def looked_back_to(self) -> datetime | None:
        """The same as it is drawn."""
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
    """List conversations: every word of `q` in title, id or last line, and `participant` (a name) among those in it.

    `state` is one of `FILTERS`; `mine` are those that the reader holds. With `agent` only those in which somebody else
    named it. Raises `Invalid` for a cursor or a state that is none of ours.
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
    """Group the newest conversations (`page`), and put all that need a person before them, however old."""
    here = {row.id: row for row in page.rows}
    further = [id_ for id_ in attention.listed() if id_ not in here]
    records = Conversation.objects.visible().filter(id__in=further).values_list(*_COLUMNS) if further else ()
    by_group: dict[str, list[ConversationRow]] = {group: [] for group in GROUPS}
    for row in [*page.rows, *(row for row in _rows(records, reader) if row.need)]:
        by_group[row.group].append(row)
    by_group["attention"].sort(key=lambda row: (row.need.since if row.need else 0, row.id))
    return ConversationGroups(
        rows=by_group,
        runs=Run.objects.filter(status="running", parent_call=None).count(),
        failed=sum(row.need is not None and row.need.reason == "failed" for row in by_group["attention"]),
    )


def rows(keys: Sequence[str]) -> list[dict[str, Any]]:
    """Draw these conversations for everybody, as the `fleet` topic sends them: key, version, messages, cursor, html.

    The newest 300 of them: a list shows 200, and pages look at the whole again each minute.
    """
    conversations = Conversation.objects.visible().filter(key__in=keys).newest_first()
    return _drawn(_rows(conversations.values_list(*_COLUMNS)[:MAX_DRAWN]))


def newest_rows(limit: int = 100) -> list[dict[str, Any]]:
    """Draw the newest: the snapshot of the `fleet` topic (§3.5)."""
    return _drawn(_rows(Conversation.objects.visible().newest_first().values_list(*_COLUMNS)[:limit]))


def find(key: str) -> ConversationRow:
    """Return one conversation's row. Raises NotFound."""
    matches = _rows(Conversation.objects.visible().filter(key=key).values_list(*_COLUMNS))
    if not matches:
        raise NotFound(f"there is no conversation {key[:80]!r}")
    return matches[0]


def versions(limit: int = 100) -> dict[str, int]:
    """Return the head seq of the newest conversations by key: what the `fleet` topic heals by."""
    return dict(Conversation.objects.visible().newest_first().values_list("key", "head_seq")[:limit])


class _Source:
    """The rows of the `fleet` topic."""

    def newest_rows(self, limit: int) -> list[dict[str, Any]]:
        return newest_rows(limit)

    def changed_rows(self, conversations: Sequence[str], versions: Mapping[str, int]) -> list[dict[str, Any]]:
        return rows(conversations)

    def versions(self, limit: int) -> dict[str, tuple[str, int]]:
        return {key: (key, version) for key, version in versions(limit).items()}

    def standing(self) -> dict[str, Any]:
        return pending_counts.pending_counts()


SOURCE = _Source()


def waiting() -> int:
    """Count the questions that wait for a person."""
    return Approval.objects.open().count()


def strip_prefix(name: str) -> str:
    """Say a name on the wire, or a principal's text, without what it is: `agent:Triage` is Triage."""
    prefix, mark, suffix = name.partition(":")
    return suffix if mark and prefix in ("agent", "user") and suffix else name


def compact_row(number: int) -> str:
    """Say a count in at most five characters: – (none), 9,999, 12k, 3.4M."""
    if number < 10_000:
        return f"{number:,}" if number else "–"
    return f"{number // 1000}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _visible(text: str) -> Markup:
    return richtext.inline(ansi_codes.strip(text))


def drawn(row: ConversationRow) -> Markup:
    """Draw one row. One that cannot be drawn is its key alone and takes no other row with it."""
    try:
        text = get_template("partials/conversation.html").render({"row": row})
    except Exception:
        logger.exception("the row of conversation %r could not be drawn", row.key)
        text = get_template("partials/conversation_plain.html").render({"row": row})
    return safe(text.strip())


def _drawn(page_rows: list[ConversationRow]) -> list[dict[str, Any]]:
    return [
        {
            "key": row.key,
            "version": row.head_seq,
            "messages": row.messages,
            "cursor": row.cursor,
            "html": str(drawn(row)),
        }
        for row in page_rows
    ]


def _rows(records: Iterable[tuple[Any, ...]], reader: User | None = None) -> list[ConversationRow]:
    """Make rows of `_COLUMNS`, with participants, people first, then agents, each by name; with what becomes of the
    runs; and for a reader, with how many messages they have seen."""
    agent_colors.refresh_colors()
    fetched = list(records)
    ids = [values[0] for values in fetched]
    runs = _runs(ids)
    alarms = stuck_detection.alarms([id_ for id_ in ids if runs.get(id_) == "running"])
    named: dict[int, list[tuple[str, str]]] = {}
    for conversation, name, kind in _read(_PARTICIPANTS, ids):
        named.setdefault(conversation, []).append((name, kind))
    needs = attention.of(
        waiting=[id_ for id_ in ids if runs.get(id_) == "waiting"],
        failed=[id_ for id_ in ids if runs.get(id_) == "failed"],
        owned=[attention.Owned(*_owned(values)) for values in fetched if values[_COLUMNS.index("owner")]],
        alarms=alarms,
    )
    seen: dict[int, int] = dict(_read(_MARKERS, ids, reader.pk)) if reader else {}
    return [
        ConversationRow(
            **dict(zip(_COLUMNS, values, strict=True)),
            participants=tuple(
                sorted(named.get(values[0], ()), key=lambda participant: (participant[1] == "agent", participant[0]))
            ),
            seen=seen.get(values[0], 0) if reader else None,
            run=runs.get(values[0], ""),
            alarm=_alarm(alarms.get(values[0])),
            need=needs.get(values[0]),
        )
        for values in fetched
    ]


def _read(sql: str, ids: Sequence[int], *more: Any) -> list[Any]:
    """Read the rows of these conversations, by SQL as it is: building a query takes longer than answering it."""
    if not ids:
        return []
    with connection.cursor() as cursor:
        cursor.execute(sql.format(marks(len(ids))), [*ids, *more])
        return list(cursor.fetchall())


def _alarm(alarm: stuck_detection.Alarm | None) -> str:
    return f"{alarm.agent} {alarm.words}" if alarm else ""


def _runs(ids: Sequence[int]) -> dict[int, str]:
    """Return the loudest state among unfinished runs and the newest one. Only a question is waiting."""
    states: dict[int, set[str]] = {}
    for conversation, status, reason in _read(_NEWEST_RUNS, ids):
        if status == "waiting" and reason != "approval":
            status = "" if reason == "pause" else "queued"
        states.setdefault(conversation, set()).add(_RUNS.get(status, ""))
    return {key: next((name for name in RUNS if name in labels), "") for key, labels in states.items()}
