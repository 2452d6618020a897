"""A tool call as one block: name, arguments, outcome, duration; closed at first. Called by `event_renderer`."""

import re
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from conversations.core import hidden_characters, principals
from conversations.events import recorded_arguments, registry
from conversations.events.log.records import LEFT, CallEvents, Stored
from conversations.events.projections.open_calls import NO_RESULT
from conversations.events.response_ids import CLIENT_ORIGIN
from conversations.rendering import (
    approval_block,
    event_rows,
    json_tree,
    message_body,
    offered_tools,
    richtext,
    timestamps,
)

PREVIEW = 160  # characters of the arguments in the closed block
READABLE = 65_536  # bytes of arguments whose escapes are written out there

STATES = {  # status of §3.6 → the glyph
    "called": "running",
    "waiting": "waiting",
    "approved": "queued",
    "executing": "running",
    "done": "done",
    "failed": "failed",
    "timeout": "failed",
    "rejected": "rejected",
    "blocked": "rejected",
    "unknown": "unknown",
    NO_RESULT: "queued",
    LEFT: "queued",
}
WORDS = {
    LEFT: "not finished",
    NO_RESULT: "no result recorded",
    "called": "called",
    "executing": "running",
    "timeout": "timed out",
    "blocked": "did not run",
}
_WAITS = {"waiting": "waiting for approval"}
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OPENING = registry.names_with("opens_call")
LOUD = ("waiting", "unknown")  # statuses that are shown at every level of detail
OVER = ("withdrawn", "expired")  # states of an approval request that say why the call did not run


class Brief(NamedTuple):
    """A call on one line: plain texts, shortened."""

    name: str
    preview: str
    state: str
    word: str
    came: str  # the beginning of what came of it


class Block(NamedTuple):
    """The context of templates/events/tool_step.html beside the row."""

    name: Markup
    title: str
    status: str
    word: str
    preview: Markup
    duration: str
    arguments: Markup | None
    result: Markup | None
    error: Markup | None
    call_id: Markup | None
    nth: int
    where: str
    has_inner: bool  # runs here, and so may have runs inside it
    steps: tuple[tuple[str, int], ...]  # what happened to it at which later event
    extra: Markup | None
    approval: approval_block.ApprovalBlock | None
    schema: str  # the hash of the schema that the call was made under, where a page tells of it
    agent: str  # who called it, as it is named in an address
    note: Markup | None  # why it did not run, or what is not known of it
    place: str = ""  # the address of its conversation, where it is drawn elsewhere
    awaits: str = ""  # its id, while it waits for its client: a person may answer it by hand
    answered_by: str = ""  # who gave the output of a client's call
    home: str = ""  # its conversation
    before: int = 0  # the event before it: where a fork begins that has not called it
    reason: Markup | None = None  # why it failed, in a line
    id: str = ""  # of the call, where it has a page of its own
    replay_of: str = ""  # the call that it repeats, ours


def word_of(status: str) -> str:
    """Return a status in words."""
    return WORDS.get(status, status)


def word_of_call(call: CallEvents) -> str:
    """Return what became of a call. One that a person responded to is not going to run, as "approved" would say."""
    decided = _parsed(call.approval_decision) if call.status == "approved" else None
    return "responded" if decided and decided.body.get("decision") == "respond" else word_of(call.status)


def note_of(call: CallEvents) -> Markup | None:
    """Return why a call did not run, or what is unknown about it; None if there is nothing to say."""
    return _note(_parsed(call.finished), call.status)


def brief(call: CallEvents) -> Brief:
    """Return a call in short form, for a place that links to its block."""
    called, finished = event_rows.parse_event(call.called), _parsed(call.finished)
    is_ours = principals.is_ours(call.called.principal) and call.called.run is not None
    is_awaited = is_ours and called.payload.origin == CLIENT_ORIGIN and call.status == "called"
    raw = finished and (finished.payload.error or finished.payload.output or finished.payload.result_summary)
    return Brief(
        name=_name(called, finished)[:PREVIEW],
        preview=_arguments_line(called, call),
        state="waiting" if is_awaited else STATES.get(call.status, "unknown"),
        word="waiting for the client" if is_awaited else _WAITS.get(call.status, word_of_call(call)),
        came=hidden_characters.spelled_out(bytes(raw)[: PREVIEW * 4].decode("utf-8", "ignore"))[:PREVIEW]
        if raw
        else "",
    )


def draw(call: CallEvents, group: str | None) -> Markup:
    """Draw a call from both its steps."""
    return event_rows.render("tool_step", *_parts(call, group, ""))


def card(call: CallEvents, address: str) -> Markup:
    """Draw a call's approval request as in the transcript, without the row around it. `address` is that of its
    conversation, which links within a transcript are relative to."""
    return event_rows.render_as("tool_step", "card", *_parts(call, None, address))


def _parts(call: CallEvents, group: str | None, address: str) -> tuple[event_rows.RowFields, Block]:
    called = event_rows.parse_event(call.called)
    finished, request = _parsed(call.finished), _parsed(call.approval_request)
    approval = approval_block.of_call(call, request) if request else None
    is_ours = principals.is_ours(call.called.principal) and call.called.run is not None
    is_clients = is_ours and called.payload.origin == CLIENT_ORIGIN
    is_awaited = is_clients and call.status == "called"
    state = "waiting" if is_awaited else STATES.get(call.status, "unknown")
    level = "chat" if call.status in LOUD else "steps"
    row = event_rows.row(called, level, state=state, group=group)
    result = finished if finished and finished.event.kind == "tool_step" else None
    return row, Block(
        name=richtext.inline(_name(called, finished, request)),
        title=hidden_characters.spelled_out(called.payload.lookup_key or called.payload.name or ""),
        status=call.status,
        word="waiting for the client" if is_awaited else word_of_call(call),
        preview=Markup() if approval and approval.is_budget else richtext.inline(_arguments_line(called, call)),
        duration=timestamps.duration(call.duration_ms),
        arguments=None if approval and approval.is_budget else _arguments(called),
        result=_result(result) if result else None,
        error=_error(result) if result else None,
        reason=_reason(result) if result and state == "failed" else None,
        call_id=richtext.inline(called.payload.tool_call_id[:200]) if called.payload.tool_call_id else None,
        nth=call.nth,
        where=_where(is_ours, is_clients),
        has_inner=is_ours and not is_clients,
        steps=_steps(call),
        extra=_extra(called, result),
        approval=approval,
        schema=_schema(call, called),
        agent=called.payload.agent or "",
        note=_note(finished, call.status) if approval is None or approval.state not in OVER else None,
        place=address,
        awaits=hidden_characters.spelled_out(call.id) if is_awaited else "",
        answered_by=_answered_by(result) if result and is_clients else "",
        home=call.called.conversation,
        before=call.called.seq - 1,
        id=call.id if _ID.fullmatch(call.id) else "",
        replay_of=_original(called),
    )


def _parsed(event: Stored | None) -> event_rows.ParsedEvent | None:
    return event_rows.parse_event(event) if event else None


def _name(*steps: event_rows.ParsedEvent | None) -> str:
    return next((step.payload.name for step in steps if step and step.payload.name), "unnamed tool")


def _answered_by(result: event_rows.ParsedEvent) -> str:
    return hidden_characters.spelled_out(event_rows.line(result.body.get("answered_by")))[:160]


def _where(is_ours: bool, is_clients: bool) -> str:
    if is_clients:
        return "Runs on the client"
    return "Runs on this server" if is_ours else "Observed"


def _original(called: event_rows.ParsedEvent) -> str:
    """Return the call that a replay of ours repeats; empty otherwise, also for a claim from outside."""
    replay_of = called.payload.replay_of or ""
    return replay_of if called.event.run is not None and _ID.fullmatch(replay_of) else ""


def _steps(call: CallEvents) -> tuple[tuple[str, int], ...]:
    """Return the later events of the block, which have no row of their own to link to."""
    word = (
        (approval_block.closed_as(call.approval_decision.kind) or "decided").capitalize()
        if call.approval_decision
        else ""
    )
    steps = (("Requested", call.approval_request), (word, call.approval_decision), ("Ended", call.finished))
    seen = {call.called.seq: "", **{event.seq: word for word, event in reversed(steps) if event is not None}}
    if call.finished is not None and _broken_off(call.finished.kind):
        seen.pop(call.finished.seq)  # it has a row of its own
    return tuple((word, seq) for seq, word in sorted(seen.items()) if seq != call.called.seq)


def _broken_off(kind: str) -> str:
    """Return why a call did not end by itself, if an event of this type ended its run; else empty."""
    event_type = registry.declared(kind)
    return event_type.run_end.call_reason if event_type is not None and event_type.run_end is not None else ""


def _extra(called: event_rows.ParsedEvent, result: event_rows.ParsedEvent | None) -> Markup | None:
    if called.event.kind not in _OPENING:
        return None
    for step in (called, result):
        extra = message_body.more(step.body, message_body.STEP | approval_block.FIELDS) if step else None
        if extra is not None:
            return extra
    return None


def _schema(call: CallEvents, called: event_rows.ParsedEvent) -> str:
    """Return the schema of a call of ours; empty for a call reported from outside, which links nowhere."""
    schema = called.payload.schema or ""
    is_known = call.called.run is not None and offered_tools.HASH.fullmatch(schema) is not None
    return schema if is_known else ""


def _note(finished: event_rows.ParsedEvent | None, status: str) -> Markup | None:
    if status == LEFT:
        return richtext.inline("Not finished when this conversation was forked; see the original for the outcome.")
    if finished is None or finished.event.kind == "tool_step" or status == "rejected":
        return None
    if why := _broken_off(finished.event.kind):
        text = f"It was running when {why}: it may or may not have taken effect."
        return richtext.inline(text if status == "unknown" else f"It did not run: {why} before.")
    if approval_block.closed_as(finished.event.kind):
        return None  # the approval request says it
    reason = finished.body.get("reason")
    return richtext.inline(reason[:1000]) if isinstance(reason, str) and reason else None


def lone(event: Stored) -> CallEvents:
    """Return a call of one step whose other step is not in the record."""
    parsed = event_rows.parse_event(event).payload
    has_result = parsed.result_summary is not None or parsed.output is not None or parsed.error is not None
    is_end = parsed.status in ("success", "error") or (parsed.status is None and has_result)
    failed = parsed.status == "error" or (parsed.status is None and parsed.error is not None)
    status = ("failed" if failed else "done") if is_end else "called"
    return CallEvents("", status, 1, event.at, parsed.duration_ms, event, event if is_end else None)


def _arguments_line(step: event_rows.ParsedEvent, call: CallEvents) -> str:
    """Return the beginning of the arguments that ran: as edited by a person, else as sent."""
    edited = (
        recorded_arguments.edited(event_rows.parse_event(call.approval_decision).body)
        if call.approval_decision
        else None
    )
    raw = bytes(step.payload.args or b"") or (step.payload.args_raw or "").encode("utf-8", "replace")
    raw = raw if edited is None else edited.encode("utf-8", "replace")
    text = _readable(raw)[: PREVIEW * 4].decode("utf-8", "ignore")
    return " ".join(text.split())[:PREVIEW]


def _readable(raw: bytes) -> bytes:
    """Decode the letters that a sender escaped; long text and text that is not JSON stays as it is."""
    if b"\\u" not in raw or len(raw) > READABLE:
        return raw
    try:
        return msgspec.json.encode(msgspec.json.decode(raw))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return raw


def _arguments(step: event_rows.ParsedEvent) -> Markup | None:
    if step.payload.args is not None and bytes(step.payload.args) != b"null":
        return json_tree.draw(bytes(step.payload.args).decode("utf-8", "replace"))
    return json_tree.draw(step.payload.args_raw) if step.payload.args_raw else None


def _result(step: event_rows.ParsedEvent) -> Markup | None:
    raw = step.payload.output if step.payload.output is not None else step.payload.result_summary
    return message_body.result(bytes(raw).decode("utf-8", "replace")) if raw is not None else None


def _error(step: event_rows.ParsedEvent) -> Markup | None:
    text = _error_text(step)
    return json_tree.draw_text(text) if text is not None else None


def _reason(step: event_rows.ParsedEvent) -> Markup | None:
    lines = (_error_text(step) or "").strip().splitlines()
    return richtext.inline(lines[0][:PREVIEW]) if lines else None


def _error_text(step: event_rows.ParsedEvent) -> str | None:
    if step.payload.error is None or (raw := bytes(step.payload.error)) in (b"null", b'""'):
        return None
    value = msgspec.json.decode(raw)
    return value if isinstance(value, str) else raw.decode("utf-8", "replace")
