"""A tool call → one block: name, arguments, outcome, duration, closed until asked. Called by drawing."""

import re
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from conversations import principals
from conversations.fragments import content, faces, hidden, jsontree, offered, questions, richtext, times
from conversations.log.events import LEFT, Call, Stored
from conversations.responses import EXTERNAL

PREVIEW = 160  # characters of the arguments in the closed block
READABLE = 65_536  # bytes of arguments whose escapes are written out there

STATES = {  # status of design 3.6 → the glyph
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
    LEFT: "queued",
}
WORDS = {
    LEFT: "had not ended",
    "called": "called",
    "executing": "running",
    "timeout": "timed out",
    "blocked": "did not run",
}
_WAITS = {"waiting": "waits for a decision"}
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
LOUD = ("waiting", "unknown")  # statuses that are told at every level of detail
OVER = ("withdrawn", "expired")  # states of a question that say why the call did not run
_RUN_ENDS = {  # of the run, while the call was executing
    "run.interrupted": "its worker was lost",
    "run.cancelled": "its run was stopped",
    "run.failed": "its run failed",
    "run.incompatible": "its run could not go on",
}


class Brief(NamedTuple):
    """A call in one line: plain texts, cut short."""

    name: str
    preview: str
    state: str
    word: str
    came: str  # the beginning of what came of it


class Block(NamedTuple):
    """What templates/events/tool_step.html draws beside the row."""

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
    question: questions.Question | None
    schema: str  # the hash of the schema that the call was made under, where a page tells of it
    agent: str  # who called it, as it is named in an address
    note: Markup | None  # why it did not run, or what is not known of it
    place: str = ""  # the address of its conversation, where it is drawn elsewhere
    awaits: str = ""  # its id, while it waits for its client: a person may answer it by hand
    answered_by: str = ""  # who gave the output of a client's call
    home: str = ""  # its conversation
    before: int = 0  # the event before it: where a fork begins that has not called it
    id: str = ""  # of the call, where it has a page of its own
    replay_of: str = ""  # the call that it repeats, ours


def word_of(status: str) -> str:
    """Say a status."""
    return WORDS.get(status, status)


def note_of(call: Call) -> Markup | None:
    """Say why a call did not run, or what is not known of it; None where there is nothing to say."""
    return _note(faces.read(call.finished) if call.finished else None, call.status)


def brief(call: Call) -> Brief:
    """Tell a call in short, for a place that leads to its block."""
    called, finished = faces.read(call.called), faces.read(call.finished) if call.finished else None
    is_ours = principals.is_ours(call.called.principal) and call.called.run is not None
    is_awaited = is_ours and called.said.origin == EXTERNAL and call.status == "called"
    steps = [step for step in (called, finished) if step is not None]
    raw = finished and (finished.said.error or finished.said.output or finished.said.result_summary)
    return Brief(
        name=next(filter(None, (step.said.name for step in steps)), "unnamed tool")[:PREVIEW],
        preview=_arguments_line(called),
        state="waiting" if is_awaited else STATES.get(call.status, "unknown"),
        word="waits for the client" if is_awaited else _WAITS.get(call.status, word_of(call.status)),
        came=hidden.spell(bytes(raw)[: PREVIEW * 4].decode("utf-8", "ignore"))[:PREVIEW] if raw else "",
    )


def draw(call: Call, group: str | None) -> Markup:
    """Draw a call from both its steps."""
    return faces.render("tool_step", *_parts(call, group, ""))


def card(call: Call, place: str) -> Markup:
    """Draw a call's question as its block in the transcript has it, without the row around it. `place` is the address
    of its conversation: links within a transcript begin there."""
    return faces.render_as("tool_step", "card", *_parts(call, None, place))


def _parts(call: Call, group: str | None, place: str) -> tuple[faces.Row, Block]:
    called = faces.read(call.called)
    finished, asked = (faces.read(event) if event else None for event in (call.finished, call.asked))
    question = questions.of_call(call, asked) if asked else None
    is_ours = principals.is_ours(call.called.principal) and call.called.run is not None
    is_clients = is_ours and called.said.origin == EXTERNAL
    is_awaited = is_clients and call.status == "called"
    state = "waiting" if is_awaited else STATES.get(call.status, "unknown")
    level = "chat" if call.status in LOUD else "steps"
    row = faces.row(called, level, state=state, group=group)
    steps = [step for step in (called, finished, asked) if step is not None]
    result = finished if finished and finished.event.kind == "tool_step" else None
    return row, Block(
        name=richtext.inline(next(filter(None, (step.said.name for step in steps)), "unnamed tool")),
        title=hidden.spell(called.said.lookup_key or called.said.name or ""),
        status=call.status,
        word="waiting for the client" if is_awaited else word_of(call.status),
        preview=_preview(called),
        duration=times.duration(call.duration_ms),
        arguments=_arguments(called),
        result=_result(result) if result else None,
        error=_error(result) if result else None,
        call_id=richtext.inline(called.said.tool_call_id[:200]) if called.said.tool_call_id else None,
        nth=call.nth,
        where="Run by the client" if is_clients else "Run here" if is_ours else "Observed",
        has_inner=is_ours and not is_clients,
        steps=_steps(call),
        extra=_extra(called, result),
        question=question,
        schema=_schema(call, called),
        agent=called.said.agent or "",
        note=_note(finished, call.status) if question is None or question.state not in OVER else None,
        place=place,
        awaits=hidden.spell(call.id) if is_awaited else "",
        answered_by=hidden.spell(faces.line(result.body.get("answered_by")))[:160] if result and is_clients else "",
        home=call.called.conversation,
        before=call.called.seq - 1,
        id=call.id if _ID.fullmatch(call.id) else "",
        replay_of=_original(called),
    )


def _original(called: faces.Read) -> str:
    """Answer the call that one of ours repeats; a claim from outside repeats none."""
    told = called.said.replay_of or ""
    return told if called.event.run is not None and _ID.fullmatch(told) else ""


def _steps(call: Call) -> tuple[tuple[str, int], ...]:
    """Answer the later events that the block is made of: they have no row of their own to link to."""
    closed = {"approval.cancelled": "Withdrawn", "approval.expired": "Expired"}
    word = closed.get(call.decided.kind, "Decided") if call.decided else ""
    told = (("Asked", call.asked), (word, call.decided), ("Ended", call.finished))
    seen = {call.called.seq: "", **{event.seq: word for word, event in reversed(told) if event is not None}}
    if call.finished is not None and call.finished.kind in _RUN_ENDS:
        seen.pop(call.finished.seq)  # it has a row of its own
    return tuple((word, seq) for seq, word in sorted(seen.items()) if seq != call.called.seq)


def _extra(called: faces.Read, result: faces.Read | None) -> Markup | None:
    if called.event.kind not in ("tool_step", "approval.requested"):
        return None
    for step in (called, result):
        extra = content.more(step.body, content.STEP | questions.FIELDS) if step else None
        if extra is not None:
            return extra
    return None


def _schema(call: Call, called: faces.Read) -> str:
    """Answer the schema of a call of ours; what is told from outside links nowhere."""
    schema = called.said.schema or ""
    is_known = call.called.run is not None and offered.HASH.fullmatch(schema) is not None
    return schema if is_known else ""


def _note(finished: faces.Read | None, status: str) -> Markup | None:
    if status == LEFT:
        return richtext.inline("It had not ended where this conversation was forked: how it did is told there.")
    if finished is None or finished.event.kind == "tool_step" or status == "rejected":
        return None
    if why := _RUN_ENDS.get(finished.event.kind):
        doubt = f"It was running when {why}: it may or may not have had its effect."
        return richtext.inline(doubt if status == "unknown" else f"It did not run: {why} before.")
    if finished.event.kind in ("approval.cancelled", "approval.expired"):
        return None  # the question says it
    reason = finished.body.get("reason")
    return richtext.inline(reason[:1000]) if isinstance(reason, str) and reason else None


def lone(event: Stored) -> Call:
    """Make a call of one step whose partner the record does not know."""
    said = faces.read(event).said
    has_result = said.result_summary is not None or said.output is not None or said.error is not None
    is_end = said.status in ("success", "error") or (said.status is None and has_result)
    failed = said.status == "error" or (said.status is None and said.error is not None)
    status = ("failed" if failed else "done") if is_end else "called"
    return Call("", status, 1, event.at, said.duration_ms, event, event if is_end else None)


def _preview(step: faces.Read) -> Markup:
    return richtext.inline(_arguments_line(step))


def _arguments_line(step: faces.Read) -> str:
    raw = bytes(step.said.args or b"") or (step.said.args_raw or "").encode("utf-8", "replace")
    text = _readable(raw)[: PREVIEW * 4].decode("utf-8", "ignore")
    return " ".join(text.split())[:PREVIEW]


def _readable(raw: bytes) -> bytes:
    """Write out the letters that a sender escaped; what is long or no JSON stays as it came."""
    if b"\\u" not in raw or len(raw) > READABLE:
        return raw
    try:
        return msgspec.json.encode(msgspec.json.decode(raw))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return raw


def _arguments(step: faces.Read) -> Markup | None:
    if step.said.args is not None and bytes(step.said.args) != b"null":
        return jsontree.draw(bytes(step.said.args).decode("utf-8", "replace"))
    return jsontree.draw(step.said.args_raw) if step.said.args_raw else None


def _result(step: faces.Read) -> Markup | None:
    raw = step.said.output if step.said.output is not None else step.said.result_summary
    return content.result(bytes(raw).decode("utf-8", "replace")) if raw is not None else None


def _error(step: faces.Read) -> Markup | None:
    if step.said.error is None or (raw := bytes(step.said.error)) in (b"null", b'""'):
        return None
    value = msgspec.json.decode(raw)
    return jsontree.draw_text(value if isinstance(value, str) else raw.decode("utf-8", "replace"))
