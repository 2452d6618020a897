"""The list of conversations: what is newest, what matches, how a row looks. Called by the page, the API and the hub.

Three queries at most: conversations by their partial index, participants of those, one person's read markers of those.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from django.db.models import Exists, OuterRef, Q, Subquery
from django.template.loader import get_template
from markupsafe import Markup

from conversations import badge, hues, rights, stuck
from conversations.envelopes import fit
from conversations.errors import Invalid, NotFound
from conversations.fragments import ansi, hidden, richtext
from conversations.fragments.markup import safe
from conversations.fragments.who import Who, who
from conversations.models import Approval, Conversation, Participant, ReadMarker, Run, User
from conversations.models.conversation import ConversationQuerySet

logger = logging.getLogger(__name__)

MOST_MARKS = 4  # of participants drawn in a row; the rest is a number
MOST_DRAWN = 300  # rows of one frame
MOST_WORDS = 8  # of a filter; more are ignored
MOST_WORDS_SIZE = 1000  # characters of it; databases have bounds of their own
STATES = {"person": "Held by a person", "paused": "Paused", "open": "Open"}
FILTERS = {
    "open": "Open",
    "paused": "Paused",
    "person": "Held by a person",
    "mine": "Held by me",
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


@dataclass(frozen=True, slots=True)
class Row:
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

    @property
    def run_state(self) -> tuple[str, str] | None:
        """What is drawn of its runs: the glyph and the word."""
        return RUNS.get(self.run)

    @property
    def shown_state(self) -> str:
        """Owned goes before paused goes before open (design 3.6)."""
        return "person" if self.owner else "paused" if self.state == "paused" else "open"

    @property
    def alarmed(self) -> Markup:
        """Why it looks stuck, every character visible; fit for text and attributes."""
        return _visible(self.alarm)

    @property
    def unread(self) -> int:
        """Messages since the reader's last look; 0 in a row for everybody."""
        return 0 if self.seen is None else max(0, self.messages - self.seen)

    @property
    def marked(self) -> list[Who]:
        """The participants whose marks are drawn."""
        return [who(name) for name, _ in self.participants[:MOST_MARKS]]

    @property
    def unmarked(self) -> int:
        """How many participants have no mark."""
        return max(0, len(self.participants) - MOST_MARKS)

    @property
    def held_by(self) -> Who | None:
        """The person who holds it."""
        return who(self.owner, self.owner) if self.owner else None

    @property
    def handled_by(self) -> Who | None:
        """The agent who handles it."""
        return who(f"agent:{bare(self.handler)}") if self.handler else None

    @property
    def said_by(self) -> Who | None:
        """Who said the last line."""
        return who(self.last_sender) if self.last_sender else None

    @property
    def sent_by(self) -> str:
        """The person who said it under that name; empty for everybody else."""
        return hidden.spell(self.last_by)

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
        return hidden.spell(self.key) if self.title else ""

    @property
    def counts(self) -> tuple[tuple[str, str, int, str], ...]:
        """The counters as they are drawn: tone, words, number, and the number in at most five characters."""
        numbers = (
            ("", "messages", self.messages),
            ("", "tool calls", self.tool_calls),
            ("failed", "errors", self.errors),
        )
        return tuple((*one, compact(one[2])) for one in numbers)

    @property
    def cursor(self) -> str:
        """Where the page after this row begins."""
        return f"{self.last_at}.{self.id}"

    @property
    def unread_words(self) -> str:
        """The unread count as it is drawn."""
        return compact(self.unread)

    @property
    def moment(self) -> datetime:
        """When the last event was committed."""
        return datetime.fromtimestamp(self.last_at / 1_000_000, UTC)


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, newest first; `cursor` is where older ones begin, None at the end. `read_at`: µs UTC."""

    rows: list[Row]
    cursor: str | None
    read_at: int


def newest(
    *,
    q: str = "",
    participant: str = "",
    state: str = "",
    before: str = "",
    limit: int = 60,
    reader: User | None = None,
    agent: str = "",
) -> Page:
    """List conversations: every word of `q` in title, id or last line, and `participant` (a name) among those in it.

    `state` is one of `FILTERS`; `mine` are those that the reader holds. With `agent` only those in which somebody else
    named it. Raises `Invalid` for a cursor or a state that is none of ours.
    """
    read_at = time.time_ns() // 1000
    found = _in_state(matching(q, participant), state, reader)
    if agent:
        found = found.filter(rights.named(agent))
    if before:
        found = _older_than(found, before)
    rows = _rows(found.newest_first()[: limit + 1])
    page = _with_more(rows[:limit])
    return Page(
        rows=_with_seen(page, reader) if reader else page,
        cursor=page[-1].cursor if len(rows) > limit else None,
        read_at=read_at,
    )


def matching(q: str = "", participant: str = "") -> ConversationQuerySet:
    """Filter the visible conversations by the words of `q` and by a participant's name."""
    found = Conversation.objects.visible()
    for word in fit(q[:MOST_WORDS_SIZE]).split()[:MOST_WORDS]:
        found = found.filter(Q(title__icontains=word) | Q(key__icontains=word) | Q(last_line__icontains=word))
    if participant:
        names = {fit(participant), fit(f"agent:{participant}")}
        found = found.filter(Exists(Participant.objects.filter(conversation=OuterRef("pk"), name__in=names)))
    return found


def _in_state(found: ConversationQuerySet, state: str, reader: User | None) -> ConversationQuerySet:
    """Keep those in a state, as it is shown: owned goes before paused goes before open (design 3.6)."""
    if state == "waiting":
        return found.filter(id__in=Approval.objects.open().values("conversation"))
    if state == "mine":
        return found.filter(owner=str(rights.principal_of(reader))) if reader else found.none()
    if state == "person":
        return found.exclude(owner="")
    if state in ("paused", "open"):
        return found.filter(state=state, owner="")
    if state:
        raise Invalid(f"expected one of {', '.join(FILTERS)}", field="state")
    return found


def rows(keys: Sequence[str]) -> list[dict[str, Any]]:
    """Draw these conversations for everybody, as the `fleet` topic sends them: key, version, messages, cursor, html.

    The newest 300 of them: a list shows 200, and pages look at the whole again each minute.
    """
    return _drawn(_rows(Conversation.objects.visible().filter(key__in=keys).newest_first()[:MOST_DRAWN]))


def newest_rows(limit: int = 100) -> list[dict[str, Any]]:
    """Draw the newest: the snapshot of the `fleet` topic (design 3.5)."""
    return _drawn(_rows(Conversation.objects.visible().newest_first()[:limit]))


def find(key: str) -> Row:
    """Answer one conversation's row. Raises NotFound."""
    found = _with_more(_rows(Conversation.objects.visible().filter(key=key)))
    if not found:
        raise NotFound(f"no conversation {key[:80]!r}")
    return found[0]


def versions(limit: int = 100) -> dict[str, int]:
    """Answer the head seq of the newest conversations by key: what the `fleet` topic heals by."""
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
        return badge.standing()


SOURCE = _Source()


def waiting() -> int:
    """Count the questions that wait for a person."""
    return Approval.objects.open().count()


def bare(name: str) -> str:
    """Say a name on the wire, or a principal's text, without what it is: `agent:Triage` is Triage."""
    prefix, mark, suffix = name.partition(":")
    return suffix if mark and prefix in ("agent", "user") and suffix else name


def compact(number: int) -> str:
    """Say a count in at most five characters: – (none), 9,999, 12k, 3.4M."""
    if number < 10_000:
        return f"{number:,}" if number else "–"
    return f"{number // 1000}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def _visible(text: str) -> Markup:
    return richtext.inline(ansi.strip(text))


def drawn(row: Row) -> Markup:
    """Draw one row. One that cannot be drawn is its key alone and takes no other row with it."""
    try:
        text = get_template("partials/conversation.html").render({"row": row, "states": STATES})
    except Exception:
        logger.exception("the row of conversation %r could not be drawn", row.key)
        text = get_template("partials/conversation_plain.html").render({"row": row})
    return safe(text.strip())


def _drawn(found: list[Row]) -> list[dict[str, Any]]:
    return [
        {
            "key": row.key,
            "version": row.head_seq,
            "messages": row.messages,
            "cursor": row.cursor,
            "html": str(drawn(row)),
        }
        for row in _with_more(found)
    ]


def _rows(found: Iterable[Any]) -> list[Row]:
    assert isinstance(found, ConversationQuerySet)
    hues.refresh()
    return [Row(*values) for values in found.values_list(*_COLUMNS)]


def _older_than(found: ConversationQuerySet, cursor: str) -> ConversationQuerySet:
    """Page by the index: a range on `last_at`, then the rows of that very moment that came before (ids go down)."""
    at, mark, row_id = cursor.partition(".")
    if not (mark and at.isdecimal() and row_id.isdecimal() and len(cursor) <= 38):
        raise Invalid("expected a cursor from an earlier answer", field="before")
    return found.filter(last_at__lte=int(at)).exclude(last_at=int(at), id__gte=int(row_id))


def _with_more(found: list[Row]) -> list[Row]:
    """Add participants, people first, then agents, each by name; and what becomes of the runs."""
    runs = _runs(found)
    alarms = stuck.alarms([row.id for row in found if runs.get(row.id) == "running"])
    query = Participant.objects.filter(conversation__in=[row.id for row in found])
    named: dict[int, list[tuple[str, str]]] = {}
    for conversation, name, kind in query.values_list("conversation_id", "name", "kind"):
        named.setdefault(conversation, []).append((name, kind))
    return [
        replace(
            row,
            participants=tuple(sorted(named.get(row.id, ()), key=lambda one: (one[1] == "agent", one[0]))),
            run=runs.get(row.id, ""),
            alarm=_alarm(alarms.get(row.id)),
        )
        for row in found
    ]


def _alarm(alarm: stuck.Alarm | None) -> str:
    return f"{alarm.agent} {alarm.words}" if alarm else ""


def _runs(found: list[Row]) -> dict[int, str]:
    """Answer the loudest state among unfinished runs and its newest one. Only a question is waiting."""
    newest = Run.objects.filter(conversation=OuterRef("conversation"), parent_call=None).order_by("-queued_seq")
    told = Run.objects.filter(
        Q(status__in=("waiting", "running", "queued")) | Q(queued_seq=Subquery(newest.values("queued_seq")[:1])),
        conversation__in=[row.id for row in found],
        parent_call=None,
    )
    states: dict[int, set[str]] = {}
    for conversation, status, reason in told.values_list("conversation_id", "status", "reason"):
        if status == "waiting" and reason != "approval":
            status = "" if reason == "pause" else "queued"
        states.setdefault(conversation, set()).add(_RUNS.get(status, ""))
    return {key: next((name for name in RUNS if name in some), "") for key, some in states.items()}


def _with_seen(found: list[Row], reader: User) -> list[Row]:
    markers = ReadMarker.objects.filter(user=reader, conversation__in=[row.id for row in found])
    seen = dict(markers.values_list("conversation_id", "messages_seen"))
    return [replace(row, seen=seen.get(row.id, 0)) for row in found]
