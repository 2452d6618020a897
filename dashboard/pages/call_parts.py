"""Parts of a call's pages, fit for drawing: every text of a team, a model or a person goes through the renderer."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.urls import reverse
from markupsafe import Markup

from conversations import links, log, recorded_call
from conversations.fragments import calls, content, differences, faces, hidden, jsontree, richtext, times
from conversations.fragments.calls import STATES
from conversations.fragments.times import When
from conversations.fragments.who import Who, of_name, who
from conversations.log.events import Stored
from conversations.models import ToolCall
from conversations.recorded_call import Recorded
from conversations.tools import diff, fit, versions

WIDTH = 200.0  # of the bars' scale
LEAST = 1.5  # of a bar, so that it is seen
WORDS = 120  # characters of an event in a list
DONE_BY = ("approval.decided", "replay.requested")  # told of the agent whose call it is; `by` says who did it

Part = dict[str, Any]  # what a template asks for by name


class Line(NamedTuple):
    """An event in a list: where it is, what it is, who says what; `call` leads to a call's own page."""

    seq: int
    href: str
    kind: Markup
    who: Who | None
    words: Markup
    call: str
    is_own: bool


class Bar(NamedTuple):
    """A call beside its siblings."""

    name: Markup
    href: str
    state: str
    status: str
    x: float
    width: float
    took: str
    is_own: bool


def head(one: Recorded) -> Part:
    """Draw what tells which call it is and how it went."""
    row, place, called = one.row, reverse("conversation", args=[one.key]), one.call.called
    shown = times.of_event(called.at, called.principal, one.told).shown
    return {
        "is": one, "id": row.id, "href": reverse("call", args=[row.id]), "place": place,
        "name": richtext.inline(one.tool[:200] or "unnamed tool"), "title": hidden.spell(one.tool[:200]),
        "state": STATES.get(row.status, "unknown"), "status": row.status, "word": calls.word_of(row.status),
        "took": times.duration(row.duration_ms), "agent": of_name(row.agent) if row.agent else None,
        "conversation": richtext.inline((row.conversation.title or one.key)[:120]),
        "at": datetime.fromtimestamp(row.started_at / 1e6, UTC),
        "first": shown if called.principal.startswith("import:") and shown != _when(called.at) else None,
        "event": links.of_event(one.key, row.called_seq), "note": calls.note_of(one.call),
    }  # fmt: skip


def identity(one: Recorded, facts: dict[str, Any]) -> list[tuple[str, list[Markup], str]]:
    """Draw the layers of the tool's identity, each apart, as the record has them; `facts` of the tool as offered now
    has what the record does not tell. The third of each says where it is from."""
    row, told = one.row, one.told
    whose = " of this replay" if row.run and row.replay_of else ", from the provider"
    recorded: list[tuple[str, Any]] = [
        ("Public name", row.name), ("Namespace", row.namespace), ("Qualified name", told.get("qualified_name")),
        ("Lookup key", row.lookup_key), ("Origin", row.origin), ("MCP server", told.get("mcp_server")),
        (f"Call id{whose}", row.call_id), ("Our id", row.id), ("Run", row.run),
        ("Inside call", told.get("parent_call")), ("Replay of", row.replay_of if row.run else None),
        ("Effect then", told.get("effect")),
    ]  # fmt: skip
    of_now = [("Approval keys", facts.get("approval_keys")), ("Trace name", facts.get("trace_name"))]
    of_now.append(("Name on its server", facts.get("name_there")))
    layers = [(term, _texts(value), "") for term, value in recorded]
    return [layer for layer in [*layers, *((term, _texts(value), "today") for term, value in of_now)] if layer[1]]


def _texts(value: Any) -> list[Markup]:
    values = value if isinstance(value, list) else [value]
    return [richtext.inline(one[:400]) for one in values[:20] if isinstance(one, str) and one]


def arguments(one: Recorded, schema: str) -> Part:
    """Draw the arguments: as they were sent, and beside the schema of then and of now (a hash; empty: not offered)."""
    text = one.arguments
    sent = _object(text)
    raw = one.told.get("args_raw")
    then, now = versions.body_of(one.row.schema or ""), versions.body_of(schema)
    edited = one.call.decided and faces.read(one.call.decided).body.get("args_raw")
    return {
        "tree": jsontree.draw(text) if text else None,
        "raw": jsontree.draw_verbatim(raw) if isinstance(raw, str) else None,
        "edited": jsontree.draw(edited) if isinstance(edited, str) else None,
        "is_object": sent is not None,
        "then": _fits(sent, then, len(text)), "now": _fits(sent, now, len(text)) if schema != one.row.schema else [],
        "hash": one.row.schema or "", "hash_now": schema, "is_known": bool(then),
        "changes": _changes(then, now) if then and now and schema != one.row.schema else None,
    }  # fmt: skip


def _fits(sent: dict[str, Any] | None, schema: dict[str, Any], size: int) -> list[Part]:
    given = schema.get("params_json_schema")
    if sent is None or not isinstance(given, dict):
        return []
    return [
        {
            "is": one, "name": richtext.inline(one.name[:200]), "type": richtext.inline(one.type[:200]),
            "sent": richtext.inline(_short(one.sent)) if one.is_sent else None, "why": richtext.inline(one.why),
        }
        for one in fit.fit_of(sent, given, size=size)
    ]  # fmt: skip


def _changes(then: dict[str, Any], now: dict[str, Any]) -> Part:
    found, is_cut = versions.compared(then, now)
    return {"rows": [_change(one) for one in found], "is_cut": is_cut}


def _change(one: diff.Change) -> differences.Row:
    sides = [None if text is None else [(richtext.inline(text), True)] for text in (one.before, one.after)]
    kind = "added" if one.before is None else "removed" if one.after is None else "changed"
    return differences.Row(richtext.inline(one.path[:400]), kind, differences.SIGNS[kind], sides[0], sides[1])


def outcome(one: Recorded) -> Part:
    """Draw what a call gave, and what it repeats beside it."""
    before = recorded_call.original(one)
    return {
        "output": content.result(one.output) if one.output else None, "error": _error(one),
        "before": head(before) if before else None,
        "beside": compared(before, one) if before and one.is_over else [],
        "bytes": one.result.get("output_bytes") if isinstance(one.result.get("output_bytes"), int) else None,
    }  # fmt: skip


def _error(one: Recorded) -> Markup | None:
    text = one.result.get("error")
    if text in (None, ""):
        return None
    return jsontree.draw_text(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False))


def compared(one: Recorded, other: Recorded) -> list[tuple[str, differences.Drawn]]:
    """Draw what differs between two calls: arguments, output, error, each where one of them has it."""
    parts = [("Arguments", one.arguments, other.arguments), ("Output", one.output, other.output)]
    parts.append(("Error", one.error, other.error))
    return [(name, differences.draw(before, after)) for name, before, after in parts if before or after]


def decision(one: Recorded) -> Part | None:
    """Draw who was asked about it, and who decided what."""
    found = one.approval
    if found is None:
        return None
    told = faces.read(one.call.decided).body if one.call.decided else {}
    waited = (found.decided_at or 0) - found.asked_at
    return {
        "is": found, "by": who(found.decided_by, found.decided_by) if found.decided_by else None,
        "words": {"approve": "Approved", "reject": "Rejected", "respond": "Answered instead", "edit": "Edited"}.get(
            found.decision or "", found.status.capitalize()
        ),
        "why": _words(one.call.asked, "why"), "after": times.duration(waited / 1000) if found.decided_at else "",
        "message": richtext.inline(_line(told.get("message"))), "reason": richtext.inline(_line(told.get("reason"))),
    }  # fmt: skip


def bars(one: Recorded, found: Sequence[ToolCall]) -> list[Bar]:
    """Draw calls as bars on one scale of time, this one among them."""
    ends = [row.started_at + int((row.duration_ms or 0) * 1000) for row in found]
    first = min((row.started_at for row in found), default=0)
    span = max(1, max(ends, default=1) - first)
    made = []
    for row in found:
        width = max(LEAST, (row.duration_ms or 0) * 1000 / span * WIDTH)
        x = min((row.started_at - first) / span * WIDTH, WIDTH - width)
        state, took = STATES.get(row.status, "unknown"), times.duration(row.duration_ms)
        href, name = reverse("call", args=[row.id]), richtext.inline(row.name[:80])
        made.append(
            Bar(name, href, state, row.status, round(max(0.0, x), 1), round(width, 1), took, row.id == one.row.id)
        )
    return made


def lines(one: Recorded, events: Sequence[Stored]) -> list[Line]:
    """Draw events as a list, a call's step with the way to its own page."""
    found, own = log.calls_of(one.key, events), set(one.call.seqs)
    return [_event(event, found[event.seq].id if event.seq in found else "", own) for event in events]


def _event(event: Stored, call: str, own: set[int]) -> Line:
    _, said, body = faces.read(event)
    by = body.get("by")
    speaker = by if event.kind in DONE_BY and isinstance(by, str) and event.run is not None else said.speaker
    words = said.name if event.kind == "tool_step" and said.name else " ".join(said.words[: WORDS * 4].split())
    return Line(
        event.seq, links.of_event(event.conversation, event.seq), richtext.inline(event.kind[:60]),
        who(speaker, event.principal) if speaker else None, richtext.inline((words or "")[:WORDS]),
        call if event.seq not in own else "", event.seq in own,
    )  # fmt: skip


def row(found: ToolCall) -> Part:
    """Draw a call of a short list."""
    return {
        "is": found, "state": STATES.get(found.status, "unknown"), "word": calls.word_of(found.status),
        "href": reverse("call", args=[found.id]), "took": times.duration(found.duration_ms),
        "when": _when(found.started_at), "at": datetime.fromtimestamp(found.started_at / 1e6, UTC),
    }  # fmt: skip


def raw(one: Recorded) -> list[tuple[Markup, Markup]]:
    """Draw the stored texts."""
    return [(richtext.inline(name), jsontree.draw(text)) for name, text in recorded_call.raw(one)]


def _when(at: int) -> When:
    return times.of_event(at, "", {}).shown


def _words(event: Stored | None, name: str) -> Markup:
    return richtext.inline(_line(faces.read(event).body.get(name))) if event is not None else Markup()


def _line(value: object) -> str:
    return value[:1000] if isinstance(value, str) else ""


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= WORDS * 2 else f"{text[: WORDS * 2]}…"


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
