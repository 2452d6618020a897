"""A person answers a call that waits for its client (Open Responses): by hand, once. Called by pages and the API.

The answer ends the call. With the last open call of its response the chain goes on here, as if the client had returned
these outputs: a new response on the record, whose run the agent begins. A client that comes after that finds the
response continued, and goes on beside it, in a fork, as the door has it for anybody; one that came before has won.
"""

import json
from datetime import UTC, datetime
from typing import Any

from conversations import audit, log
from conversations.actions.acting import acting, writing_as
from conversations.actions.responses import is_continued
from conversations.actions.runs import Body
from conversations.errors import Conflict, Invalid, NotFound, TooLate
from conversations.ids import new_id
from conversations.models import Conversation, Event, Response, ToolCall
from conversations.nodes import database_time
from conversations.principals import SYSTEM, Principal
from conversations.responses import CONTINUABLE, EXTERNAL, Json, new_response_id
from conversations.rights import Who

MAX_OUTPUT = 256 * 1024  # characters
MAX_REASON = 2000  # characters
_KEPT = ("model", "instructions", "tools", "hosted", "allowed_tools", "params")  # of the request that goes on


def answer_call(by: Who, call: str, output: str, *, reason: str = "") -> str | None:
    """End an open call of a client's tool with `output`; answer the id of the response that goes on, None while other
    calls of the same response are open.

    Raises `TooLate` when somebody answered it (code already_answered), `Conflict` when its client went on without it
    (continued), or its response cannot be continued (not_continuable); `Invalid`, `NotFound`, `NotAllowed`.
    """
    if len(output) > MAX_OUTPUT:
        raise Invalid(f"expected {MAX_OUTPUT:,} characters at most", field="output")
    if len(reason) > MAX_REASON:
        raise Invalid(f"expected {MAX_REASON:,} characters at most", field="reason")
    with acting(by, "answer_call", f"call:{call}", right="respond") as principal:
        found = ToolCall.objects.filter(id=call).first()
        if found is None:
            raise NotFound(f"no call {call[:80]!r}")
        conversation = Conversation.objects.locked(found.conversation_id)
        found.refresh_from_db()
        response = _open(found)
        _end(principal, conversation.key, found, output, reason)
        facts: dict[str, str | None] = {"conversation": conversation.key, "call": call, "run": found.run}
        is_last = not _calls(response).filter(status="called").exists()
        facts["response"] = _go_on(principal, conversation.key, response) if is_last else None
        audit.enter(
            principal, "answer_call", f"call:{call}", reason=reason, after=audit.digest(output), correlation=facts
        )
    return facts["response"]


def _open(found: ToolCall) -> Response:
    """Answer the response that a call waits for a client in. Raises Conflict when it does not wait."""
    if found.origin != EXTERNAL or found.run is None:
        raise Conflict("this call is not a client's to answer", code="not_waiting")
    if found.status != "called":
        raise _answered(found)
    response = Response.objects.filter(run=found.run).first()
    if response is None or response.status not in CONTINUABLE or not response.store:
        raise Conflict("its response cannot be continued", code="not_continuable")
    if is_continued(response):
        raise Conflict("its client has gone on without this call", code="continued")
    return response


def _answered(found: ToolCall) -> TooLate:
    event = Event.objects.filter(conversation=found.conversation_id, seq=found.finished_seq or 0).first()
    if event is None:
        return TooLate("this call does not wait any more", code="already_answered")
    by, at = (
        str(json.loads(event.body).get("answered_by") or event.principal),
        datetime.fromtimestamp(event.at / 1e6, UTC),
    )
    words = f"{by} answered this call already, at {at:%Y-%m-%d %H:%M:%S} UTC"
    return TooLate(words, code="already_answered", did="answered", by=by, at=at.isoformat())


def _end(principal: Principal, key: str, found: ToolCall, output: str, reason: str) -> None:
    writer, by_whom = writing_as(principal)
    told: Body = {"event": "tool_step", "id": new_id(), "run_id": found.run, "agent": found.agent, "name": found.name}
    told |= {"tool_call": found.id, "tool_call_id": found.call_id, "status": "success", "output": output}
    told |= {"output_bytes": len(output.encode("utf-8", "surrogatepass")), "answered_by": by_whom["by"]}
    told |= {"duration_ms": round((database_time() - found.started_at) / 1000, 3)}
    log.append([log.of_ours(key, told | ({"reason": reason} if reason else {}), writer)])


def _go_on(principal: Principal, key: str, earlier: Response) -> str:
    """Ask for the next response of the chain, with every output that the calls of the earlier one were given."""
    asked: Json = json.loads(_body(earlier, earlier.in_seq))
    response, run, agent = new_response_id(), new_id(), str(asked.get("agent"))
    received: Body = {"event": "response.received", "id": new_id(), "response_id": response, "agent": agent}
    received |= {"previous_response_id": earlier.id, "sender": str(principal), "recipient": f"agent:{agent}"}
    received |= {name: asked[name] for name in _KEPT if name in asked}
    received |= {"input": _outputs(earlier), "tool_choice": "auto", "store": True, "stream": False}
    (stored,) = log.append([log.of_ours(key, received, principal)])
    queued: Body = {"event": "run.queued", "id": new_id(), "run_id": run, "agent": agent, "run_kind": "agent"}
    queued |= {"input_seq": stored.seq, "response_id": response, "previous_response_id": earlier.id, "store": True}
    log.append([log.of_ours(key, queued | {"socket": ""}, SYSTEM)])
    return response


def _outputs(earlier: Response) -> list[Json]:
    """Answer the outputs in the order in which the calls were made."""
    ends = dict(_calls(earlier).order_by("called_seq").values_list("finished_seq", "call_id"))
    told = dict(Event.objects.filter(conversation=earlier.conversation_id, seq__in=ends).values_list("seq", "body"))
    return [
        {"type": "function_call_output", "call_id": call_id, "output": _text(json.loads(told[seq]).get("output"))}
        for seq, call_id in ends.items()
        if seq in told
    ]


def _calls(response: Response) -> Any:  # a queryset; its generic form names Django's own
    return ToolCall.objects.filter(run=response.run, origin=EXTERNAL)


def _body(response: Response, seq: int) -> str:
    return Event.objects.values_list("body", flat=True).get(conversation=response.conversation_id, seq=seq)


def _text(output: object) -> str:
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
