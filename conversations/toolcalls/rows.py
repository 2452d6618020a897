"""Calls with what their events tell: arguments, output, error. For the page, the API and exports."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec
from django.db import connection
from django.urls import NoReverseMatch, reverse
from markupsafe import Markup

from conversations import hues, links
from conversations.envelopes import Said, read
from conversations.errors import SwitchboardError
from conversations.fragments import hidden, richtext, times
from conversations.fragments.calls import STATES, WORDS
from conversations.fragments.who import Who, of_name, who
from conversations.models import Conversation
from conversations.toolcalls.listing import Found, Page

SHORT = 65_536  # characters of a body that a list reads for its preview
PREVIEW = 160  # characters
MOST_BODIES = 4 << 20  # characters of the events of one answer that tells them whole

Json = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One call of a list. `called` and `finished` are what those events say, None where they were not read."""

    found: Found
    key: str  # the conversation's
    title: str
    called: Said | None
    finished: Said | None

    @property
    def id(self) -> str:
        """The call's id."""
        return self.found.id

    @property
    def state(self) -> str:
        """The glyph of its status."""
        return STATES.get(self.found.status, "unknown")

    @property
    def word(self) -> str:
        """Its status as it is drawn."""
        return WORDS.get(self.found.status, self.found.status)

    @property
    def at(self) -> datetime:
        """When it reached the record."""
        return datetime.fromtimestamp(self.found.started_at / 1e6, UTC)

    @property
    def tool(self) -> Markup:
        """The tool's qualified name."""
        return richtext.inline(self.found.qualified_name or self.found.name or "unnamed tool")

    @property
    def agent(self) -> Who:
        """Who called."""
        return of_name(self.found.agent)

    @property
    def approver(self) -> Who | None:
        """Who decided about it."""
        return who(self.found.approver, self.found.approver) if self.found.approver else None

    @property
    def conversation(self) -> Markup:
        """What its conversation is called."""
        return richtext.inline((self.title or self.key)[:120])

    @property
    def preview(self) -> Markup:
        """The beginning of its arguments in one line."""
        if self.called is None:
            return richtext.inline("too long to show here")
        return richtext.inline(" ".join(_text(_arguments(self.called))[: PREVIEW * 4].split())[:PREVIEW])

    @property
    def outcome(self) -> Markup:
        """The beginning of its error, where it has one."""
        error = self.finished.error if self.finished else None
        return richtext.inline(" ".join(_text(_value(error))[: PREVIEW * 4].split())[:PREVIEW]) if error else Markup()

    @property
    def gave(self) -> Markup:
        """The beginning of its output."""
        return richtext.inline(" ".join(_text(_value(_output(self.finished)))[: PREVIEW * 4].split())[:PREVIEW])

    @property
    def took(self) -> str:
        """How long it took."""
        return times.duration(self.found.duration_ms)

    @property
    def event_href(self) -> str:
        """Where it stands in the transcript."""
        return links.of_event(self.key, self.found.called_seq)

    @cached_property
    def href(self) -> str:
        """Its own page."""
        try:
            return reverse("call", args=[self.found.id])
        except NoReverseMatch:
            return self.event_href

    @property
    def hint(self) -> str:
        """Its place in the record, fit for text and attributes."""
        return f"{hidden.spell(self.key)[:60]}#{self.found.called_seq}"


def rows(calls: Sequence[Found], *, whole: bool = False) -> list[Row]:
    """Read what these calls' events say; with `whole` however long that is. Three queries."""
    hues.refresh()
    ids = {call.conversation_id for call in calls}
    named = {pk: (key, title) for pk, key, title in _conversations(ids)}
    told = _told(_places(calls), whole)
    return [
        Row(
            call,
            *named.get(call.conversation_id, ("", "")),
            told.get((call.conversation_id, call.called_seq)),
            told.get((call.conversation_id, call.finished_seq or 0)),
        )
        for call in calls
    ]


def within(page: Page) -> Page:
    """Answer as much of a page as `MOST_BODIES` characters of its events, one call at least; the next begins there."""
    sizes, left = _sizes(page.calls), MOST_BODIES
    for number, call in enumerate(page.calls):
        left -= sum(sizes.get((call.conversation_id, seq or 0), 0) for seq in (call.called_seq, call.finished_seq))
        if left < 0 and number:
            return Page(page.calls[:number], page.calls[number - 1].place)
    return page


def item(row: Row) -> Json:
    """Answer a call for programs (design 3.6), with what the list can be filtered by."""
    found, finished = row.found, row.finished
    arguments = _arguments(row.called) if row.called else None
    return {
        "id": found.id, "conversation_id": row.key, "run_id": found.run, "call_id": found.call_id,
        "agent": found.agent, "name": found.name, "namespace": found.namespace,
        "qualified_name": found.qualified_name, "lookup_key": found.lookup_key, "origin": found.origin,
        "mcp_server": found.mcp_server, "schema": found.schema, "arguments": arguments,
        "output": _value(_output(finished)), "error": _value(finished.error if finished else None),
        "status": found.status, "started_at": row.at.isoformat(), "duration_ms": found.duration_ms,
        "output_bytes": found.output_bytes, "approver": found.approver, "replay_of": found.replay_of,
        "called_seq": found.called_seq, "finished_seq": found.finished_seq, "url": row.href,
    }  # fmt: skip


def _conversations(ids: Iterable[int]) -> Iterable[tuple[int, str, str]]:
    return Conversation.objects.filter(id__in=ids).values_list("id", "key", "title")


def _told(wanted: Sequence[tuple[int, int]], whole: bool) -> dict[tuple[int, int], Said]:
    # PostgreSQL would read a body of a megabyte to say how long it is, but not to send it here.
    body = "body" if whole else f"CASE WHEN length(body)<={SHORT} THEN body END"
    found = {place: _read(text) for place, text in _of_events(wanted, body)}
    return {place: said for place, said in found.items() if said is not None}


def _sizes(calls: Sequence[Found]) -> dict[tuple[int, int], int]:
    return dict(_of_events(_places(calls), "length(body)"))


def _places(calls: Sequence[Found]) -> list[tuple[int, int]]:
    """Answer where the events of calls are."""
    return sorted(
        {(c.conversation_id, seq) for c in calls for seq in (c.called_seq, c.finished_seq) if seq is not None}
    )


def _of_events(wanted: Sequence[tuple[int, int]], column: str) -> list[tuple[tuple[int, int], Any]]:
    if not wanted:
        return []
    marks = ",".join(["(%s,%s)"] * len(wanted))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT conversation_id,seq,{column} FROM conversations_event WHERE (conversation_id,seq) IN"
            f" (VALUES {marks})",
            [number for place in wanted for number in place],
        )
        return [((conversation, seq), value) for conversation, seq, value in cursor.fetchall()]


def _read(body: str | None) -> Said | None:
    try:
        return read(body.encode("utf-8", "replace")) if body is not None else None
    except SwitchboardError:
        return None


def _arguments(said: Said) -> Any:
    """Answer the arguments: as JSON, else the text that was sent."""
    return _value(said.args) if said.args is not None else said.args_raw


def _output(said: Said | None) -> Any:
    if said is None:
        return None
    return said.output if said.output is not None else said.result_summary


def _value(raw: Any) -> Any:
    """Decode JSON that a body held; what cannot be decoded stays a text."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(bytes(raw))
    except (msgspec.MsgspecError, UnicodeError):
        return bytes(raw).decode("utf-8", "replace")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
