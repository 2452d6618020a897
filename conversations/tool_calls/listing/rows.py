"""Calls with the contents of their events: arguments, output, error. For the page, the API and exports."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, cached_property
from typing import Any

from django.urls import NoReverseMatch, reverse
from markupsafe import Markup

from conversations.core import hidden_characters, page_urls
from conversations.core.errors import SwitchboardError
from conversations.core.json_values import as_text
from conversations.core.json_values import parse as parse_json
from conversations.core.micros import to_datetime
from conversations.events.log import imported_times
from conversations.events.log.reads import column_at
from conversations.events.payload import ParsedPayload, decoded, parse
from conversations.listing.page import ListPage
from conversations.models import Conversation
from conversations.rendering import agent_colors, richtext, timestamps
from conversations.rendering.participant_marks import ParticipantMark, mark_for, mark_for_name
from conversations.rendering.tool_call_block import STATES, WORDS
from conversations.tool_calls.listing.query import CallColumns, CallPage

SHORT = 65_536  # characters of a body that a list reads for its preview
PREVIEW = 160  # characters
MAX_BODIES = 4 << 20  # characters of the events of one answer that tells them whole

Json = dict[str, Any]

_is_plain = re.compile(r"[A-Za-z0-9-]+").fullmatch


@dataclass(frozen=True)
class CallRow:
    """One call in a list. `called` and `finished`: the bodies of those events, None if they were not read."""

    columns: CallColumns
    key: str  # the conversation's
    title: str
    called: ParsedPayload | None
    finished: ParsedPayload | None
    is_imported: bool = False
    first_at: int | None = None  # µs UTC: when an imported call first happened, if known

    @property
    def id(self) -> str:
        """Return the call's id."""
        return self.columns.id

    @property
    def state(self) -> str:
        """Return the glyph of its status."""
        return STATES.get(self.columns.status, "unknown")

    @property
    def word(self) -> str:
        """Return its status as shown."""
        return WORDS.get(self.columns.status, self.columns.status)

    @property
    def at(self) -> datetime:
        """Return when it was called: when it was recorded, if an import does not have the original time."""
        return to_datetime(self.columns.started_at if self.first_at is None else self.first_at)

    @property
    def imported_at(self) -> datetime | None:
        """Return when it was imported; None if it was not."""
        return to_datetime(self.columns.started_at) if self.is_imported else None

    @property
    def tool(self) -> Markup:
        """Return the tool's qualified name, escaped."""
        return richtext.inline(self.columns.qualified_name or self.columns.name or "unnamed tool")

    @property
    def agent(self) -> ParticipantMark:
        """Return the agent that called."""
        return mark_for_name(self.columns.agent)

    @property
    def approver(self) -> ParticipantMark | None:
        """Return who decided about it; None if nobody did."""
        return mark_for(self.columns.approver, self.columns.approver) if self.columns.approver else None

    @property
    def conversation(self) -> Markup:
        """Return the title of its conversation, escaped."""
        return richtext.inline((self.title or self.key)[:120])

    @property
    def preview(self) -> Markup:
        """Return the beginning of its arguments on one line."""
        if self.called is None:
            return richtext.inline("too long to show here")
        return _line(_as_json(_arguments(self.called)))

    @property
    def outcome(self) -> Markup:
        """Return the beginning of its error; empty without one."""
        error = self.finished.error if self.finished else None
        return _line(_value(error)) if error else Markup()

    @property
    def gave(self) -> Markup:
        """Return the beginning of its output."""
        return _line(_as_json(_value(_output(self.finished))))

    @property
    def took(self) -> str:
        """Return its duration as text."""
        return timestamps.duration(self.columns.duration_ms)

    @property
    def event_href(self) -> str:
        """Return its address in the transcript."""
        return page_urls.event_url(self.key, self.columns.called_seq)

    @cached_property
    def href(self) -> str:
        """Return the address of its own page."""
        if _is_plain(self.columns.id):
            return _address().replace("0", self.columns.id)
        try:
            return reverse("call", args=[self.columns.id])
        except NoReverseMatch:
            return self.event_href

    @property
    def hint(self) -> str:
        """Return its conversation and event number, escaped for text and attributes."""
        return f"{hidden_characters.spelled_out(self.key)[:60]}#{self.columns.called_seq}"


@cache
def _address() -> str:
    """Return the address of call 0 as a pattern: Django takes 0.2 ms to make one."""
    return reverse("call", args=["0"])


def rows(calls: Sequence[CallColumns], *, whole: bool = False) -> list[CallRow]:
    """Read the events of these calls; with `whole` in full, however long. Four queries."""
    agent_colors.refresh_colors()
    ids = {call.conversation_id for call in calls}
    named = {pk: (key, title) for pk, key, title in _conversations(ids)}
    payloads = _payloads(_places(calls), whole)
    imported = imported_times.read([(call.conversation_id, call.called_seq) for call in calls], whole=whole)
    return [
        CallRow(
            call,
            *named.get(call.conversation_id, ("", "")),
            payloads.get((call.conversation_id, call.called_seq)),
            payloads.get((call.conversation_id, call.finished_seq or 0)),
            (call.conversation_id, call.called_seq) in imported,
            imported.get((call.conversation_id, call.called_seq)),
        )
        for call in calls
    ]


def within(page: CallPage) -> CallPage:
    """Return as many calls of a page as fit into `MAX_BODIES` characters of events, at least one; the next page begins
    there."""
    sizes, left = _sizes(page.items), MAX_BODIES
    for number, call in enumerate(page.items):
        left -= sum(sizes.get((call.conversation_id, seq or 0), 0) for seq in (call.called_seq, call.finished_seq))
        if left < 0 and number:
            return ListPage(page.items[:number], page.items[number - 1].place)
    return page


def item(row: CallRow) -> Json:
    """Return a call as JSON for the API (§3.6), with the fields the list can be filtered by."""
    call, finished = row.columns, row.finished
    arguments = _arguments(row.called) if row.called else None
    return {
        "id": call.id, "conversation_id": row.key, "run_id": call.run, "call_id": call.call_id,
        "agent": call.agent, "name": call.name, "namespace": call.namespace,
        "qualified_name": call.qualified_name, "lookup_key": call.lookup_key, "origin": call.origin,
        "mcp_server": call.mcp_server, "schema": call.schema, "arguments": arguments,
        "output": _value(_output(finished)), "error": _value(finished.error if finished else None),
        "status": call.status, "started_at": row.at.isoformat(),
        "imported_at": row.imported_at.isoformat() if row.imported_at else None, "duration_ms": call.duration_ms,
        "output_bytes": call.output_bytes, "approver": call.approver, "replay_of": call.replay_of,
        "called_seq": call.called_seq, "finished_seq": call.finished_seq, "url": row.href,
    }  # fmt: skip


def _conversations(ids: Iterable[int]) -> Iterable[tuple[int, str, str]]:
    return Conversation.objects.filter(id__in=ids).values_list("id", "key", "title")


def _payloads(positions: Sequence[tuple[int, int]], whole: bool) -> dict[tuple[int, int], ParsedPayload]:
    # PostgreSQL would read a body of a megabyte to say how long it is, but not to send it here.
    body = "body" if whole else f"CASE WHEN length(body)<={SHORT} THEN body END"
    payloads = {position: _read(text) for position, text in column_at(positions, body).items()}
    return {position: payload for position, payload in payloads.items() if payload is not None}


def _sizes(calls: Sequence[CallColumns]) -> dict[tuple[int, int], int]:
    return column_at(_places(calls), "length(body)")


def _places(calls: Sequence[CallColumns]) -> list[tuple[int, int]]:
    """Return the positions of the calls' events."""
    return sorted(
        {(c.conversation_id, seq) for c in calls for seq in (c.called_seq, c.finished_seq) if seq is not None}
    )


def _read(body: str | None) -> ParsedPayload | None:
    try:
        return parse(body.encode("utf-8", "replace")) if body is not None else None
    except SwitchboardError:
        return None


def _arguments(payload: ParsedPayload) -> Any:
    """Return the arguments as JSON, else the text that was sent."""
    return _value(payload.args) if payload.args is not None else payload.args_raw


def _output(payload: ParsedPayload | None) -> Any:
    if payload is None:
        return None
    return payload.output if payload.output is not None else payload.result_summary


def _value(raw: Any) -> Any:
    """Decode JSON in a body; what cannot be decoded stays a text."""
    if raw is None:
        return None
    try:
        return decoded(bytes(raw))
    except (ValueError, RecursionError):
        return bytes(raw).decode("utf-8", "replace")


def _as_json(value: Any) -> Any:
    """Return what a JSON text says, as its escapes are not for people; anything else as it is."""
    if not isinstance(value, str) or "\\u" not in value:
        return value
    parsed = parse_json(value)
    return value if parsed is None else parsed


def _line(value: Any) -> Markup:
    """Draw the beginning of a value on one line; empty for None."""
    text = "" if value is None else as_text(value)
    return richtext.inline(" ".join(text[: PREVIEW * 4].split())[:PREVIEW])
