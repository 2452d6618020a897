"""One conversation as the list shows it, and how its row is drawn. Made by `conversation_list`."""

import logging
import time
from dataclasses import dataclass
from datetime import datetime

from django.template.loader import get_template
from markupsafe import Markup

from conversations.conversation.attention import LABELS, TONES, Attention
from conversations.conversation.imported_history import LIVE_FOR
from conversations.core import hidden_characters, principals, recent_activity
from conversations.core.html_escape import safe
from conversations.core.micros import to_datetime
from conversations.core.plain_text import without_markers
from conversations.rendering import ansi_codes, richtext
from conversations.rendering.participant_marks import ParticipantMark, mark_among, mark_for
from conversations.rendering.sparkline import Sparkline, sparkline

logger = logging.getLogger(__name__)

MAX_MARKS = 4  # of participants drawn in a row; the rest is a number
GROUPS = {"attention": "Need a person", "live": "Live", "quiet": "Quiet"}
STATES = {"person": "Taken over", "paused": "Paused", "open": "Open"}
GLYPHS = {
    "approval": ("waiting", "Waiting for approval"),
    "message": ("waiting", "Waiting for a reply"),
    "stuck": ("stuck", "Looks stuck"),
    "failed": ("failed", "Failed"),
}

RUN_STATES = {
    "waiting": ("waiting", "waiting for approval"),
    "running": ("running", "running"),
    "queued": ("queued", "queued"),
    "failed": ("failed", "failed"),
}


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation in the list. `read_count`: messages the reader has read; None in a row drawn for every
    reader."""

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
    activity: str = ""  # `recent_activity`, up to `last_at`
    opened_by: str = ""
    participants: tuple[tuple[str, str], ...] = ()  # name, kind; the first ones
    has_more_participants: bool = False
    read_count: int | None = None
    run: str = ""  # waiting, running, queued or failed: what its newest runs come to
    alarm: str = ""  # why its run looks stuck
    need: Attention | None = None  # why it needs a person
    is_external: bool = False  # agents of another program handle it
    is_history: bool = False  # imported, and it happened long before (`imported_history`)
    cost: str = ""  # in words; empty where no model was asked that costs anything

    @property
    def group(self) -> str:
        """Return the group of the list: attention, live or quiet."""
        if self.need:
            return "attention"
        is_recent = self.last_at > time.time_ns() // 1000 - LIVE_FOR * 1_000_000 and not self.is_history
        return "live" if is_recent or self.run in ("running", "queued") else "quiet"

    @property
    def need_drawn(self) -> tuple[str, str, datetime] | None:
        """Return why it needs a person, as shown: tone, words, since when; None if it does not."""
        if self.need is None:
            return None
        return TONES[self.need.reason], LABELS[self.need.reason], to_datetime(self.need.since)

    @property
    def error(self) -> Markup:
        """Return the error of its newest run on one line; empty if that did not fail."""
        return visible(self.need.error) if self.need else Markup()

    @property
    def asking(self) -> tuple[ParticipantMark | None, Markup] | None:
        """Return who wants to call which tool, if a call waits for approval; nobody for a replay, which no agent
        wants, and a budget, which may be the run's."""
        if self.need is None or not self.need.tool:
            return None
        agent = "" if self.need.is_replay or self.need.is_budget else strip_prefix(self.need.agent)
        return mark_for(f"agent:{agent}") if agent else None, visible(self.need.tool)

    @property
    def run_state(self) -> tuple[str, str] | None:
        """Return the glyph and the word for its runs."""
        return RUN_STATES.get(self.run)

    @property
    def shown_state(self) -> str:
        """Return the state to show: taken over before paused before open (§3.6)."""
        return "person" if self.owner else "paused" if self.state == "paused" else "open"

    @property
    def glyph(self) -> tuple[str, str]:
        """Return the glyph at the beginning of the row and its words: what needs a person, else what is going on."""
        if self.need and self.need.reason in GLYPHS:
            return GLYPHS[self.need.reason]
        if self.run == "running" and self.shown_state == "open":
            return "running", "Working"
        return self.shown_state, STATES[self.shown_state]

    @property
    def alarmed(self) -> Markup:
        """Return why it looks stuck, with every character visible; escaped for text and attributes."""
        return visible(self.alarm)

    @property
    def unread(self) -> int:
        """Return the messages since the reader's last visit; 0 in a row drawn for every reader."""
        return 0 if self.read_count is None else max(0, self.messages - self.read_count)

    @property
    def marked(self) -> list[ParticipantMark]:
        """Return the participants whose marks are shown."""
        return [mark_among(name, (self.opened_by, self.owner)) for name, _ in self.participants[:MAX_MARKS]]

    @property
    def unmarked_words(self) -> str:
        """Return how many participants are not shown, with `+` if there are more than were read; empty for none."""
        number = max(0, len(self.participants) - MAX_MARKS)
        return f"{number}{'+' if self.has_more_participants else ''}" if number else ""

    @property
    def held_by(self) -> ParticipantMark | None:
        """Return the person who took over; None without one."""
        return mark_for(self.owner, self.owner) if self.owner else None

    @property
    def handled_by(self) -> ParticipantMark | None:
        """Return the agent that handles it; None without one."""
        return mark_for(f"agent:{strip_prefix(self.handler)}") if self.handler else None

    @property
    def said_by(self) -> ParticipantMark | None:
        """Return the sender of the last line; None without one."""
        return mark_among(self.last_sender, (self.opened_by, self.owner)) if self.last_sender else None

    @property
    def sent_by(self) -> str:
        """Return the person who sent the last line under another name; empty otherwise."""
        return hidden_characters.spelled_out(self.last_by)

    @property
    def preview(self) -> Markup:
        """Return the last line without Markdown, with every character visible; empty if the title says the same."""
        if not self.last_sender and self.last_line == self.title:
            return safe("")
        return visible(without_markers(self.last_line))

    @property
    def caption(self) -> Markup:
        """Return the title, else the id."""
        return visible(self.title or self.key)

    @property
    def hint(self) -> str:
        """Return the id if a title hides it; escaped for an attribute."""
        return hidden_characters.spelled_out(self.key) if self.title else ""

    @property
    def counts(self) -> tuple[tuple[str, str, int, str], ...]:
        """Return the counters as shown: tone, words, number, and the number in at most five characters."""
        numbers = (
            ("", "message" if self.messages == 1 else "messages", self.messages),
            ("", "tool call" if self.tool_calls == 1 else "tool calls", self.tool_calls),
            ("failed", "error" if self.errors == 1 else "errors", self.errors),
        )
        return tuple((*counter, compact_count(counter[2])) for counter in numbers)

    @property
    def is_imported(self) -> bool:
        """Return whether it was imported."""
        return principals.is_imported(self.opened_by)

    @property
    def spark(self) -> Sparkline | None:
        """Return its events of the last hour as a sparkline; None without any, and for imported history."""
        if self.is_history:
            return None
        counts = recent_activity.recent(self.activity, self.last_at, time.time_ns() // 1000)
        return sparkline(counts) if any(counts) else None

    @property
    def cursor(self) -> str:
        """Return the cursor of the page after this row."""
        return f"{self.last_at}.{self.id}"

    @property
    def unread_words(self) -> str:
        """Return the unread count as shown."""
        return compact_count(self.unread)

    @property
    def moment(self) -> datetime:
        """Return when the last event was committed."""
        return to_datetime(self.last_at)


def strip_prefix(name: str) -> str:
    """Return a sender's or principal's name without its prefix: `agent:Triage` is Triage."""
    prefix, mark, suffix = name.partition(":")
    return suffix if mark and prefix in ("agent", "user") and suffix else name


def compact_count(number: int) -> str:
    """Write a count in at most five characters: – (none), 9,999, 12k, 3.4M."""
    if number < 10_000:
        return f"{number:,}" if number else "–"
    return f"{number // 1000}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def visible(text: str) -> Markup:
    """Draw a short text without terminal colors, with every other character visible."""
    return richtext.inline(ansi_codes.strip(text))


def drawn(row: ConversationRow) -> Markup:
    """Draw one row. A row that cannot be drawn shows only its key, and no other row is affected."""
    try:
        text = get_template("partials/conversation_row.html").render({"row": row})
    except Exception:
        logger.exception("the row of conversation %r could not be drawn", row.key)
        text = get_template("partials/conversation_plain.html").render({"row": row})
    return safe(text.strip())
