"""`POST /api/v1/hooks/claude-code` and `…/codex`: events and permission requests of coding agents.

A raw ASGI route. Each hook is stored as claims of its token, in a conversation that this token opened; no run starts. A
PermissionRequest appears in the inbox and waits for its decision, holding no thread. If nobody decides (too late, the
client left, the server stops), the response is `{}`, and the program asks its own user as usual.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Collection

import msgspec

from conversations.access.authentication import Caller
from conversations.asgi import route
from conversations.asgi.decision_wait import AwaitedDecision, DecisionWait, wait_of
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.coding_agents import hook_identity, hooks, session_events
from conversations.coding_agents.hooks import Hook
from conversations.coding_agents.session_events import SessionEvent
from conversations.core import json_size
from conversations.core.errors import Invalid, NotAllowed
from conversations.core.recently_used import RecentlyUsed
from conversations.events import log, payload
from conversations.events.log.records import NewEvent, Stored
from conversations.models import Approval
from conversations.realtime.server_runtime import ServerRuntime
from conversations.runs.approvals import external_approvals
from conversations.runs.approvals.external_approvals import ExternalOutcome, ExternalRequest

PREFIX = "/api/v1/hooks/"
MAX_BODY = 8 << 20  # bytes
WAIT_S, MAX_WAIT_S = 570, 3600  # a hook of Claude Code may take 600 s
MAX_KNOWN, KNOWN_S = 10_000, 3600.0  # conversations that a token is known to have opened
NOTHING = b"{}"
_log = logging.getLogger(__name__)


class HooksEndpoint(route.Route):
    """The routes of all programs that post hooks. Database work runs in a small thread pool; a waiting client holds no
    thread."""

    methods = ("POST",)

    def __init__(self, runtime: ServerRuntime, authenticator: TokenAuthenticator) -> None:
        self._runtime, self._authenticator = runtime, authenticator
        self._waiting = DecisionWait(runtime, "hooks", who="hooks")
        self._own = RecentlyUsed[bool](MAX_KNOWN, KNOWN_S)

    async def handle(self, scope: route.Scope, receive: route.Receive) -> tuple[int, bytes]:
        """Return 200 with the decision in the program's own format, or `{}`."""
        caller = await self._authenticator.caller(scope, "publish")
        tool, wait_s = scope["path"].removeprefix(PREFIX), wait_of(scope, WAIT_S, MAX_WAIT_S)
        body = await route.body(scope, receive, MAX_BODY)
        hook, events = await self._waiting.do(_read, tool, body, caller)
        await self._require_own(caller, {hook.speaker.conversation, *(event.conversation or "" for event in events)})
        if events:
            _log_clashes(hook, await self._runtime.writer.store(events))
        if hooks.ended_call(hook) is not None or hook.name in hooks.ENDS_TURN:
            await self._waiting.do(_settle, hook, caller)
        if hooks.asked_by(hook) is None:
            return 200, NOTHING
        return 200, await self._answer(scope, receive, caller, hook, wait_s)

    async def _require_own(self, caller: Caller, conversations: Collection[str]) -> None:
        """Raise NotAllowed unless this token opened the conversations being written to, or they do not exist yet."""
        for key in conversations:
            known = f"{caller.principal}\0{key}"
            if self._own.get(known):
                continue
            opener = await self._waiting.do(external_approvals.opener_of, key)
            if opener not in ("", str(caller.principal)):
                raise NotAllowed(f"{caller.principal} did not open the conversation {key[:80]}", field="session_id")
            if opener:  # else somebody else may still be the first to write to it
                self._own.put(known, True)

    async def _answer(
        self, scope: route.Scope, receive: route.Receive, caller: Caller, hook: Hook, wait_s: int
    ) -> bytes:
        """Store an approval request, and wait for the decision."""
        self._waiting.require_room()
        began = time.monotonic()
        approval = await self._waiting.do(_ask, hook, caller)
        if approval is None:
            return NOTHING
        awaited = AwaitedDecision(approval, hook.speaker.conversation, began + wait_s, time.monotonic())
        try:
            outcome = await self._waiting.outcome(scope, receive, caller, awaited)
            if isinstance(outcome, str):  # nobody needs it anymore, unless a decision comes first
                await self._waiting.withdraw(approval, outcome)
                outcome = await self._waiting.do(external_approvals.outcome, approval) or ExternalOutcome("")
        except BaseException:
            await asyncio.shield(self._waiting.withdraw(approval, "the agent stopped waiting"))
            raise
        return _encoded_decision(outcome)


def _read(tool: str, body: bytes, caller: Caller) -> tuple[Hook, list[NewEvent]]:
    payload.check_depth(body)
    try:
        value = payload.decoded(body)
    except ValueError as error:
        raise Invalid(f"must be a hook's JSON object: {error}") from None
    hook = hooks.read(tool, value, caller.agent.removeprefix("agent:") or hooks.TOOLS[tool])
    hook = hook_identity.identified(hook, hashlib.sha256(body).hexdigest(), caller.principal)
    return hook, [_event(caller, event) for event in hooks.events_of(hook)]


def _log_clashes(hook: Hook, stored: Collection[Stored]) -> None:
    """Log what was not stored, because an event of that id has another payload."""
    for event in stored:
        if event.clashes:
            place = f"event {event.seq} of {hook.speaker.conversation}"
            _log.warning("a %s hook of %s was not recorded: %s differs", hook.name, hooks.TOOLS[hook.tool], place)


def _event(caller: Caller, read: SessionEvent) -> NewEvent:
    """Create an event that starts no run, whoever is named in it."""
    body = session_events.encoded(read.payload)
    topic = f"{read.prefix}:{read.payload['conversation_id']}"
    event = log.from_bus(topic, None, body, payload.parse(body.encode()), caller.principal)
    return event._replace(starts_no_run=True)


def _settle(hook: Hook, caller: Caller) -> None:
    """Withdraw the requests that, according to a hook, were answered elsewhere: those for its call, or all of a
    finished turn."""
    call = hooks.ended_call(hook)
    is_open = external_approvals.open_requests(caller.principal, hook.speaker.conversation, call_id=call)
    external_approvals.withdraw(is_open, "decided where the agent runs" if call is not None else "its turn is over")


def _ask(hook: Hook, caller: Caller) -> Approval | None:
    call = hooks.asked_by(hook)
    assert call is not None
    raw = session_events.raw_arguments(call.arguments)
    is_whole = json_size.fits(raw)
    decisions = ("approve", "edit", "reject") if hook.tool in hooks.EDITABLE and is_whole else ("approve", "reject")
    approval_request = ExternalRequest(
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
    return external_approvals.request_approval(
        caller.principal, approval_request, _event(caller, hooks.started_call(hook))
    )


def _encoded_decision(decided: ExternalOutcome) -> bytes:
    if not decided.decision:
        return NOTHING
    approved = decided.decision in ("approve", "edit")
    return msgspec.json.encode(hooks.decision(approved, message=decided.message, arguments=decided.arguments))
