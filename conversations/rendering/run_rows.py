"""Draw runs, model turns and handlers as thin lines, failures in full with a way to run again. Called by
`event_renderer`."""

from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters, principals
from conversations.models.approval import DECISION_WORDS
from conversations.models.run import EXTERNAL
from conversations.rendering import event_rows, lane_words, message_body, offered_tools, richtext, timestamps
from conversations.rendering.event_rows import ParsedEvent, Repeat, drawn_field, view

_FIELDS = message_body.ENVELOPE | frozenset(
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
        "into",
        "step",
        "at_next_step",
    }
)
_WAITS = {"approval": "paused for approval", "pause": "paused"}
FAILURE_REASONS = {"hop_limit": "too many hops", "error": ""}


class RunLine(NamedTuple):
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
    again_of: str = ""  # the run that this one repeats, so that it may not be asked for any more
    rerun: str = ""  # the run from whose beginning a fork may go on
    place: str = ""  # its conversation


@view
def run_queued(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw which message a run is to answer."""
    body = read.body
    seq = body.get("input_seq")
    _, is_again, older = event_rows.line(body.get("reason")).partition("again: ")
    again_of = hidden_characters.spelled_out(older) if read.event.run else ""
    text = "queued to retry" if is_again else "queued to answer"
    link = seq if type(seq) is int and seq > 0 else 0
    text = "queued a replay, requested at" if read.body.get("run_kind") == "replay" else text
    if event_rows.line(body.get("run_kind")) == EXTERNAL:
        return _line(read, RunLine("s-queued", "waits for a decision about", link=link))
    return _line(
        read,
        RunLine("s-queued", text if link else "queued a run", link=link, again_of=again_of),
        "steps" if is_again else "",
    )


@view
def run_started(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a start; of an agent's first attempt with a link to fork from there."""
    attempt = read.body.get("attempt")
    details = f"attempt {attempt}" if type(attempt) is int and attempt > 1 else ""
    event = read.event
    is_own = event.run is not None and not event_rows.is_copy(read) and attempt == 1
    is_own = is_own and read.body.get("run_kind", "agent") == "agent"
    rerun = hidden_characters.spelled_out(event.run) if is_own and event.run else ""
    return _line(read, RunLine("play", "started", facts=(details,), rerun=rerun, place=event.conversation))


@view
def run_waiting(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw what a run waits for."""
    reason = event_rows.line(read.body.get("reason"))
    if reason == "server":
        return _away(read)
    return _line(read, RunLine("s-paused", _WAITS.get(reason, "waiting"), facts=(_waiter(read),)))


def _waiter(read: ParsedEvent) -> str:
    """Return what is true of whoever waits: a run of ours leaves its worker, an external agent waits by itself."""
    if read.event.run is None or read.event.principal == str(principals.SYSTEM):  # which writes for external agents
        return "its own program waits"
    return "no worker occupied"


def _away(read: ParsedEvent) -> Markup:
    """Draw that a run needs an MCP server that is not connected: shown at every level of detail, since nobody was
    asked."""
    notes = ("Nothing was called. The run resumes automatically when the server is back, or you can stop it.",)
    line = RunLine(
        "s-paused",
        "waiting for MCP server",
        drawn_field(read, "server"),
        detail=drawn_field(read, "detail"),
        facts=notes,
    )
    return _line(read, line, "chat", "waiting")


@view
def run_resumed(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw that a run continues."""
    return _line(read, RunLine("play", "resumed", facts=(after_decision(read),)))


def after_decision(read: ParsedEvent) -> str:
    """Return the decision after which a run was resumed; empty for another event or cause."""
    return DECISION_WORDS.get(event_rows.line(read.body.get("reason")), "") if read.event.kind == "run.resumed" else ""


@view
def run_done(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw that a run finished, with its usage."""
    if lane_words.is_answered(read):
        return _line(read, RunLine("s-done", lane_words.ANSWERED))
    details = (_duration(read), message_body.usage(read.body.get("usage")))
    return _line(read, RunLine("s-done", "finished", facts=details))


@view
def run_delivered(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw that an active run took in the message of a run that does not start."""
    seq, step = read.body.get("input_seq"), read.body.get("step")
    details = (f"delivered at step {step}" if type(step) is int else "delivered",)
    link = seq if type(seq) is int and seq > 0 else 0
    return _line(read, RunLine("s-done", "took in" if link else "took in a message", link=link, facts=details))


@view
def run_failed(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw the error of a failed run in full."""
    reason = event_rows.line(read.body.get("reason"))
    details = richtext.inline(FAILURE_REASONS.get(reason, reason))
    fault = read.body.get("error")
    drawn = richtext.plain(fault[:8000]) if isinstance(fault, str) and fault else None
    line = RunLine("s-failed", "failed", detail=details or None, facts=(_place(read.body.get("place")),), fault=drawn)
    return _bad_end(read, line)


@view
def run_cancelled(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw who stopped a run, or why an external agent no longer waits for a decision."""
    reason = event_rows.line(read.body.get("reason"))
    if lane_words.is_withdrawal(read):
        return _line(read, RunLine("s-rejected", "no longer waits", detail=drawn_field(read, "reason")), "steps")
    details = (
        None if reason.startswith("by user:") else drawn_field(read, "reason")
    )  # who it was stands behind it anyway
    return _bad_end(read, RunLine("s-rejected", "was stopped", detail=details))


@view
def run_interrupted(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw that a run lost its worker."""
    return _bad_end(read, RunLine("s-unknown", "was interrupted", detail=drawn_field(read, "reason")))


@view
def run_incompatible(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw why a run could not continue."""
    text = "could not resume: the saved state does not match the current team"
    choices = "Run again to start over with the current team, or take over and answer yourself."
    return _bad_end(read, RunLine("s-failed", text, detail=drawn_field(read, "reason"), facts=(choices,)))


@view
def model_turn(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw what a model was asked."""
    is_demo, tools = read.body.get("demo") is True, offered_tools.of_turn(read)
    name = event_rows.line(read.body.get("model"))
    line = RunLine(
        "agent",
        "asked the model",
        None if is_demo and "demo" in name.lower() else richtext.inline(name or "unknown"),
        facts=tuple(filter(None, (_duration(read), message_body.usage(read.body.get("usage"))))),
        tag="demo model" if is_demo else "",
    )
    if tools is None:
        return _line(read, line)
    return event_rows.render("model_turn", event_rows.row(read), line, tools, message_body.more(read.body, _FIELDS))


@view
def model_call(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a model call as telemetry reports it; a failed one in full, at every level of detail."""
    name = event_rows.line(read.body.get("model"))
    error = read.body.get("error")
    line = RunLine(
        "s-failed" if error else "agent",
        "asked the model",
        richtext.inline(name) if name else None,
        facts=tuple(filter(None, (_duration(read), message_body.usage(read.body.get("usage"))))),
        fault=richtext.plain(error[:8000]) if isinstance(error, str) and error else None,
    )
    fields = event_rows.row(read, "chat" if error else "", state="failed" if error else "")
    return event_rows.render("run", fields, line, message_body.more(read.body, _FIELDS))


@view
def handler_changed(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw which agent handles the conversation from now on."""
    name = event_rows.line(read.body.get("handler"))
    fields = event_rows.row(read, sender=event_rows.agent(name) or "system")
    return event_rows.render(
        "run", fields, RunLine("handoff", "now handles this conversation"), message_body.more(read.body, _FIELDS)
    )


@view
def stage(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw the stage of a team's context; an event without one is drawn as an unknown type."""
    stage = event_rows.line(read.body.get("stage"))
    if not stage or read.event.run is None:
        return event_rows.unknown(read, group, repeat)
    return _line(read, RunLine("timeline", "reached stage", richtext.inline(stage.replace("_", " ")[:200])))


@view
def call_step(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a step that no call's block draws: an escalation, a claim from outside, or a step of a call elsewhere."""
    text = event_rows.row_of(read.event.kind).words
    if read.event.kind == "approval.decided":
        decision = event_rows.line(read.body.get("decision"))
        text += f" {DECISION_WORDS.get(decision) or hidden_characters.spelled_out(decision)[:40]}"
    tag = "" if read.event.run else event_rows.CLAIM
    name = richtext.inline(read.payload.name) if read.payload.name else drawn_field(read, "to")
    detail = drawn_field(read, "why") or drawn_field(read, "message") or drawn_field(read, "reason")
    return _line(read, RunLine("gate", text, name, detail=detail, tag=tag))


def _place(location: object) -> str:
    """Return where in the run it happened."""
    if not isinstance(location, dict):
        return ""
    turn = location.get("turn")
    agent, path, why = (
        hidden_characters.spelled_out(event_rows.line(location.get(word)))[:200] for word in ("agent", "path", "why")
    )
    text = f"in turn {turn}" if type(turn) is int else ""
    text += f" of {agent}" if text and agent else ""
    text += f", at {path}" if text and path else ""
    return f"{text}: {why}" if text and why else text


def _bad_end(read: ParsedEvent, line: RunLine) -> Markup:
    run, calls = read.event.run, read.body.get("calls")
    left = len(calls) if isinstance(calls, list) else 0
    note = f"{left} tool call{'s' if left > 1 else ''} may or may not have had an effect" if left else ""
    is_agents = read.body.get("run_kind", "agent") == "agent"  # a replay is requested again, on its call's page
    again = hidden_characters.spelled_out(run) if run and is_agents and not event_rows.is_copy(read) else ""
    line = line._replace(again=again, facts=(*line.facts, note))
    return _line(read, line, state=event_rows.state_of(read.event.kind))


def _line(read: ParsedEvent, line: RunLine, level: str = "", state: str = "") -> Markup:
    kind, _, person = read.event.principal.partition(":")
    is_asked = kind == "user"  # a person had it happen; the words are still about the agent
    author = f"by {hidden_characters.spelled_out(person)}" if is_asked else ""
    line = line._replace(facts=tuple(filter(None, (*line.facts, author))))
    is_claim = read.event.run is None and not line.tag
    fields = event_rows.row(
        read,
        level,
        state=state if not is_claim else "",
        sender=None if read.payload.speaker else "system",
        principal="system" if is_asked else None,
    )
    return event_rows.render(
        "run", fields, line._replace(tag=event_rows.CLAIM) if is_claim else line, message_body.more(read.body, _FIELDS)
    )


def _duration(read: ParsedEvent) -> str:
    return timestamps.duration(read.payload.duration_ms)
