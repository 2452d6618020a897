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
from conversations.events import recorded_arguments
from conversations.events.log import imported_times
from conversations.events.log.reads import column_at
from conversations.events.payload import ParsedPayload, decoded, parse
from conversations.listing.page import ListPage
from conversations.models import Approval, Conversation
from conversations.rendering import agent_colors, richtext, timestamps
from conversations.rendering.participant_marks import ParticipantMark, mark_for, mark_for_name
from conversations.rendering.tool_call_block import STATES, WORDS
from conversations.tool_calls.listing.query import CallColumns, CallPage

SHORT = 65_536  # characters of a body that a list reads for its preview
PREVIEW = 160  # characters
MAX_BODIES = 4 << 20  # characters of the events of one answer that tells them whole

Json = dict[str, Any]
Place = tuple[int, int]  # of an event: its conversation's row id, and its seq

_is_plain = re.compile(r"[A-Za-z0-9-]+").fullmatch


@dataclass(frozen=True)
class CallRow:
    """One call in a list. `called` and `finished`: the bodies of those events, None if they were not read. `decision`:
    what was decided about it; `ran_with`: the arguments that a person entered, as JSON text, None if they were not
    read."""

    columns: CallColumns
    key: str  # the conversation's
    title: str
    called: ParsedPayload | None
    finished: ParsedPayload | None
    is_imported: bool = False
    first_at: int | None = None  # µs UTC: when an imported call first happened, if known
    decision: str = ""
    ran_with: str | None = None

    @property
    def is_edited(self) -> bool:
        """Return whether it ran with other arguments than those that were sent."""
        return self.decision == "edit"

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
        """Return the beginning of the arguments that it ran with, or would have, on one line."""
        if self.is_edited and self.ran_with is not None:
            return _line(recorded_arguments.value_of(self.ran_with))
        if self.called is None or self.is_edited:
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
    decided = _decisions(calls)
    bodies = _bodies([*_places(calls), *(place for _, place in decided.values())], whole)
    imported = imported_times.read([(call.conversation_id, call.called_seq) for call in calls], whole=whole)
    return [
        _row(call, named.get(call.conversation_id, ("", "")), bodies, imported, decided.get(call.id)) for call in calls
    ]


def _row(
    call: CallColumns,
    conversation: tuple[str, str],
    bodies: dict[Place, str],
    imported: dict[Place, int | None],
    decided: tuple[str, Place] | None,
) -> CallRow:
    called, finished = (
        _read(bodies.get((call.conversation_id, seq or 0))) for seq in (call.called_seq, call.finished_seq)
    )
    decision, place = decided or ("", (0, 0))
    ran_with = recorded_arguments.edited(_object(bodies.get(place))) if decision == "edit" else None
    first = call.conversation_id, call.called_seq
    return CallRow(call, *conversation, called, finished, first in imported, imported.get(first), decision, ran_with)


def within(page: CallPage) -> CallPage:
    """Return as many calls of a page as fit into `MAX_BODIES` characters of events, at least one; the next page begins
    there."""
    decided, left = _decisions(page.items), MAX_BODIES
    sizes = column_at([*_places(page.items), *(place for _, place in decided.values())], "length(body)")
    for number, call in enumerate(page.items):
        left -= sum(sizes.get((call.conversation_id, seq or 0), 0) for seq in (call.called_seq, call.finished_seq))
        left -= sizes.get(decided[call.id][1], 0) if call.id in decided else 0
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
        "ran_with": recorded_arguments.value_of(row.ran_with) if row.ran_with is not None else arguments,
        "decision": row.decision or None,
        "output": _value(_output(finished)), "error": _value(finished.error if finished else None),
        "status": call.status, "started_at": row.at.isoformat(),
        "imported_at": row.imported_at.isoformat() if row.imported_at else None, "duration_ms": call.duration_ms,
        "output_bytes": call.output_bytes, "approver": call.approver, "replay_of": call.replay_of,
        "called_seq": call.called_seq, "finished_seq": call.finished_seq, "url": row.href,
    }  # fmt: skip


def _conversations(ids: Iterable[int]) -> Iterable[tuple[int, str, str]]:
    return Conversation.objects.filter(id__in=ids).values_list("id", "key", "title")


def _decisions(calls: Sequence[CallColumns]) -> dict[str, tuple[str, Place]]:
    """Return the decisions about the calls and the positions of their events, by call."""
    ids = [call.id for call in calls if call.approver]
    rows = Approval.objects.filter(tool_call__in=ids, status="decided") if ids else Approval.objects.none()
    columns = rows.values_list("tool_call", "decision", "conversation_id", "decided_seq")
    return {call: (decision or "", (conversation, seq or 0)) for call, decision, conversation, seq in columns}


def _bodies(positions: Sequence[Place], whole: bool) -> dict[Place, str]:
    # PostgreSQL would read a body of a megabyte to say how long it is, but not to send it here.
    return column_at(positions, "body" if whole else f"CASE WHEN length(body)<={SHORT} THEN body END")


def _places(calls: Sequence[CallColumns]) -> list[Place]:
    """Return the positions of the calls' events."""
    return sorted(
        {(c.conversation_id, seq) for c in calls for seq in (c.called_seq, c.finished_seq) if seq is not None}
    )


def _read(body: str | None) -> ParsedPayload | None:
    try:
        return parse(body.encode("utf-8", "replace")) if body is not None else None
    except SwitchboardError:
        return None


def _object(body: str | None) -> Json:
    value = recorded_arguments.value_of(body or "")
    return value if isinstance(value, dict) else {}


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
