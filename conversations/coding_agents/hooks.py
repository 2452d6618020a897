"""Hooks of coding agents: what Claude Code and Codex post while a session goes on, read into events.

Both post JSON of one shape (code.claude.com/docs/en/hooks, developers.openai.com/codex/hooks): `session_id`,
`hook_event_name`, and by the event `prompt`, `tool_name`, `tool_input`, `tool_use_id`, `tool_response`, `agent_id`.
Neither is stable, so fields are read one by one; what is missing is left out.

| hook | here |
|---|---|
| SessionStart, SessionEnd, PreCompact, Notification and others | control of the agent |
| UserPromptSubmit | message from `user` |
| PreToolUse; PostToolUse, PostToolUseFailure, PermissionDenied | the start of a tool call; its start and its end |
| PermissionRequest | nothing: it is asked about (`asked_by`) |
| Stop, SubagentStop with `last_assistant_message` | output |
| SubagentStart, SubagentStop | control in the session, and a conversation of the sub-agent's own |
"""

from typing import Any, NamedTuple

from conversations.coding_agents import session_events
from conversations.coding_agents.session_events import SessionEvent, SessionSpeaker
from conversations.core.errors import Invalid
from conversations.core.json_values import text_of

TOOLS: dict[str, str] = {"claude-code": "Claude Code", "codex": "Codex"}
EDITABLE = ("claude-code",)  # takes arguments that a person changed; Codex refuses a decision that brings any
ENDS_CALL = ("PostToolUse", "PostToolUseFailure", "PermissionDenied")
ENDS_TURN = ("UserPromptSubmit", "Stop", "StopFailure", "SessionStart", "SessionEnd", "SubagentStop")
MAX_ID = 150

Body = dict[str, Any]  # JSON


class Hook(NamedTuple):
    """One hook: which program posted it, of which session, what happened, and who speaks in which conversation.

    `delivery` identifies the post if the hook has no id: the same for the same hook sent again.
    """

    tool: str
    name: str
    session: str
    sub_agent: str  # its id; empty in the session itself
    speaker: SessionSpeaker
    body: Body
    delivery: str = ""


class AskedCall(NamedTuple):
    """The tool call that a person is asked about; its id is not always known."""

    name: str
    call_id: str | None
    arguments: object


def read(tool: str, body: object, agent: str) -> Hook:
    """Parse one hook of an agent's session. Raises Invalid that says what was expected."""
    if not isinstance(body, dict):
        raise Invalid(f"must be a hook's JSON object; got {type(body).__name__}")
    session, name = _id(body, "session_id"), _id(body, "hook_event_name")
    if session is None or name is None:
        missing = "session_id" if session is None else "hook_event_name"
        raise Invalid(f"must be a string of 1 to {MAX_ID} characters", field=missing)
    sub_agent = _id(body, "agent_id") or ""
    conversation = session_events.conversation_of(tool, session, sub_agent)
    return Hook(tool, name, session, sub_agent, SessionSpeaker(agent, conversation), body)


def events_of(hook: Hook) -> list[SessionEvent]:
    """Return what happened as events, with the same ids for the same hook if it has an id."""
    match hook.name:
        case "UserPromptSubmit":
            return [session_events.prompt(hook.speaker, _text(hook, "prompt"), _turn_id(hook, "prompt", "prompt"))]
        case "PreToolUse":
            return [_started(hook)]
        case "PostToolUse" | "PostToolUseFailure" | "PermissionDenied":
            return [_started(hook), _ended(hook)]
        case "PermissionRequest":
            return []
        case "Stop":
            return _answer(hook) or [_notice(hook, "Finished its turn")]
        case "SubagentStart":
            return _sub_agent_started(hook)
        case "SubagentStop":
            return [*_sub_agent_started(hook), *_answer(hook), _in_session(hook, "finished")]
    return [_notice(hook, _words(hook))]


def asked_by(hook: Hook) -> AskedCall | None:
    """Return the call that a hook asks about; None if it asks nothing."""
    if hook.name != "PermissionRequest":
        return None
    return AskedCall(_tool_name(hook), _id(hook.body, "tool_use_id"), hook.body.get("tool_input"))


def why(hook: Hook) -> str:
    """Return on whose behalf a hook asks, and where it runs."""
    about = _text(hook, "tool_input") if isinstance(hook.body.get("tool_input"), str) else ""
    arguments = hook.body.get("tool_input")
    about = text_of(arguments.get("description")) or "" if isinstance(arguments, dict) else about
    place = _text(hook, "cwd")
    asks = f"{TOOLS[hook.tool]} asks for permission" + (f" in {place[:300]}" if place else "")
    return f"{asks}: {about[:500]}" if about else asks


def started_call(hook: Hook) -> SessionEvent:
    """Return the start of the call that a hook asks about, for a record without an earlier one."""
    return _started(hook)


def ended_call(hook: Hook) -> str | None:
    """Return the id of the call that a hook ends; None if it ends none."""
    return _id(hook.body, "tool_use_id") if hook.name in ENDS_CALL else None


def decision(approved: bool, *, message: str = "", arguments: object = None) -> Body:
    """Return the answer to a hook that asked; `arguments` if a person edited them."""
    decided: Body = {"behavior": "allow" if approved else "deny"}
    decided |= {"message": message} if message and not approved else {}
    decided |= {"updatedInput": arguments} if approved and arguments is not None else {}
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decided}}


def _started(hook: Hook) -> SessionEvent:
    call = _id(hook.body, "tool_use_id")
    id_ = session_events.derived_id(hook.tool, hook.session, "call", call) if call else _own_id(hook, "call")
    arguments = hook.body.get("tool_input")
    return session_events.call_started(hook.speaker, _tool_name(hook), call, arguments, id_, origin=hook.tool)


def _ended(hook: Hook) -> SessionEvent:
    call = _id(hook.body, "tool_use_id")
    id_ = session_events.derived_id(hook.tool, hook.session, "result", call) if call else _own_id(hook, "result")
    output, error = hook.body.get("tool_response"), None
    if hook.name != "PostToolUse":
        error = _text(hook, "error") or _text(hook, "reason") or "failed"
    return session_events.call_ended(
        hook.speaker, _tool_name(hook), call, output, id_, error=error, duration_ms=hook.body.get("duration_ms")
    )


def _answer(hook: Hook) -> list[SessionEvent]:
    text = _text(hook, "last_assistant_message")
    id_ = _turn_id(hook, "answer", "last_assistant_message")
    return [session_events.answer(hook.speaker, text, id_)] if text.strip() else []


def _sub_agent_started(hook: Hook) -> list[SessionEvent]:
    """Record a sub-agent in its session, and its session in its own conversation."""
    kind = _text(hook, "agent_type") or "sub-agent"
    within = _session_speaker(hook)
    id_ = session_events.derived_id(hook.tool, hook.session, "sub-agent", hook.sub_agent)
    if not hook.sub_agent:
        return [_notice(hook, f"Sub-agent {kind} started")]
    words = f"{kind}, a sub-agent of {within.conversation}"
    first = session_events.opening(hook.speaker, words, id_, parent_conversation=within.conversation)
    return [_in_session(hook, "started"), first]


def _in_session(hook: Hook, what: str) -> SessionEvent:
    kind = _text(hook, "agent_type") or "sub-agent"
    id_ = (
        session_events.derived_id(hook.tool, hook.session, what, hook.sub_agent)
        if hook.sub_agent
        else _own_id(hook, what)
    )
    words = f"Sub-agent {kind} {what}: conversation {hook.speaker.conversation}"
    return session_events.notice(_session_speaker(hook), words, id_, sub_agent=hook.speaker.conversation)


def _session_speaker(hook: Hook) -> SessionSpeaker:
    return hook.speaker._replace(conversation=session_events.conversation_of(hook.tool, hook.session))


def _notice(hook: Hook, words: str) -> SessionEvent:
    return session_events.notice(hook.speaker, words, _own_id(hook, "notice"), hook=hook.name)


def _words(hook: Hook) -> str:
    """Return a hook that is not part of the conversation, on one line."""
    about = [_text(hook, name) for name in ("source", "reason", "trigger", "notification_type", "error_type")]
    more = [_text(hook, name) for name in ("model", "cwd", "message", "error_message")]
    named = f"{hook.name} ({', '.join(filter(None, about))})" if any(about) else hook.name
    return ": ".join(filter(None, [named, ", ".join(filter(None, more))]))


def _turn_id(hook: Hook, what: str, field: str) -> str:
    """Return an id for a text of a turn, which may have several: a person steers it, a Stop hook continues it."""
    turn = _id(hook.body, "turn_id") or _id(hook.body, "prompt_id")
    if not turn:
        return _own_id(hook, what)
    return session_events.derived_id(hook.tool, hook.session, hook.sub_agent, what, turn, _text(hook, field))


def _own_id(hook: Hook, what: str) -> str:
    """Return an id for the event of a hook without an id."""
    return session_events.derived_id(hook.tool, hook.session, hook.sub_agent, hook.name, what, hook.delivery)


def _tool_name(hook: Hook) -> str:
    return _text(hook, "tool_name") or "tool"


def _text(hook: Hook, name: str) -> str:
    return text_of(hook.body.get(name)) or ""


def _id(body: Body, name: str) -> str | None:
    value = text_of(body.get(name))
    return value if value and len(value) <= MAX_ID and "\0" not in value else None
