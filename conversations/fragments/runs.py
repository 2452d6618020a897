"""Runs, model turns and handlers → thin lines; a bad end in full, with the way to run it again. Called by drawing."""

from typing import NamedTuple

from markupsafe import Markup

from conversations.fragments import content, faces, hidden, offered, richtext, times
from conversations.fragments.faces import Face, Read, Repeat

_FIELDS = content.ENVELOPE | frozenset(
    {
        "run_kind",
        "replay_of",
        "by",
        "input_seq",
        "parent_call",
        "attempt",
        "worker",
        "reason",
        "error",
        "calls",
        "duration_ms",
        "handler",
    }
    | {
        "model",
        "tools",
        "approval_id",
        "tool_call",
        "tool_call_id",
        "server",
        "detail",
        "args",
        "args_raw",
        "why",
        "deadline",
        "decision",
        "to",
    }
    | {
        "message",
        "stage",
        "arguments_digest",
        "namespace",
        "qualified_name",
        "lookup_key",
        "origin",
        "schema",
        "effect",
        "place",
        "called",
    }
)
_WAITS = {"approval": "waits for a person’s decision", "pause": "is paused"}
_DECISIONS = {"approve": "approved", "reject": "rejected"}
_REASONS = {"hop_limit": "too many hops", "error": ""}


class Line(NamedTuple):
    """What templates/events/run.html draws."""

    glyph: str
    words: str
    about: Markup | None = None  # a second name, after the words
    link: int = 0  # the event that is answered
    detail: Markup | None = None  # quiet, in the line
    facts: tuple[str, ...] = ()
    tag: str = ""
    fault: Markup | None = None  # in full, under the line
    again: str = ""  # the run that may be asked for again
    rerun: str = ""  # the run from whose beginning a fork may go on
    place: str = ""  # its conversation


def _queued(read: Read, group: str | None, repeat: Repeat) -> Markup:
    body = read.body
    seq = body.get("input_seq")
    is_again = faces.line(body.get("reason")).startswith("again: ")
    words = "is asked to try again on" if is_again else "is to answer"
    link = seq if type(seq) is int and seq > 0 else 0
    words = "is to make a call again, asked for at" if read.body.get("run_kind") == "replay" else words
    return _line(read, "steps" if is_again else "all", Line("s-queued", words if link else "is to run", link=link))


def _started(read: Read, group: str | None, repeat: Repeat) -> Markup:
    attempt = read.body.get("attempt")
    told = f"attempt {attempt}" if type(attempt) is int and attempt > 1 else ""
    event = read.event
    is_own = event.run is not None and not faces.is_copy(read) and attempt == 1
    is_own = is_own and read.body.get("run_kind", "agent") == "agent"
    rerun = hidden.spell(event.run) if is_own and event.run else ""
    return _line(read, "steps", Line("play", "started", facts=(told,), rerun=rerun, place=event.conversation))


def _waiting(read: Read, group: str | None, repeat: Repeat) -> Markup:
    reason = faces.line(read.body.get("reason"))
    if reason == "server":
        return _away(read)
    return _line(read, "steps", Line("s-paused", _WAITS.get(reason, "waits"), facts=("No worker is held",)))


def _away(read: Read) -> Markup:
    """Draw that a run needs an MCP server that is not connected: seen at any detail, since nobody was asked."""
    told = ("Its state is kept, nothing was called. It goes on by itself when the server is back; or stop it",)
    line = Line(
        "s-paused", "waits for the MCP server", _words(read, "server"), detail=_words(read, "detail"), facts=told
    )
    return _line(read, "chat", line, "waiting")


def _resumed(read: Read, group: str | None, repeat: Repeat) -> Markup:
    after = _DECISIONS.get(faces.line(read.body.get("reason")), "")
    return _line(read, "all", Line("play", "goes on", facts=(after,)))


def _done(read: Read, group: str | None, repeat: Repeat) -> Markup:
    facts = (_duration(read), faces.usage(read.body.get("usage")))
    return _line(read, "steps", Line("s-done", "is done", facts=facts))


def _failed(read: Read, group: str | None, repeat: Repeat) -> Markup:
    reason = faces.line(read.body.get("reason"))
    told = richtext.inline(_REASONS.get(reason, reason))
    fault = read.body.get("error")
    drawn = richtext.plain(fault[:8000]) if isinstance(fault, str) and fault else None
    line = Line("s-failed", "failed", detail=told or None, facts=(_place(read.body.get("place")),), fault=drawn)
    return _bad_end(read, "failed", line)


def _cancelled(read: Read, group: str | None, repeat: Repeat) -> Markup:
    reason = faces.line(read.body.get("reason"))
    told = None if reason.startswith("by user:") else _words(read, "reason")  # who it was stands behind it anyway
    return _bad_end(read, "rejected", Line("s-rejected", "was stopped", detail=told))


def _interrupted(read: Read, group: str | None, repeat: Repeat) -> Markup:
    return _bad_end(read, "unknown", Line("s-unknown", "was interrupted", detail=_words(read, "reason")))


def _incompatible(read: Read, group: str | None, repeat: Repeat) -> Markup:
    words = "could not go on: what it paused with does not fit the team of today"
    choices = "Run again starts over with the team of today; or take over and answer"
    return _bad_end(read, "failed", Line("s-failed", words, detail=_words(read, "reason"), facts=(choices,)))


def _turn(read: Read, group: str | None, repeat: Repeat) -> Markup:
    is_demo, tools = read.body.get("demo") is True, offered.of_turn(read)
    name = faces.line(read.body.get("model"))
    line = Line(
        "agent",
        "asked the model",
        None if is_demo and "demo" in name.lower() else richtext.inline(name or "unknown"),
        facts=tuple(filter(None, (_duration(read), faces.usage(read.body.get("usage"))))),
        tag="demo model" if is_demo else "",
    )
    if tools is None:
        return _line(read, "all", line)
    return faces.render("model_turn", faces.row(read, "all"), line, tools, content.more(read.body, _FIELDS))


def _handler(read: Read, group: str | None, repeat: Repeat) -> Markup:
    name = faces.line(read.body.get("handler"))
    face = faces.row(read, "steps", sender=faces.agent(name) or "system")
    return faces.render("run", face, Line("handoff", "answers from now on"), content.more(read.body, _FIELDS))


def _stage(read: Read, group: str | None, repeat: Repeat) -> Markup:
    """Draw where a team's context has come to; what is no such event is drawn as any unknown one."""
    stage = faces.line(read.body.get("stage"))
    if not stage or read.event.run is None:
        return faces.unknown(read, group, repeat)
    return _line(read, "steps", Line("timeline", "is at the stage", richtext.inline(stage.replace("_", " ")[:200])))


def _approval(read: Read, group: str | None, repeat: Repeat) -> Markup:
    """Draw a step of a call that the record does not know: a claim from outside, or a stray."""
    words = {
        "approval.requested": "asked for approval of",
        "approval.cancelled": "withdrew its question about a call",
        "approval.expired": "waited too long for a decision about a call",
        "approval.escalated": "still waits for a decision; told:",
        "approval.decided": f"decided: {hidden.spell(faces.line(read.body.get('decision')))[:40]}",
        "policy.refused": "was refused",
    }[read.event.kind]
    tag = "" if read.event.run else "claim"
    name = richtext.inline(read.said.name) if read.said.name else _words(read, "to")
    detail = _words(read, "why") or _words(read, "message") or _words(read, "reason")
    return _line(read, "steps", Line("gate", words, name, detail=detail, tag=tag))


def _place(place: object) -> str:
    """Say where in the run it was."""
    if not isinstance(place, dict):
        return ""
    turn = place.get("turn")
    agent, path, why = (hidden.spell(faces.line(place.get(word)))[:200] for word in ("agent", "path", "why"))
    told = f"in turn {turn}" if type(turn) is int else ""
    told += f" of {agent}" if told and agent else ""
    told += f", at {path}" if told and path else ""
    return f"{told}: {why}" if told and why else told


def _bad_end(read: Read, state: str, line: Line) -> Markup:
    run, calls = read.event.run, read.body.get("calls")
    left = len(calls) if isinstance(calls, list) else 0
    told = f"{left} tool call{'s' if left > 1 else ''} may or may not have had an effect" if left else ""
    is_replay = read.body.get("run_kind") == "replay"  # it is asked for anew, on its call's page
    again = hidden.spell(run) if run and not is_replay and not faces.is_copy(read) else ""
    return _line(read, "chat", line._replace(again=again, facts=(*line.facts, told)), state)


def _line(read: Read, level: str, line: Line, state: str = "") -> Markup:
    kind, _, person = read.event.principal.partition(":")
    is_asked = kind == "user"  # a person had it happen; the words are still about the agent
    told = f"by {hidden.spell(person)}" if is_asked else ""
    line = line._replace(facts=tuple(filter(None, (*line.facts, told))))
    is_claim = read.event.run is None and not line.tag
    face = faces.row(
        read,
        level,
        state=state if not is_claim else "",
        sender=None if read.said.speaker else "system",
        principal="system" if is_asked else None,
    )
    return faces.render("run", face, line._replace(tag="claim") if is_claim else line, content.more(read.body, _FIELDS))


def _words(read: Read, name: str) -> Markup | None:
    text = faces.line(read.body.get(name))
    return richtext.inline(text[:1000]) if text else None


def _duration(read: Read) -> str:
    return times.duration(read.said.duration_ms)


FACES: dict[str, Face] = {
    "run.queued": _queued,
    "run.started": _started,
    "run.waiting": _waiting,
    "run.resumed": _resumed,
    "run.done": _done,
    "run.failed": _failed,
    "run.cancelled": _cancelled,
    "run.interrupted": _interrupted,
    "run.incompatible": _incompatible,
    "model.turn": _turn,
    "conversation.handler": _handler,
    "approval.requested": _approval,
    "approval.decided": _approval,
    "approval.cancelled": _approval,
    "approval.expired": _approval,
    "approval.escalated": _approval,
    "policy.refused": _approval,
    ".stage": _stage,
}
