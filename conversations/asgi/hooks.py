"""`POST /api/v1/hooks/claude-code` and `…/codex`: what coding agents post while they work, and what they ask.

A raw ASGI route. Each hook is stored as claims of its token, in a conversation that this token opened; no run starts.
A PermissionRequest is asked in the inbox and waits for its decision, holding no thread; whenever nobody decides (too
late, the client left, the server stops) the answer is `{}`, and the program asks its own user as ever.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec

from conversations.access.authentication import Caller
from conversations.asgi import long_poll, route
from conversations.asgi.long_poll import LongPoll
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.coding_agents import hook_identity, hooks, session_events
from conversations.coding_agents.hooks import Hook
from conversations.coding_agents.session_events import SessionEvent
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Busy, Invalid, NotAllowed
from conversations.core.recently_used import RecentlyUsed
from conversations.core.url_converters import whole_number
from conversations.events import log
from conversations.events import payload as envelopes
from conversations.events.log.records import NewEvent
from conversations.models import Approval
from conversations.realtime.server import ServerRuntime
from conversations.runs.approvals import external
from conversations.runs.approvals.external import Question, QuestionOutcome

PREFIX = "/api/v1/hooks/"
MAX_BODY = 8 << 20  # bytes
WAIT_S, MAX_WAIT_S = 570, 3600  # a hook of Claude Code may take 600 s
LOOK_EVERY = 1.0  # seconds, while waiting: heals a lost notification, and sees the server stop
RENEW_EVERY = 5.0  # seconds
MAX_KNOWN, KNOWN_S = 10_000, 3600.0  # conversations that a token is known to have opened
NOTHING = b"{}"
T = TypeVar("T")


class _OpenQuestion(NamedTuple):
    """A question that waits, and for how long."""

    approval: Approval
    conversation: str
    deadline: float  # monotonic


class HooksEndpoint(route.Route):
    """The routes of all programs that post hooks. Database work goes to a few threads; who waits holds none."""

    methods = ("POST",)

    def __init__(self, runtime: ServerRuntime, bearers: TokenAuthenticator) -> None:
        self._runtime, self._bearers = runtime, bearers
        self._waiting = LongPoll()
        self._threads = DatabaseThreads("hooks")
        self._own = RecentlyUsed[bool](MAX_KNOWN, KNOWN_S)
        self._asking = 0

    async def handle(self, scope: route.Scope, receive: route.Receive) -> tuple[int, bytes]:
        """Return 200 with the decision in the program's own form, or `{}`."""
        visitor = await self._bearers.visitor(scope, "publish")
        tool, wait_s = _address(scope)
        body = await route.body(scope, receive, MAX_BODY)
        hook, events = await self._do(_read, tool, body, visitor)
        await self._require_own(visitor, events, hook)
        if events:
            await self._runtime.store(events)
        if hooks.ended_call(hook) is not None or hook.name in hooks.ENDS_TURN:
            await self._do(_settle, hook, visitor)
        if hooks.asked_by(hook) is None:
            return 200, NOTHING
        return 200, await self._answer(scope, receive, visitor, hook, wait_s)

    async def _require_own(self, visitor: Caller, events: Sequence[NewEvent], hook: Hook) -> None:
        """Raise NotAllowed unless the token opened the conversations that are written to, or nobody did."""
        for key in {hook.speaker.conversation, *(event.conversation or "" for event in events)}:
            known = f"{visitor.principal}\0{key}"
            if self._own.get(known):
                continue
            if not await self._do(external.is_opener, visitor.principal, key):
                raise NotAllowed(f"{visitor.principal} did not open the conversation {key[:80]}", field="session_id")
            if events:  # and once they are stored, it did
                self._own.put(known, True)

    async def _answer(
        self, scope: route.Scope, receive: route.Receive, visitor: Caller, hook: Hook, wait_s: int
    ) -> bytes:
        """Ask, and wait for the decision."""
        if self._asking >= MAX_KNOWN:
            raise Busy("too many hooks wait for decisions", code="too_many")
        began = time.monotonic()
        approval = await self._do(_ask, hook, visitor)
        if approval is None:
            return NOTHING
        gone = asyncio.ensure_future(long_poll.wait_for_disconnect(receive))
        self._asking += 1
        try:
            with self._runtime.watch.reading(visitor) as reader:
                question = _OpenQuestion(approval, hook.speaker.conversation, began + wait_s)
                decided = await reader.unless_dismissed(self._until_decided(scope, question, gone))
        except BaseException:
            await asyncio.shield(self._do(external.withdraw, [approval.id], "the agent stopped waiting"))
            raise
        finally:
            self._asking -= 1
            gone.cancel()
        return _encoded_decision(hook, decided)

    async def _until_decided(
        self, scope: route.Scope, question: _OpenQuestion, gone: asyncio.Future[None]
    ) -> QuestionOutcome:
        """Wait until it is decided or nobody needs it any more; then it is withdrawn, unless a decision came first."""
        stopping = (scope.get("extensions") or {}).get("http.stopping")
        renewed = time.monotonic()
        with self._waiting.on(f"stream:{question.conversation}") as news:
            while True:
                news.clear()
                outcome = await self._do(external.outcome, question.approval)
                if outcome is not None:
                    return outcome
                left = question.deadline - time.monotonic()
                why = "the agent stopped waiting" if gone.done() else "nobody decided in time" if left <= 0 else ""
                if stopping is not None and stopping.is_set():
                    why = why or "the server stopped"
                if why:
                    await self._do(external.withdraw, [question.approval.id], why)
                    return await self._do(external.outcome, question.approval) or QuestionOutcome("")
                if time.monotonic() - renewed > RENEW_EVERY:
                    await self._do(external.renew, question.approval)
                    renewed = time.monotonic()
                await long_poll.news_or(gone, news, min(left, LOOK_EVERY))

    async def _do(self, work: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args))


def _address(scope: route.Scope) -> tuple[str, int]:
    fields = route.query(scope)
    if unknown := sorted(fields.keys() - {"wait_s"}):
        raise Invalid("must be wait_s", field=unknown[0][:40])
    return scope["path"].removeprefix(PREFIX), whole_number(fields.get("wait_s", str(WAIT_S)), "wait_s", 0, MAX_WAIT_S)


def _read(tool: str, body: bytes, visitor: Caller) -> tuple[Hook, list[NewEvent]]:
    envelopes.check_depth(body)
    try:
        value = envelopes.decoded(body)
    except ValueError as error:
        raise Invalid(f"must be a hook's JSON object: {error}") from None
    hook = hooks.read(tool, value, visitor.agent.removeprefix("agent:") or hooks.TOOLS[tool])
    hook = hook_identity.identified(hook, hashlib.sha256(body).hexdigest(), visitor.principal)
    return hook, [_event(visitor, event) for event in hooks.events_of(hook)]


def _event(visitor: Caller, read: SessionEvent) -> NewEvent:
    """Make an event that starts no run, whoever is named."""
    body = session_events.encoded(read.payload)
    topic = f"{read.prefix}:{read.payload['conversation_id']}"
    event = log.from_bus(topic, None, body, envelopes.parse(body.encode()), visitor.principal)
    return event._replace(is_live=False)


def _settle(hook: Hook, visitor: Caller) -> None:
    """Withdraw the questions that a hook says are answered elsewhere: those about its call, or all of a turn that is
    over."""
    call = hooks.ended_call(hook)
    is_open = external.open_questions(visitor.principal, hook.speaker.conversation, call_id=call)
    external.withdraw(is_open, "decided where the agent runs" if call is not None else "its turn is over")


def _ask(hook: Hook, visitor: Caller) -> Approval | None:
    call = hooks.asked_by(hook)
    assert call is not None
    raw = session_events.raw_arguments(call.arguments)
    is_whole = len(raw) <= session_events.MAX_TEXT
    decisions = ("approve", "edit", "reject") if hook.tool in hooks.EDITABLE and is_whole else ("approve", "reject")
    question = Question(
        conversation=hook.speaker.conversation,
        agent=hook.speaker.agent,
        name=call.name[:200],
        call_id=call.call_id,
        arguments=call.arguments if is_whole else None,
        args_raw=session_events.bounded(raw),
        origin=hook.tool,
        decisions=decisions,
        why=hooks.why(hook),
    )
    return external.ask(visitor.principal, question, _event(visitor, hooks.started_call(hook)))


def _encoded_decision(hook: Hook, decided: QuestionOutcome) -> bytes:
    if not decided.decision:
        return NOTHING
    approved = decided.decision in ("approve", "edit")
    return msgspec.json.encode(hooks.decision(approved, message=decided.message, arguments=decided.arguments))
