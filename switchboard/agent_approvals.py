"""Request a program's Agents SDK approvals in Switchboard's inbox: `watch_agents(approve=True)`.

A tool that needs approval does not interrupt its run: it waits for a person's decision, and is then called, called with
edited arguments, or given an output without a call. If nobody can decide (the server is unreachable, the request was
withdrawn, the conversation belongs to somebody else), the run is interrupted as usual, and the program decides by
itself.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

from switchboard.errors import BusError, Refused, Unreachable
from switchboard.http_bus import MAX_DECISION_WAIT_S, HttpBus

GIVE_UP_S = 25.0  # without an answer: the server has withdrawn the request by then, and nobody can decide it
PAUSE_S = 0.5
MAX_DECISIONS = 1_000  # decisions kept for calls that never came
REJECTED = "Tool execution was not approved."
NO_TRACE = "no-op"  # the SDK's id of a trace that is disabled
_MARK = "_switchboard_approvals"
_log = logging.getLogger("switchboard")


class RequestedCall(NamedTuple):
    """A call for which approval is requested, as recorded."""

    conversation: str
    agent: str
    name: str
    call_id: str
    arguments: str

    def as_body(self) -> dict[str, str]:
        """Return it in the form in which it is sent."""
        return {
            "conversation_id": self.conversation,
            "agent": self.agent,
            "name": self.name,
            "tool_call_id": self.call_id,
            "args_raw": self.arguments,
        }


class CallKey(NamedTuple):
    """What tells the calls of a process apart: some model servers number calls from the start in each answer, so calls
    of one trace may share an id. Of calls that are identical in all four, each has one of their decisions."""

    trace_id: str
    name: str
    call_id: str
    arguments: str  # canonical JSON, or the text if it is none


class ApprovalRequest(NamedTuple):
    """A request while its call is recorded: `calls` gets the call."""

    key: CallKey
    calls: list[RequestedCall]


Describe = Callable[[str | None, CallKey], RequestedCall | str]  # of a span; may wait; a text says why it cannot


class Approvals:
    """Requests the approvals of one process and applies the decisions."""

    def __init__(
        self, bus: Callable[[], HttpBus], describe: Describe, note_decision: Callable[[str | None, CallKey], None]
    ) -> None:
        """`bus` returns that of the current process: the program may fork."""
        self._bus, self._describe, self._note_decision = bus, describe, note_decision
        self._decisions: dict[CallKey, list[dict[str, Any]]] = {}  # one for each call, until it is made
        self._has_warned = False  # of calls that are not traced

    def install(self) -> None:
        """Install the approval requests on each agent's tools when the agent lists them."""
        from agents.agent import AgentBase

        listed = AgentBase.get_all_tools
        if getattr(listed, _MARK, False):
            return

        async def get_all_tools(agent: Any, run_context: Any) -> Any:
            tools = await listed(agent, run_context)
            for tool in tools:
                self._take_over(tool)
            return tools

        setattr(get_all_tools, _MARK, True)
        setattr(AgentBase, "get_all_tools", get_all_tools)  # noqa: B010  # the SDK has no hook for all agents

    def _take_over(self, tool: Any) -> None:
        """Replace a tool's own approval check and call, once."""
        needs = getattr(tool, "needs_approval", False)
        if needs is False or getattr(needs, _MARK, False) or not hasattr(tool, "on_invoke_tool"):
            return
        tool.needs_approval = self._asking(tool.name, needs)
        tool.on_invoke_tool = self._deciding(tool.name, tool.on_invoke_tool)

    def _asking(self, name: str, needs: Any) -> Callable[[Any, dict[str, Any], str], Awaitable[bool]]:
        async def needs_approval(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
            wanted = needs(context, arguments, call_id) if callable(needs) else needs
            wanted = await wanted if inspect.isawaitable(wanted) else wanted
            return bool(wanted) and not await self._is_decided(name, call_id, arguments)

        setattr(needs_approval, _MARK, True)
        return needs_approval

    def _deciding(
        self, name: str, invoke: Callable[[Any, str], Awaitable[Any]]
    ) -> Callable[[Any, str], Awaitable[Any]]:
        async def on_invoke_tool(context: Any, arguments: str) -> Any:
            decided = self._take(key_of(_place()[0], name, getattr(context, "tool_call_id", ""), arguments))
            match decided.get("decision"):
                case "reject":
                    return decided.get("message") or REJECTED
                case "respond":
                    return decided.get("output") or ""
                case "edit":
                    arguments = json.dumps(decided.get("arguments"))
            return await invoke(context, arguments)

        return on_invoke_tool

    async def _is_decided(self, name: str, call_id: str, arguments: dict[str, Any]) -> bool:
        """Request approval and wait, in a thread. False: the program decides by itself."""
        trace_id, span_id = _place()
        if not trace_id or not call_id:
            self._warn_once(name)
            return False
        key = key_of(trace_id, name, call_id, arguments)
        loop, stopped = asyncio.get_running_loop(), threading.Event()
        answer: asyncio.Future[dict[str, Any] | None] = loop.create_future()

        def settle(decided: dict[str, Any] | None) -> None:
            if not answer.done():
                answer.set_result(decided)

        def wait() -> None:
            decided = self._wait(span_id, key, stopped)
            with suppress(RuntimeError):  # a loop that is closed has nobody who waits
                loop.call_soon_threadsafe(settle, decided)

        threading.Thread(target=wait, name="switchboard-approval", daemon=True).start()
        try:
            decided = await answer
        finally:
            stopped.set()
        if decided is None:
            return False
        self._note_decision(span_id, key)
        self._keep(key, decided)
        return True

    def _warn_once(self, name: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            _warn(name, "the call is not traced (further ones are not logged)")

    def _keep(self, key: CallKey, decided: dict[str, Any]) -> None:
        """Keep a decision for one call."""
        decisions = self._decisions.pop(key, [])
        if len(self._decisions) >= MAX_DECISIONS:
            self._decisions.pop(next(iter(self._decisions)))
        self._decisions[key] = [*decisions, decided]

    def _take(self, key: CallKey) -> dict[str, Any]:
        """Return the newest decision about a call that is made now; empty if there is none."""
        decisions = self._decisions.pop(key, [])
        if decisions[:-1]:
            self._decisions[key] = decisions[:-1]
        return decisions[-1] if decisions else {}

    def _wait(self, span_id: str | None, key: CallKey, stopped: threading.Event) -> dict[str, Any] | None:
        """Return the decision; None if there is none. Never raises."""
        try:
            requested_call = self._describe(span_id, key)
            if isinstance(requested_call, str):
                _warn(f"a call of {key.name}", requested_call)
                return None
            return self._decision_of(requested_call, stopped)
        except Exception:
            _log.exception("a call could not be asked about: the program decides by itself")
            return None

    def _decision_of(self, requested_call: RequestedCall, stopped: threading.Event) -> dict[str, Any] | None:
        """Send the request without waiting at first, so that it is known soon whether it was accepted, then wait.

        No request is sent before the server has what was published: a request that overtakes the start of its call
        would start another call.
        """
        bus = self._bus()
        is_open, last_contact = False, time.monotonic()
        while not stopped.is_set():
            try:
                if not is_open:
                    bus.require_delivered(PAUSE_S)
                answer = bus.ask_approval(requested_call.as_body(), MAX_DECISION_WAIT_S if is_open else 0)
            except Unreachable as error:
                is_nowhere = not is_open and isinstance(error.__cause__, ConnectionRefusedError | socket.gaierror)
                if is_nowhere or time.monotonic() - last_contact > GIVE_UP_S:
                    _warn(requested_call.name, error)
                    return None
                stopped.wait(PAUSE_S)
                continue
            except (Refused, BusError) as error:
                _warn(requested_call.name, error)
                return None
            is_open, last_contact = True, time.monotonic()
            if answer.get("status") != "pending":
                return answer if answer.get("decision") else None
        return None


def _warn(name: str, why: object) -> None:
    _log.warning("no approval was requested for %s, so the program decides by itself: %s", name, why)


def key_of(trace_id: str, name: str, call_id: str, arguments: dict[str, Any] | str | None) -> CallKey:
    """Return the key of a call by its arguments: the object that the SDK asks about, or the text that it calls with."""
    read: Any = arguments
    if not isinstance(arguments, dict):
        try:
            read = json.loads(arguments or "")
        except (ValueError, RecursionError):
            return CallKey(trace_id, name, call_id, arguments or "")
    return CallKey(trace_id, name, call_id, json.dumps(read, sort_keys=True))


def _place() -> tuple[str, str | None]:
    """Return the program's current trace and span; no trace and None if it is not traced."""
    from agents.tracing import get_current_span, get_current_trace

    trace, span = get_current_trace(), get_current_span()
    if trace is None or trace.trace_id == NO_TRACE:
        return "", None
    return trace.trace_id, span.span_id if span is not None else None
