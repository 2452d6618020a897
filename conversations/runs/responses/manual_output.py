"""Supply a person's output for a call that waits for its client (Open Responses), once. Called by pages and the API.

The output ends the call. With the last open call of its response the chain continues here, as if the client had
returned these outputs: a new response in the record, whose run starts. A client that returns later finds the response
continued, and continues beside it in a fork, as always; a client that returned earlier takes precedence.
"""

import json
from typing import Any

from conversations.access.action_context import audited_action, check_reason, event_author
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.database_clock import database_now
from conversations.core.errors import Conflict, Invalid, NotFound, TooLate
from conversations.core.ids import new_id
from conversations.core.json_values import as_text
from conversations.core.micros import to_datetime
from conversations.core.principals import SYSTEM, Principal
from conversations.events import log
from conversations.events.recorded_arguments import call_id_of
from conversations.events.redacted_events import has_redacted
from conversations.events.response_ids import CLIENT_ORIGIN, CONTINUABLE, Json, new_response_id
from conversations.models import Conversation, Event, Response, Run, ToolCall
from conversations.runs.claims import Body
from conversations.runs.responses.create import is_continued, keep_host

MAX_OUTPUT = 256 * 1024  # characters
_KEPT = ("model", "instructions", "tools", "hosted", "allowed_tools", "params")  # of the request that goes on


def answer_call(by: Who, call: str, output: str, *, reason: str = "") -> str | None:
    """End an open call of a client's tool with `output`; return the id of the next response, None while other calls of
    the same response are open.

    Raises `TooLate` if it already has an output (code already_answered), `Conflict` if its client continued without it
    (continued), or its response cannot be continued (not_continuable); `Invalid`, `NotFound`, `NotAllowed`.
    """
    if len(output) > MAX_OUTPUT:
        raise Invalid(f"must be at most {MAX_OUTPUT:,} characters", field="output")
    check_reason(reason)
    with audited_action(by, "answer_call", f"call:{call}", right="respond") as principal:
        row = ToolCall.objects.filter(id=call).first()
        if row is None:
            raise NotFound(f"there is no call {call[:80]!r}")
        conversation = Conversation.objects.locked(row.conversation_id)
        row.refresh_from_db()
        response = _open(row)
        _end(principal, conversation.key, row, output, reason)
        correlation: dict[str, str | None] = {"conversation": conversation.key, "call": call, "run": row.run}
        is_last = not _calls(response).filter(status="called").exists()
        correlation["response"] = _go_on(principal, conversation.key, response) if is_last else None
        chain.add_entry(
            principal, "answer_call", f"call:{call}", reason=reason, after=chain.digest(output), correlation=correlation
        )
    return correlation["response"]


def _open(call: ToolCall) -> Response:
    """Return the response in which a call waits for its client. Raises Conflict if it does not wait."""
    if call.origin != CLIENT_ORIGIN or call.run is None:
        raise Conflict("this call does not run on a client", code="not_waiting")
    if call.status != "called":
        raise _answered(call)
    response = Response.objects.filter(run=call.run).first()
    if response is None or response.status not in CONTINUABLE or not response.store:
        raise Conflict("its response cannot be continued", code="not_continuable")
    if has_redacted(Event.objects.filter(conversation=call.conversation_id, seq=response.in_seq)):
        raise Conflict("the request that it belongs to was redacted", code="not_continuable")
    if is_continued(response):
        raise Conflict("its client has already continued without this call", code="continued")
    return response


def _answered(call: ToolCall) -> TooLate:
    event = Event.objects.filter(conversation=call.conversation_id, seq=call.finished_seq or 0).first()
    if event is None:
        return TooLate("this call is no longer waiting", code="already_answered")
    by, at = (
        str(json.loads(event.body).get("answered_by") or event.principal),
        to_datetime(event.at),
    )
    message = f"{by} already answered this call, at {at:%Y-%m-%d %H:%M:%S} UTC"
    return TooLate(message, code="already_answered", did="answered", by=by, at=at.isoformat())


def _end(principal: Principal, key: str, call: ToolCall, output: str, reason: str) -> None:
    writer, by_whom = event_author(principal)
    body: Body = {"event": "tool_step", "id": new_id(), "run_id": call.run, "agent": call.agent, "name": call.name}
    body |= {"tool_call": call.id, "tool_call_id": call.call_id, "status": "success", "output": output}
    body |= {"output_bytes": len(output.encode("utf-8", "surrogatepass")), "answered_by": by_whom["by"]}
    body |= {"duration_ms": round((database_now() - call.started_at) / 1000, 3)}
    log.append([log.from_internal(key, body | ({"reason": reason} if reason else {}), writer)])


def _go_on(principal: Principal, key: str, earlier: Response) -> str:
    """Create the next response of the chain, with all outputs supplied for the calls of the earlier one."""
    request: Json = json.loads(_body(earlier, earlier.in_seq))
    response, run, agent = new_response_id(), new_id(), str(request.get("agent"))
    received: Body = {"event": "response.received", "id": new_id(), "response_id": response, "agent": agent}
    received |= {"previous_response_id": earlier.id, "sender": str(principal), "recipient": f"agent:{agent}"}
    received |= {name: request[name] for name in _KEPT if name in request}
    received |= {"input": _outputs(earlier), "tool_choice": "auto", "store": True, "stream": False}
    (stored,) = log.append([log.from_internal(key, received, principal)])
    queued: Body = {"event": "run.queued", "id": new_id(), "run_id": run, "agent": agent, "run_kind": "agent"}
    queued |= {"input_seq": stored.seq, "response_id": response, "previous_response_id": earlier.id, "store": True}
    log.append([log.from_internal(key, queued | {"socket": ""}, SYSTEM)])
    keep_host(run, Run.objects.filter(id=earlier.run))
    return response


def _outputs(earlier: Response) -> list[Json]:
    """Return the outputs in the order of their calls."""
    ends = {call.finished_seq: call_id_of(call) for call in _calls(earlier).order_by("called_seq")}
    bodies = dict(Event.objects.filter(conversation=earlier.conversation_id, seq__in=ends).values_list("seq", "body"))
    return [
        {"type": "function_call_output", "call_id": call_id, "output": as_text(json.loads(bodies[seq]).get("output"))}
        for seq, call_id in ends.items()
        if seq in bodies
    ]


def _calls(response: Response) -> Any:  # a queryset; its generic form names Django's own
    return ToolCall.objects.filter(run=response.run, origin=CLIENT_ORIGIN)


def _body(response: Response, seq: int) -> str:
    return Event.objects.values_list("body", flat=True).get(conversation=response.conversation_id, seq=seq)
