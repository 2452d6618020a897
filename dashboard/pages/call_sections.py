"""Sections of a call's page, ready to draw: every text from a team, a model or a person is escaped by the renderer."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from django.urls import reverse
from markupsafe import Markup

from conversations.core import hidden_characters, page_urls, principals
from conversations.core.json_values import as_text, parse_object
from conversations.core.micros import to_datetime
from conversations.events import log
from conversations.events.log import imported_times
from conversations.events.log.records import Stored
from conversations.models import ToolCall
from conversations.models.approval import DECISION_WORDS
from conversations.rendering import (
    diff_rows,
    event_rows,
    json_tree,
    message_body,
    richtext,
    timestamps,
    tool_call_block,
)
from conversations.rendering.participant_marks import ParticipantMark, mark_for, mark_for_name
from conversations.rendering.timestamps import When
from conversations.rendering.tool_call_block import STATES
from conversations.tool_calls import call_record
from conversations.tool_calls.call_record import CallRecord
from conversations.tool_calls.schemas import argument_report, versions
from dashboard.pages.base_context import Part

WIDTH = 200.0  # of the bars' scale
MIN_BAR_WIDTH = 1.5  # of a bar, so that it is seen
MAX_CHARS = 120  # characters of an event in a list

Layer = tuple[str, list[Markup], str]  # a term, its texts in the record, and "today" for the tool as offered now


class CallEventLine(NamedTuple):
    """An event in a list: its address, type, sender and text; `call` links to a call's own page."""

    seq: int
    href: str
    kind: Markup
    who: ParticipantMark | None
    words: Markup
    call: str
    is_own: bool


class SiblingBar(NamedTuple):
    """A call as a bar beside its siblings."""

    name: Markup
    href: str
    state: str
    status: str
    x: float
    width: float
    took: str
    is_own: bool


def heading(recorded: CallRecord) -> Part:
    """Return the heading of a call: its name, state, agent and place."""
    row, called = recorded.row, recorded.call.called
    conversation_href = reverse("conversation", args=[recorded.conversation_key])
    shown = timestamps.of_event(called.at, called.principal, recorded.called_body).shown
    return {
        "recorded": recorded,
        "id": row.id,
        "href": reverse("call", args=[row.id]),
        "place": conversation_href,
        "name": richtext.inline(recorded.tool[:200] or "unnamed tool"),
        "title": hidden_characters.spelled_out(recorded.tool[:200]),
        "state": STATES.get(row.status, "unknown"),
        "status": row.status,
        "word": tool_call_block.word_of_call(recorded.call),
        "took": timestamps.duration(row.duration_ms),
        "agent": mark_for_name(row.agent) if row.agent else None,
        "conversation": _conversation(row),
        "at": to_datetime(row.started_at),
        "first": shown if principals.is_imported(called.principal) and shown != _when(called.at) else None,
        "event": page_urls.event_url(recorded.conversation_key, row.called_seq),
        "note": tool_call_block.note_of(recorded.call),
    }


def _conversation(call: ToolCall) -> Markup:
    return richtext.inline((call.conversation.title or call.conversation.key)[:120])


def identity(call: CallRecord) -> list[Layer]:
    """Return the recorded names that identify the tool, each on its own line."""
    row, body = call.row, call.called_body
    return _layers([
        ("Public name", row.name), ("Namespace", row.namespace), ("Qualified name", body.get("qualified_name")),
        ("Origin", row.origin), ("MCP server", body.get("mcp_server")), ("Effect at the time", body.get("effect")),
    ])  # fmt: skip


def ids(call: CallRecord, tool_fields: dict[str, Any]) -> list[Layer]:
    """Return the ids and keys of the call and its tool; `tool_fields`, of the tool as offered now, supplies those that
    are not recorded."""
    row, whose = call.row, " of this replay" if call.row.run and call.row.replay_of else " from the provider"
    recorded = _layers([
        ("Lookup key", row.lookup_key), (f"Call ID{whose}", row.call_id), ("ID", row.id), ("Run", row.run),
        ("Inside call", call.called_body.get("parent_call")), ("Replay of", row.replay_of if row.run else None),
    ])  # fmt: skip
    names = {"approval_keys": "Approval keys", "trace_name": "Trace name", "name_there": "Name on the server"}
    return recorded + _layers([(term, tool_fields.get(name)) for name, term in names.items()], "today")


def _layers(values: list[tuple[str, Any]], when: str = "") -> list[Layer]:
    layers = [(term, _texts(value), when) for term, value in values]
    return [layer for layer in layers if layer[1]]


def _texts(value: Any) -> list[Markup]:
    values = value if isinstance(value, list) else [value]
    return [richtext.inline(text[:400]) for text in values[:20] if isinstance(text, str) and text]


def arguments(recorded: CallRecord, schema: str) -> Part:
    """Return the arguments as sent, as a person edited them, and as they ran, checked against the schema at the time
    and the current one (`schema`: its hash, empty if the tool is no longer offered)."""
    text, edited = recorded.arguments, recorded.edited
    sent, raw = parse_object(recorded.ran), recorded.called_body.get("args_raw")
    before = parse_object(text) if edited is not None else None
    then, now = versions.body_of(recorded.row.schema or ""), versions.body_of(schema)
    return {
        "tree": json_tree.draw(text) if text else None,
        "raw": json_tree.draw_verbatim(raw) if isinstance(raw, str) else None,
        "edited": json_tree.draw(edited) if edited is not None else None, "by": _editor(recorded),
        "edits": diff_rows.draw(text, edited) if edited is not None else None,
        "is_object": sent is not None, "then": _fits(sent, before, then, len(recorded.ran)),
        "now": _fits(sent, before, now, len(recorded.ran)) if schema != recorded.row.schema else [],
        "hash": recorded.row.schema or "", "hash_now": schema, "is_known": bool(then),
        "changes": _changes(then, now) if then and now and schema != recorded.row.schema else None,
    }  # fmt: skip


def _editor(recorded: CallRecord) -> ParticipantMark | None:
    """Return who edited the arguments before the call ran; None if nobody did."""
    by = recorded.approval.decided_by if recorded.approval and recorded.edited is not None else None
    return mark_for(by, by) if by else None


def _fits(sent: dict[str, Any] | None, before: dict[str, Any] | None, schema: dict[str, Any], size: int) -> list[Part]:
    """Check the arguments that ran (`sent`) against a schema, field by field, and mark where they differ from
    `before`."""
    parameters = schema.get("params_json_schema")
    if sent is None or not isinstance(parameters, dict):
        return []
    return [
        {
            "field": field, "name": richtext.inline(field.name[:200]), "type": richtext.inline(field.type[:200]),
            "sent": richtext.inline(_short(field.sent)) if field.is_sent else None, "why": richtext.inline(field.why),
            "is_changed": before is not None and _differs(before, sent, field.name),
            "was": richtext.inline(_short(before[field.name])) if before is not None and field.name in before else None,
        }
        for field in argument_report.fit_of(sent, parameters, size=size)
    ]  # fmt: skip


def _differs(before: dict[str, Any], sent: dict[str, Any], name: str) -> bool:
    """Compare as JSON: for Python 1, 1.0 and true are equal."""
    return (name in before) != (name in sent) or _sorted(before.get(name)) != _sorted(sent.get(name))


def _sorted(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _changes(then: dict[str, Any], now: dict[str, Any]) -> Part:
    diff = versions.compared(then, now)
    return {"rows": [diff_rows.draw_row(change, change.path[:400]) for change in diff.changes], "is_cut": diff.is_cut}


def outcome(recorded: CallRecord) -> Part:
    """Return the output and error of a call; for a replay, also the original call and how the two differ."""
    before, size = call_record.original(recorded), recorded.ended_body.get("output_bytes")
    return {
        "output": message_body.result(recorded.output) if recorded.output else None, "error": _error(recorded),
        "before": heading(before) if before else None,
        "beside": compared(before, recorded) if before and recorded.is_over else [],
        "bytes": size if isinstance(size, int) else None,
    }  # fmt: skip


def _error(recorded: CallRecord) -> Markup | None:
    text = recorded.ended_body.get("error")
    if text in (None, ""):
        return None
    return json_tree.draw_text(as_text(text))


def compared(first: CallRecord, other: CallRecord) -> list[tuple[str, diff_rows.RenderedDiff]]:
    """Return the differences between two calls in arguments, output and error, where either has any."""
    parts = [("Arguments", first.ran, other.ran), ("Output", first.output, other.output)]
    parts.append(("Error", first.error, other.error))
    return [(name, diff_rows.draw(before, after)) for name, before, after in parts if before or after]


def comparable(recorded: CallRecord) -> list[Part]:
    """Return the calls that one may be compared with, each once: the one that it replays, its replays, and others of
    its tool, newest first."""
    original = call_record.original(recorded)
    replays = call_record.replays(recorded)
    calls = [*([original.row] if original else []), *replays, *call_record.recent_calls(recorded)]
    relations = {call.id: "replay" for call in replays} | ({original.row.id: "original"} if original else {})
    listed = {call.id: call for call in calls}
    return [
        part | {"relation": relations.get(id_, ""), "conversation": _conversation(call)}
        for (id_, call), part in zip(listed.items(), rows(list(listed.values())), strict=True)
    ]


def decision(call: CallRecord) -> Part | None:
    """Return who was asked about the call, and who decided what; None if nobody was asked."""
    approval = call.approval
    if approval is None:
        return None
    body = event_rows.parse_event(call.call.approval_decision).body if call.call.approval_decision else {}
    waited = (approval.decided_at or 0) - approval.asked_at
    return {
        "approval": approval, "by": mark_for(approval.decided_by, approval.decided_by) if approval.decided_by else None,
        "words": DECISION_WORDS.get(approval.decision or "", approval.status).capitalize(),
        "why": _words(call.call.approval_request, "why"),
        "after": timestamps.duration(waited / 1000) if approval.decided_at else "",
        "message": richtext.inline(_line(body.get("message"))), "reason": richtext.inline(_line(body.get("reason"))),
    }  # fmt: skip


def bars(recorded: CallRecord, siblings: Sequence[ToolCall]) -> list[SiblingBar]:
    """Return calls as bars on one time scale, including this one."""
    begun = imported_times.called_at(siblings)
    ends = [begun[row.id] + int((row.duration_ms or 0) * 1000) for row in siblings]
    first = min(begun.values(), default=0)
    span = max(1, max(ends, default=1) - first)
    drawn = []
    for row in siblings:
        width = max(MIN_BAR_WIDTH, (row.duration_ms or 0) * 1000 / span * WIDTH)
        x = min((begun[row.id] - first) / span * WIDTH, WIDTH - width)
        state, duration = STATES.get(row.status, "unknown"), timestamps.duration(row.duration_ms)
        href, name = reverse("call", args=[row.id]), richtext.inline(row.name[:80])
        drawn.append(
            SiblingBar(
                name,
                href,
                state,
                row.status,
                round(max(0.0, x), 1),
                round(width, 1),
                duration,
                row.id == recorded.row.id,
            )
        )
    return drawn


def lines(recorded: CallRecord, events: Sequence[Stored]) -> list[CallEventLine]:
    """Return events as a list; the step of another call links to its own page."""
    ids, own = _call_ids(recorded.conversation_key, events), set(recorded.call.seqs)
    return [_event(event, ids.get(event.seq, ""), own) for event in events]


def _call_ids(key: str, events: Sequence[Stored]) -> dict[int, str]:
    try:
        return {seq: call.id for seq, call in log.calls_of(key, events).items()}
    except log.TooManyBytes:
        return {seq: call.id for event in events for seq, call in log.calls_of(key, [event]).items()}


def _event(event: Stored, call: str, own: set[int]) -> CallEventLine:
    read = event_rows.parse_event(event)
    parsed, author = read.payload, event_rows.author(read)
    text = parsed.name if event.kind == "tool_step" and parsed.name else " ".join(parsed.words[: MAX_CHARS * 4].split())
    return CallEventLine(
        event.seq, page_urls.event_url(event.conversation, event.seq), richtext.inline(event.kind[:60]),
        mark_for(author, event.principal) if author else None, richtext.inline((text or "")[:MAX_CHARS]),
        call if event.seq not in own else "", event.seq in own,
    )  # fmt: skip


def rows(calls: Sequence[ToolCall]) -> list[Part]:
    """Return calls for a short list."""
    begun = imported_times.called_at(calls)
    return [
        {
            "row": call, "state": STATES.get(call.status, "unknown"), "word": tool_call_block.word_of(call.status),
            "href": reverse("call", args=[call.id]), "took": timestamps.duration(call.duration_ms),
            "at": to_datetime(begun[call.id]),
        }
        for call in calls
    ]  # fmt: skip


def raw(recorded: CallRecord) -> list[tuple[Markup, Markup]]:
    """Return the stored texts."""
    return [(richtext.inline(name), json_tree.draw(text)) for name, text in call_record.raw(recorded)]


def _when(at: int) -> When:
    return timestamps.of_event(at, "", {}).shown


def _words(event: Stored | None, name: str) -> Markup:
    return richtext.inline(_line(event_rows.parse_event(event).body.get(name))) if event is not None else Markup()


def _line(value: object) -> str:
    return value[:1000] if isinstance(value, str) else ""


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_CHARS * 2 else f"{text[: MAX_CHARS * 2]}…"
