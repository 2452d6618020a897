"""A tool call → one block: name, arguments, outcome, duration, closed until asked. Called by drawing."""

from typing import NamedTuple

import msgspec
from markupsafe import Markup

from conversations import principals
from conversations.fragments import content, faces, hidden, jsontree, richtext, times
from conversations.log.events import Call, Stored

PREVIEW = 160  # characters of the arguments in the closed block

_STATES = {  # status of design 3.6 → the glyph
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
}
_WORDS = {"called": "called", "executing": "running", "timeout": "timed out"}


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
    is_ours: bool
    finished_seq: int | None  # None too when one event is both steps
    extra: Markup | None


def draw(call: Call, group: str | None) -> Markup:
    """Draw a call from both its steps."""
    called = faces.read(call.called)
    finished = faces.read(call.finished) if call.finished else None
    last = finished or called
    row = faces.row(called, "steps", state=_STATES.get(call.status, "unknown"), group=group)
    known = content.STEP
    extras = [content.more(step.body, known) for step in ([called] if last is called else [called, last])]
    block = Block(
        name=richtext.inline(called.said.name or last.said.name or "unnamed tool"),
        title=hidden.spell(called.said.lookup_key or called.said.name or ""),
        status=call.status,
        word=_WORDS.get(call.status, call.status),
        preview=_preview(called),
        duration=times.duration(call.duration_ms),
        arguments=_arguments(called),
        result=_result(last),
        error=_error(last),
        call_id=richtext.inline(called.said.tool_call_id[:200]) if called.said.tool_call_id else None,
        nth=call.nth,
        is_ours=principals.is_ours(call.called.principal) and call.called.run is not None,
        finished_seq=call.finished.seq if call.finished and call.finished.seq != call.called.seq else None,
        extra=next((extra for extra in extras if extra is not None), None),
    )
    return faces.render("tool_step", row, block)


def lone(event: Stored) -> Call:
    """Make a call of one step whose partner the record does not know."""
    said = faces.read(event).said
    has_result = said.result_summary is not None or said.output is not None or said.error is not None
    is_end = said.status in ("success", "error") or (said.status is None and has_result)
    failed = said.status == "error" or (said.status is None and said.error is not None)
    status = ("failed" if failed else "done") if is_end else "called"
    return Call("", status, 1, event.at, said.duration_ms, event, event if is_end else None)


def _preview(step: faces.Read) -> Markup:
    raw = bytes(step.said.args or b"") or (step.said.args_raw or "").encode("utf-8", "replace")
    text = raw[: PREVIEW * 4].decode("utf-8", "ignore")
    return richtext.inline(" ".join(text.split())[:PREVIEW])


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
