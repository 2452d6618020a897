"""`POST /api/v1/approvals/requests`: an external agent requests approval of its own tool call and waits for the
decision.

A raw ASGI route. Requesting approval of the same call again continues the same request: polling keeps it open. A client
that has not polled for `external_approvals.LEASE_S` has left; the request is then withdrawn, and the agent decides by
itself. A waiting request holds no thread.
"""

import json
import time
from typing import Annotated, Any

import msgspec

from conversations.access import permissions
from conversations.access.authentication import Caller
from conversations.asgi import route
from conversations.asgi.decision_wait import AwaitedDecision, DecisionWait, wait_of
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.errors import Invalid, NotAllowed
from conversations.core.ids import new_id
from conversations.events import log, payload
from conversations.events.log.records import NewEvent
from conversations.models import Approval
from conversations.realtime.server_runtime import ServerRuntime
from conversations.runs.approvals import external_approvals
from conversations.runs.approvals.external_approvals import ExternalOutcome, ExternalRequest

PATH = "/api/v1/approvals/requests"
MAX_BODY = 1 << 20  # bytes
WAIT_S, MAX_WAIT_S = 25, 30
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class WaitingCall(msgspec.Struct, forbid_unknown_fields=True):
    """The tool call to be approved, as its agent describes it: the provider's call id, and the arguments as sent."""

    conversation_id: Name
    agent: Name
    name: Name
    tool_call_id: Name
    args_raw: Annotated[str, msgspec.Meta(max_length=256 << 10)] = "{}"
    why: Annotated[str, msgspec.Meta(max_length=2000)] = ""


_decoder = msgspec.json.Decoder(WaitingCall)


class ApprovalRequestEndpoint(route.Route):
    """The route. Database work runs in a small thread pool."""

    methods = ("POST",)

    def __init__(self, runtime: ServerRuntime, authenticator: TokenAuthenticator) -> None:
        self._authenticator = authenticator
        self._waiting = DecisionWait(runtime, "questions", who="agents")

    async def handle(self, scope: route.Scope, receive: route.Receive) -> tuple[int, bytes]:
        """Return 200 with the decision, `pending` while there is none, or `not_asked` if nobody can decide: the
        conversation belongs to another token, or this call was asked about with other arguments."""
        caller = await self._authenticator.caller(scope, "publish")
        wait_s = wait_of(scope, WAIT_S, MAX_WAIT_S)
        body = await route.body(scope, receive, MAX_BODY)
        self._waiting.require_room()
        deadline = time.monotonic() + wait_s
        key, approval = await self._waiting.do(_ask, body, caller)
        if approval is None:
            return 200, _answer("", "not_asked", None)
        outcome = await self._waiting.outcome(scope, receive, caller, AwaitedDecision(approval, key, deadline))
        if isinstance(outcome, str):
            return 200, _answer(approval.id, "pending", None)
        return 200, _answer(approval.id, "decided" if outcome.decision else "withdrawn", outcome)


def _ask(body: bytes, caller: Caller) -> tuple[str, Approval | None]:
    """Read and store an approval request, in a thread because reading may take long. Return it with its
    conversation."""
    call = _read(body, caller)
    return call.conversation_id, external_approvals.request_approval(
        caller.principal, _external_request(call), _beginning(call, caller)
    )


def _read(body: bytes, caller: Caller) -> WaitingCall:
    try:
        call = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"must be a tool call in JSON: {error}") from None
    if any(payload.clean_text(text) != text for text in msgspec.structs.astuple(call)):
        raise Invalid("must not contain NUL or lone surrogates")
    if caller.agent and not permissions.may_speak_as(caller.agent, call.agent):
        raise NotAllowed(f"{caller.principal} may request approval only as {caller.agent}", field="agent")
    return call


def _external_request(call: WaitingCall) -> ExternalRequest:
    return ExternalRequest(
        conversation=call.conversation_id,
        agent=call.agent.removeprefix("agent:"),
        name=call.name,
        call_id=call.tool_call_id,
        arguments=_object(call.args_raw),
        args_raw=call.args_raw,
        origin="agents_sdk",
        decisions=("approve", "edit", "reject", "respond"),
        why=call.why or "its program asks before this call",
    )


def _object(text: str) -> Any:
    """Return the arguments as a JSON object, if they are one."""
    try:
        payload.check_depth(text.encode())
        return payload.decoded(text.encode())
    except ValueError:
        return None


def _beginning(call: WaitingCall, caller: Caller) -> NewEvent:
    """Create the step that begins the call, for a record that does not contain it yet."""
    step = {"event": "tool_step", "id": new_id(), "conversation_id": call.conversation_id, "agent": call.agent}
    step |= {"name": call.name, "tool_call_id": call.tool_call_id, "status": "start", "args_raw": call.args_raw}
    body = json.dumps(step)
    topic = f"stream:{call.conversation_id}"
    event = log.from_bus(topic, None, body, payload.parse(body.encode()), caller.principal)
    return event._replace(starts_no_run=True)


def _answer(approval: str, status: str, outcome: ExternalOutcome | None) -> bytes:
    body: dict[str, Any] = {"approval_id": approval, "status": status}
    if outcome is not None and outcome.decision:
        body |= {"decision": outcome.decision, "message": outcome.message, "output": outcome.output}
        body["arguments"] = outcome.arguments
    return msgspec.json.encode(body)
