"""`POST /api/v1/approvals/requests`: an agent elsewhere asks about a call of its own, and waits for the decision.

A raw ASGI route. The same call asked about again is the same question: whoever polls holds it open, and who has not
polled for `external.LEASE_S` has left: the question is withdrawn, and the agent decides by itself. A waiting request
holds no thread.
"""

import asyncio
import json
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec

from conversations.access import permissions
from conversations.access.authentication import Caller
from conversations.asgi import long_poll, route
from conversations.asgi.long_poll import LongPoll
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Busy, Invalid, NotAllowed
from conversations.core.ids import new_id
from conversations.core.url_converters import whole_number
from conversations.events import log
from conversations.events import payload as envelopes
from conversations.events.log.records import NewEvent
from conversations.models import Approval
from conversations.realtime.server import ServerRuntime
from conversations.runs.approvals import external
from conversations.runs.approvals.external import Question, QuestionOutcome

PATH = "/api/v1/approvals/requests"
MAX_BODY = 1 << 20  # bytes
WAIT_S, MAX_WAIT_S = 25, 30
LOOK_EVERY = 1.0  # seconds, while waiting: heals a lost notification, and sees the server stop
RENEW_EVERY = 5.0  # seconds
MAX_WAITING = 10_000
T = TypeVar("T")
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class WaitingCall(msgspec.Struct, forbid_unknown_fields=True):
    """What is asked: the call as its agent told it, by the provider's id, with the arguments as they were sent."""

    conversation_id: Name
    agent: Name
    name: Name
    tool_call_id: Name
    args_raw: Annotated[str, msgspec.Meta(max_length=256 << 10)] = "{}"
    why: Annotated[str, msgspec.Meta(max_length=2000)] = ""


_decoder = msgspec.json.Decoder(WaitingCall)


class ApprovalRequestEndpoint(route.Route):
    """The route. Database work goes to a few threads."""

    methods = ("POST",)

    def __init__(self, runtime: ServerRuntime, bearers: TokenAuthenticator) -> None:
        self._runtime, self._bearers = runtime, bearers
        self._waiting = LongPoll()
        self._threads = DatabaseThreads("questions")
        self._open = 0

    async def handle(self, scope: route.Scope, receive: route.Receive) -> tuple[int, bytes]:
        """Return 200 with the decision, `pending` while there is none, or `not_asked` where nobody can decide it."""
        visitor = await self._bearers.visitor(scope, "publish")
        wait_s = _wait_of(scope)
        body = await route.body(scope, receive, MAX_BODY)
        if self._open >= MAX_WAITING:
            raise Busy("too many agents wait for decisions", code="too_many")
        deadline = time.monotonic() + wait_s
        key, approval = await self._do(_ask, body, visitor)
        if approval is None:
            return 200, _answer("", "not_asked", None)
        gone = asyncio.ensure_future(long_poll.wait_for_disconnect(receive))
        self._open += 1
        try:
            with self._runtime.watch.reading(visitor) as reader:
                waiting = self._until_decided(scope, approval, key, deadline, gone)
                outcome = await reader.unless_dismissed(waiting)
        finally:
            self._open -= 1
            gone.cancel()
        status = "pending" if outcome is None else "decided" if outcome.decision else "withdrawn"
        return 200, _answer(approval.id, status, outcome)

    async def _until_decided(
        self, scope: route.Scope, approval: Approval, key: str, deadline: float, gone: asyncio.Future[None]
    ) -> QuestionOutcome | None:
        stopping = (scope.get("extensions") or {}).get("http.stopping")
        renewed = 0.0
        with self._waiting.on(f"stream:{key}") as news:
            while True:
                news.clear()
                outcome = await self._do(external.outcome, approval)
                left = deadline - time.monotonic()
                is_over = left <= 0 or gone.done() or (stopping is not None and stopping.is_set())
                if outcome is not None or (is_over and renewed):
                    return outcome
                if time.monotonic() - renewed > RENEW_EVERY:
                    await self._do(external.renew, approval)
                    renewed = time.monotonic()
                await long_poll.news_or(gone, news, max(0.0, min(left, LOOK_EVERY)))

    async def _do(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args))


def _wait_of(scope: route.Scope) -> int:
    fields = route.query(scope)
    if unknown := sorted(fields.keys() - {"wait_s"}):
        raise Invalid("must be wait_s", field=unknown[0][:40])
    return whole_number(fields.get("wait_s", str(WAIT_S)), "wait_s", 0, MAX_WAIT_S)


def _ask(body: bytes, visitor: Caller) -> tuple[str, Approval | None]:
    """Read a question and ask it, in a thread: reading may take long. Return the conversation beside it."""
    call = _read(body, visitor)
    return call.conversation_id, external.ask(visitor.principal, _question(call), _beginning(call, visitor))


def _read(body: bytes, visitor: Caller) -> WaitingCall:
    try:
        call = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"must be a call as JSON: {error}") from None
    if any(envelopes.clean_text(text) != text for text in msgspec.structs.astuple(call)):
        raise Invalid("must hold no NUL and no half characters")
    if visitor.agent and not permissions.may_speak_as(visitor.agent, call.agent):
        raise NotAllowed(f"{visitor.principal} may ask only as {visitor.agent}", field="agent")
    return call


def _question(call: WaitingCall) -> Question:
    return Question(
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
    """Return arguments as JSON, where that is what they are."""
    try:
        envelopes.check_depth(text.encode())
        return envelopes.decoded(text.encode())
    except ValueError:
        return None


def _beginning(call: WaitingCall, visitor: Caller) -> NewEvent:
    """Make the step that begins the call, for a record that does not know it yet."""
    step = {"event": "tool_step", "id": new_id(), "conversation_id": call.conversation_id, "agent": call.agent}
    step |= {"name": call.name, "tool_call_id": call.tool_call_id, "status": "start", "args_raw": call.args_raw}
    body = json.dumps(step)
    topic = f"stream:{call.conversation_id}"
    event = log.from_bus(topic, None, body, envelopes.parse(body.encode()), visitor.principal)
    return event._replace(is_live=False)


def _answer(approval: str, status: str, outcome: QuestionOutcome | None) -> bytes:
    body: dict[str, Any] = {"approval_id": approval, "status": status}
    if outcome is not None and outcome.decision:
        body |= {"decision": outcome.decision, "message": outcome.message, "output": outcome.output}
        body["arguments"] = outcome.arguments
    return msgspec.json.encode(body)
