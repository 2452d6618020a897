"""Request the replay of a recorded call (§3.4): record `replay.requested` and queue a run of kind replay, executed
by a worker.

Requirements depend on the effect that the code declares and the policy tightens. `read`: one click. `idempotent`: one
click with the recorded arguments, which are sent under the first call's key. Any other: the grant, a reason and the
tool's name typed in. The worker checks policy again before the call, and approval, guardrails and is_enabled
(`ReplayRun._replay`).
"""

import json
from typing import Any, NamedTuple

from conversations.access import grants
from conversations.access.action_context import audited_action, check_reason, event_author
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import principals, secret_masking
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.ids import derived_id, new_id, text_digest
from conversations.core.principals import Principal
from conversations.events import log, recorded_arguments
from conversations.models import Approval, Conversation, Event, Run, ToolCall
from conversations.runs.claims import Body, our_call_id
from conversations.runs.policy import evaluate
from conversations.runs.replay.eligibility import ReplayEligibility, eligibility_of, idempotency_key
from conversations.tool_calls.schemas import argument_check

LAYERS = ("lookup_key", "origin", "mcp_server", "schema")


class StartedReplay(NamedTuple):
    """The started run, and the id of the new call."""

    run: str
    call: str


def request_replay(
    by: Who, call: str, *, arguments: dict[str, Any] | str | None = None, reason: str = "", tool: str = "",
    client_id: str = "",
) -> StartedReplay:  # fmt: skip
    """Request a replay of a call, with other `arguments` (an object, or its text) or those that it ran with.

    `tool` is its qualified name as typed by the person. The same `client_id` again returns the same replay. Raises
    `NotFound`, `Conflict` (not_replayable if there is nothing to call, id_reused for a `client_id` of other arguments),
    `NotAllowed` without permission or grant or by the policy, `Invalid` naming what is missing.
    """
    if len(client_id) > 100:
        raise Invalid("must be at most 100 characters", field="client_id")
    with audited_action(by, "replay", f"call:{call}"[:300], right="replay") as principal:
        old = ToolCall.objects.filter(id=call[:64], conversation__is_staged=False).first()
        if old is None:
            raise NotFound(f"there is no tool call {call[:80]!r}")
        conversation = Conversation.objects.locked(old.conversation_id)
        event_id = _request_event_id(principal, call, client_id) if client_id else new_id()
        if client_id and (existing := _existing_replay(conversation, event_id, arguments)) is not None:
            return existing
        body = _body_as_ran(old)
        eligibility = eligibility_of(old, body, rows=evaluate.stored())
        if eligibility.why_not:
            raise _refusal(eligibility)
        sent, text, is_edited = read_arguments(body, arguments, eligibility)
        if not eligibility.is_one_click(is_edited=is_edited):
            _require(by, eligibility, reason, tool)
        run, call_id = new_id(), f"replay-{new_id()}"
        new = StartedReplay(run, our_call_id(run, call_id, 1))
        fields = _call_fields(old, body, eligibility)
        fields |= {"run_id": new.run, "tool_call": new.call, "tool_call_id": call_id}
        fields |= {"args": sent, "args_raw": text, "digest": text_digest(text), "edited": is_edited}
        fields |= {"reason": reason.strip()} if reason.strip() else {}
        _append_request(principal, conversation.key, event_id, fields)
        chain.add_entry(
            principal, "replay", f"call:{old.id}", reason=reason.strip(), after=chain.digest({"args_raw": text}),
            correlation={"conversation": conversation.key, "run": new.run, "call": new.call, "tool": eligibility.tool,
                         "effect": eligibility.effect, "edited": is_edited},
        )  # fmt: skip
    return new


def read_arguments(
    body: dict[str, Any], arguments: dict[str, Any] | str | None, eligibility: ReplayEligibility
) -> tuple[dict[str, Any], str, bool]:
    """Return the arguments as an object and as the text to send, and whether they differ from the recorded ones.

    Raises `Invalid` if they do not match the current schema. Names that a function tool would drop are only allowed if
    it dropped them in the recorded call, too.
    """
    is_same = arguments is None or not _is_edited(body, _object_of(arguments))
    is_function = eligibility.text("origin") == argument_check.FUNCTION
    sent, text = argument_check.read(
        recorded_arguments.arguments_of(body) or "{}" if arguments is None else arguments,
        eligibility.schema,
        drops_unknown=is_function and not (is_same and body.get("schema") == eligibility.schema),
    )
    if secret_masking.mask_json_text(text) != text:
        raise Invalid("must not contain a key or password, because arguments are kept in the record", field="arguments")
    return sent, text, not is_same


def _refusal(eligibility: ReplayEligibility) -> Conflict | NotAllowed:
    if eligibility.rule == "deny":
        return NotAllowed(eligibility.why_not, code="policy")
    return Conflict(eligibility.why_not, code="not_replayable")


def _require(by: Who, eligibility: ReplayEligibility, reason: str, typed: str) -> None:
    grants.require(by, grants.REPLAY, eligibility.tool)
    if not reason.strip():
        raise Invalid(f"a reason is required: {eligibility.tool} is {eligibility.effect}", field="reason")
    check_reason(reason)
    if typed.strip() != eligibility.tool:
        raise Invalid(f"must be the tool's name, {eligibility.tool}", field="tool")


def _call_fields(old: ToolCall, body: dict[str, Any], eligibility: ReplayEligibility) -> Body:
    """Return the fields of the new call. The tool's are those of the old call, because it was found to be the same; the
    key is used only for unedited arguments (`ReplayParameters.idempotency_key` of the worker)."""
    layers: Body = {name: value for name in LAYERS if (value := eligibility.facts.get(name))}
    name = {"name": old.name, "namespace": body.get("namespace"), "qualified_name": eligibility.tool}
    origin: Body = {"replay_of": old.id, "key": idempotency_key(old), "effect": eligibility.effect}
    return {"agent": old.agent, "team": eligibility.team, **name, **layers, **origin}


def _request_event_id(principal: Principal, call: str, client_id: str) -> str:
    """Return the id of a request's event: the same for the same requester, call and client id."""
    return derived_id(f"replay\0{principal}\0{call}\0{client_id}")


def _existing_replay(
    conversation: Conversation, event_id: str, arguments: dict[str, Any] | str | None
) -> StartedReplay | None:
    """Return the replay that was started under this id. Raises `Conflict` if another principal's event has it, or if
    it had other arguments."""
    event = Event.objects.filter(conversation=conversation, event_id=event_id).first()
    if event is None:
        return None
    if event.kind != "replay.requested" or not principals.is_ours(event.principal):
        raise Conflict("the event id of this client_id is already used", code="id_reused")
    body = json.loads(event.body)
    if body.get("edited") if arguments is None else _is_edited(body, _object_of(arguments)):
        raise Conflict("this client_id was used for a replay with other arguments", code="id_reused")
    return StartedReplay(body["run_id"], body["tool_call"])


def _object_of(arguments: dict[str, Any] | str) -> object:
    """Return arguments as an object; a text that is not JSON as it is."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


def _append_request(principal: Principal, conversation_key: str, event_id: str, fields: Body) -> None:
    """Append `replay.requested` and the `run.queued` of its run."""
    writer, by_whom = event_author(principal)
    requested: Body = {"event": "replay.requested", "id": event_id, **fields, **by_whom}
    (stored,) = log.append([log.from_internal(conversation_key, requested, writer)])
    queued: Body = {"event": "run.queued", "id": new_id(), "run_kind": "replay", "input_seq": stored.seq}
    queued |= {"run_id": fields["run_id"], "agent": fields["agent"], "replay_of": fields["replay_of"], **by_whom}
    log.append([log.from_internal(conversation_key, queued, writer)])
    Run.objects.filter(id=fields["run_id"]).update(team=fields["team"])  # no other team's worker may make the call


def _body_as_ran(call: ToolCall) -> dict[str, Any]:
    """Return the body of the event that called a call, with the arguments that it ran with: a person's, if edited."""
    changed = recorded_arguments.arguments_changed(Approval.objects.filter(tool_call=call.id))
    text = next((ran for _, ran in changed.values()), None)
    return recorded_arguments.as_ran(recorded_arguments.body_of(call.conversation_id, call.called_seq), text)


def _is_edited(body: dict[str, Any], sent: object) -> bool:
    """Compare as JSON, because 1, 1.0 and true are equal in Python."""
    text = recorded_arguments.arguments_of(body)
    try:
        recorded = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return True
    return json.dumps(recorded, sort_keys=True) != json.dumps(sent, sort_keys=True)
