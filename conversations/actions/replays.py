"""A recorded call made again by a person (design 3.4, flow f): a run of kind replay, done by the worker.

What it takes, by the effect that the code declares and the operators' policy tightens: `read` one click; `idempotent`
one click with the recorded arguments, which go out under the first call's key; everything else the grant, a reason and
the tool's name typed. The worker's gate checks policy, guardrails, is_enabled and approval again before the call.
"""

import hashlib
import json
from typing import Any, NamedTuple

from conversations import audit, grants, log, masking, policy, principals, replayable
from conversations.actions.acting import acting, writing_as
from conversations.actions.calls import call_of
from conversations.actions.runs import Body
from conversations.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.ids import new_id
from conversations.models import Conversation, Event, ToolCall
from conversations.principals import Principal
from conversations.replayable import Today
from conversations.rights import Who
from conversations.tools import arguments

MOST_REASON = 2_000  # characters
LAYERS = ("lookup_key", "origin", "mcp_server", "schema")


class Asked(NamedTuple):
    """What was begun: the run, and the id of the new call."""

    run: str
    call: str


def replay(
    by: Who, call: str, *, arguments: dict[str, Any] | str | None = None, reason: str = "", tool: str = "",
    client_id: str = "",
) -> Asked:  # fmt: skip
    """Have a call made again, with other `arguments` (an object, or its text) or those that it was sent with.

    `tool` is its qualified name as the person typed it. The same `client_id` again answers the same replay. Raises
    `NotFound`, `Conflict` (code not_replayable) when there is nothing to call, `NotAllowed` without the right,
    `Invalid` naming what is missing.
    """
    if len(client_id) > 100:
        raise Invalid("expected at most 100 characters", field="client_id")
    with acting(by, "replay", f"call:{call}"[:300], right="replay") as principal:
        old = ToolCall.objects.filter(id=call[:64], conversation__is_staged=False).first()
        if old is None:
            raise NotFound(f"no tool call {call[:80]!r}")
        conversation = Conversation.objects.locked(old.conversation_id)
        mark = _mark(principal, call, client_id) if client_id else new_id()
        if client_id and (made := _made(conversation, mark)) is not None:
            return made
        told = replayable.body_of(old.conversation_id, old.called_seq)
        today = replayable.of_call(old, told, rows=policy.stored())
        if today.why_not:
            raise _refusal(today)
        sent, text, is_edited = checked(told, arguments, today.schema)
        if not today.is_free(is_edited=is_edited):
            _require(by, today, reason, tool)
        run, call_id = new_id(), f"replay-{new_id()}"
        new = Asked(run, call_of(run, call_id, 1))
        facts = _facts(old, told, today) | {"run_id": new.run, "tool_call": new.call, "tool_call_id": call_id}
        facts |= {"args": sent, "args_raw": text, "digest": _digest(text), "edited": is_edited}
        _tell(principal, conversation.key, mark, facts | ({"reason": reason.strip()} if reason.strip() else {}))
        audit.enter(
            principal, "replay", f"call:{old.id}", reason=reason.strip(), after=audit.digest({"args_raw": text}),
            correlation={
                "conversation": conversation.key, "run": new.run, "call": new.call, "tool": today.tool,
                "effect": today.effect, "edited": is_edited,
            },
        )  # fmt: skip
    return new


def checked(told: dict[str, Any], given: dict[str, Any] | str | None, schema: str) -> tuple[dict[str, Any], str, bool]:
    """Answer arguments as an object, as the text that would go, and whether they are others than the recorded ones.

    Raises `Invalid` when they do not fit today's schema: the SDK drops what it does not know, and says nothing.
    """
    sent, text = arguments.read(replayable.arguments_of(told) or "{}" if given is None else given, schema)
    if masking.mask(text) != text:
        raise Invalid("what looks like a key or a password would be kept in the record", field="arguments")
    return sent, text, _is_edited(told, sent)


def _refusal(today: Today) -> Conflict | NotAllowed:
    if today.rule == "deny":
        return NotAllowed(today.why_not, code="policy")
    return Conflict(today.why_not, code="not_replayable")


def _require(by: Who, today: Today, reason: str, typed: str) -> None:
    grants.require(by, grants.REPLAY, today.tool)
    if not reason.strip():
        raise Invalid(f"expected a reason: a call of {today.tool} is {today.effect}", field="reason")
    if len(reason) > MOST_REASON:
        raise Invalid(f"expected {MOST_REASON:,} characters at most", field="reason")
    if typed.strip() != today.tool:
        raise Invalid(f"expected the tool's name, {today.tool}, typed", field="tool")


def _facts(old: ToolCall, told: dict[str, Any], today: Today) -> Body:
    """Answer what is told of the new call. Of the old one its own tool: that it is still the same was found out."""
    layers: Body = {name: value for name in LAYERS if (value := today.facts.get(name))}
    name = {"name": old.name, "namespace": told.get("namespace"), "qualified_name": today.tool}
    line: Body = {"replay_of": old.id, "key": replayable.first_of(old), "effect": today.effect}
    return {"agent": old.agent, "team": today.team, **name, **layers, **line}


def _mark(principal: Principal, call: str, client_id: str) -> str:
    """Answer the id of a request's event: the same for the same asker, call and client id."""
    mark = hashlib.sha256(f"replay\0{principal}\0{call}\0{client_id}".encode()).hexdigest()
    return f"{mark[:8]}-{mark[8:12]}-8{mark[13:16]}-8{mark[17:20]}-{mark[20:32]}"


def _made(conversation: Conversation, mark: str) -> Asked | None:
    """Find the replay that was begun under this id. Raises `Conflict` when a stranger's event has it."""
    found = Event.objects.filter(conversation=conversation, event_id=mark).first()
    if found is None:
        return None
    if found.kind != "replay.requested" or not principals.is_ours(found.principal):
        raise Conflict("something else has this client_id's event id", code="id_reused")
    body = json.loads(found.body)
    return Asked(body["run_id"], body["tool_call"])


def _tell(principal: Principal, key: str, mark: str, facts: Body) -> None:
    """Append the request and, on it, its run."""
    writer, by_whom = writing_as(principal)
    asked: Body = {"event": "replay.requested", "id": mark, **facts, **by_whom}
    (stored,) = log.append([log.of_ours(key, asked, writer)])
    queued: Body = {"event": "run.queued", "id": new_id(), "run_kind": "replay", "input_seq": stored.seq}
    queued |= {"run_id": facts["run_id"], "agent": facts["agent"], "replay_of": facts["replay_of"], **by_whom}
    log.append([log.of_ours(key, queued, writer)])


def _is_edited(told: dict[str, Any], sent: dict[str, Any]) -> bool:
    """Compare as JSON: for Python 1, 1.0 and true are equal."""
    text = replayable.arguments_of(told)
    try:
        recorded = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return True
    return json.dumps(recorded, sort_keys=True) != json.dumps(sent, sort_keys=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
