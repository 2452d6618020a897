"""The demo: plays its script repeatedly while someone is watching, until the record has something real to show. It
pauses at a call that the person watching decides.

`dashboard.demo` runs it and provides everything it touches. Its events are `system`'s, written as an agent of ours
would: run, agent and turn, tokens as a preview, and an output at the end of every streamed turn (§3.1).
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from conversations.core.ids import new_id, text_digest
from conversations.import_export.demo_script import (
    SCRIPT,
    TITLE,
    AsksPerson,
    Beat,
    CallsTool,
    ControlStep,
    Hands,
    Person,
    Speaks,
)

KEPT = 3  # conversations
BETWEEN = 8.0  # seconds between two conversations
POLL_EVERY_S = 0.5  # while nobody looks
WORD = 0.12  # seconds: about 8 words a second

Payload = dict[str, Any]  # JSON
Publish = Callable[[str, Payload], Awaitable[int]]  # conversation, payload → its number, when stored; a token's is 0
Forget = Callable[[str], Awaitable[object]]


class DemoDecision(NamedTuple):
    """The decision on a request: approve, edit, reject, respond, or `ended` if nobody has to decide anymore."""

    decision: str
    args: Payload | None = None  # of an edit
    output: str = ""  # of an answer
    by: str = ""


class Approvals(Protocol):
    """Where the demo asks the person who watches."""

    async def request(self, key: str, payloads: Sequence[Payload], schema: Payload) -> None:
        """Store a waiting run with its request, in one transaction; `schema` is the tool's."""

    async def decision(self, approval: str) -> DemoDecision | None:
        """Return the decision; None while the request waits."""


class Clock(Protocol):
    """A source of time; tests pass their own."""

    async def sleep(self, seconds: float, /) -> None:
        """Wait so many seconds."""


async def run(
    publish: Publish,
    has_viewers: Callable[[], bool],
    is_real: Callable[[], bool],
    forget: Forget,
    approvals: Approvals,
    *,
    existing: Iterable[str] = (),
    clock: Clock = asyncio,
) -> None:
    """Play until `is_real()`, which is checked before each conversation and each run, so none is left half done.

    Each loop is a new conversation; the newest three are kept, older ones are passed to `forget`, as are those in
    `existing` (earlier demo conversations, oldest first). Waits while `has_viewers()` is false; only the first
    conversation is opened before, so that there is something to look at.
    """
    keys = list(existing)
    loop = 0
    while not is_real():
        if loop:
            await _viewers(has_viewers, clock)
        loop += 1
        keys.append(f"demo-{new_id()[:13]}-{loop}")
        while len(keys) > KEPT:
            await forget(keys.pop(0))
        if is_real():
            return
        await _Stage(keys[-1], publish, has_viewers, approvals, clock).play(is_real)
        await clock.sleep(BETWEEN)


class _Stage:
    """One conversation while it is played."""

    def __init__(
        self, key: str, publish: Publish, has_viewers: Callable[[], bool], approvals: Approvals, clock: Clock
    ) -> None:
        self._key, self._publish, self._has_viewers, self._clock = key, publish, has_viewers, clock
        self._approvals = approvals
        self._run, self._turn, self._input_seq = "", 0, 0
        self._agent = ""  # of the run that waited for a person, until it ends

    async def play(self, is_real: Callable[[], bool]) -> None:
        """Play the script; stop before a run once there is something real."""
        await self._publish_event({"event": "conversation.opened", "title": TITLE, "handler": "Dialogue", "demo": True})
        for beat in SCRIPT:
            await self._wait(beat.after)
            if isinstance(beat, Person):
                await self._end_run()
                if is_real():  # also when it became so while nobody looked
                    return
            if isinstance(beat, AsksPerson):
                if not await self._ask(beat):
                    return
            else:
                await self._do(beat, "")
        await self._end_run()

    async def _beat(self, beat: Beat, parent: str) -> None:
        await self._wait(beat.after)
        await self._do(beat, parent)

    async def _do(self, beat: Beat, parent: str) -> None:
        match beat:
            case Person():
                self._run, self._turn = new_id(), 0
                self._input_seq = await self._envelope("message", f"user:{beat.name}", f"agent:{beat.to}", beat.text)
            case ControlStep():
                await self._envelope("control", "system", f"agent:{beat.to}", beat.text)
            case Hands():
                handoff = {"from_agent": beat.agent, "to_agent": beat.to, "reason": beat.reason}
                await self._publish_event({"event": "agent.handoff", **handoff, **self._mine(beat.agent)})
            case Speaks():
                await self._speak(beat, parent)
            case CallsTool():
                await self._call(beat, parent)

    async def _speak(self, beat: Speaks, parent: str) -> None:
        self._turn += 1
        mine = self._mine(beat.agent, parent)
        for index, word in enumerate(re.findall(r"\s*\S+\s*$|\s*\S+", beat.text)):
            await self._publish_event({"event": "token", "text": word, "index": index, **mine})
            await self._wait(WORD)
        output_id = new_id()
        is_final = beat.to.startswith("user:")
        await self._publish_event({"event": "output", "id": output_id, "text": beat.text, "final": is_final, **mine})
        if beat.to:
            await self._envelope("message", f"agent:{beat.agent}", beat.to, beat.text, output_id=output_id)

    async def _ask(self, beat: AsksPerson) -> bool:
        """Have the person who watches decide a call, and continue as decided; return whether the script continues."""
        call, approval, raw = self._new_call(beat.call, ""), new_id(), _text(beat.call.args)
        run: Payload = {"run_id": self._run, "agent": beat.call.agent, "run_kind": "recording"}
        request = {**call, "event": "approval.requested", "approval_id": approval, "args_raw": raw}
        request["digest"] = text_digest(raw)
        payloads: list[Payload] = [
            {"event": "run.queued", **run, "input_seq": self._input_seq},
            {"event": "run.started", **run, "attempt": 1, "worker": "demo"},
            {**request, "effect": "unsafe", "why": beat.why},
            {"event": "run.waiting", "run_id": self._run, "agent": beat.call.agent, "reason": "approval"},
        ]
        await self._approvals.request(self._key, [self._complete(payload) for payload in payloads], beat.schema)
        while (decided := await self._approvals.decision(approval)) is None:
            await self._wait(POLL_EVERY_S)
        if decided.decision == "ended":
            return False
        self._agent = beat.call.agent
        await self._publish_event({"event": "run.started", **run, "attempt": 2, "worker": "demo"})
        if decided.decision in ("approve", "edit"):
            args = decided.args if decided.args is not None else beat.call.args
            edited = {"edited_by": decided.by} if decided.decision == "edit" else {}
            await self._enter({**call, **edited, "args": args}, beat.call)
            return True
        if decided.decision == "respond":
            answer = {"status": "success", "output": decided.output, "answered_by": decided.by}
            await self._publish_event({**call, **answer, "result_summary": decided.output[:120]})
        for other in beat.otherwise:
            await self._beat(other, "")
        await self._end_run()
        return False

    async def _end_run(self) -> None:
        if self._agent:
            await self._publish_event(
                {"event": "run.done", "run_id": self._run, "agent": self._agent, "run_kind": "recording"}
            )
            self._agent = ""

    def _new_call(self, beat: CallsTool, parent: str) -> Payload:
        self._turn += 1
        qualified = ".".join(filter(None, (beat.more.get("namespace"), beat.name)))
        return {
            "event": "tool_step",
            "name": beat.name,
            "args": beat.args,
            "tool_call": new_id(),
            "tool_call_id": f"call_{new_id()[-12:]}",
            "qualified_name": qualified,
            "lookup_key": qualified,
            "origin": "function",
            **beat.more,
            **self._mine(beat.agent, parent),
        }

    async def _call(self, beat: CallsTool, parent: str) -> None:
        await self._enter(self._new_call(beat, parent), beat)

    async def _enter(self, call: Payload, beat: CallsTool) -> None:
        await self._publish_event({**call, "status": "start", "args_raw": _text(call["args"])})
        for inner in beat.inside:
            await self._beat(inner, call["tool_call"])
        await self._wait(beat.takes)
        spent = beat.takes + sum(_length(inner) for inner in beat.inside)
        await self._publish_event({**call, **_outcome(beat), "duration_ms": round(spent * 1000)})

    async def _envelope(self, kind: str, sender: str, recipient: str, content: str, **metadata: str) -> int:
        ends = {"sender": sender, "recipient": recipient}
        run = {"run_id": self._run} if sender.startswith("agent:") else {}
        return await self._publish_event({"type": kind, **ends, "content": content, "metadata": metadata, **run})

    def _mine(self, agent: str, parent: str = "") -> Payload:
        mine: Payload = {"run_id": self._run, "agent": agent, "turn": self._turn}
        return mine | ({"parent_call": parent} if parent else {})

    async def _publish_event(self, payload: Payload) -> int:
        return await self._publish(self._key, self._complete(payload))

    def _complete(self, payload: Payload) -> Payload:
        ids = {} if payload.get("event") == "token" or "id" in payload else {"id": new_id()}
        return {**payload, **ids, "created_at": datetime.now(UTC).isoformat()}

    async def _wait(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        await _viewers(self._has_viewers, self._clock)


def _text(args: Payload) -> str:
    return json.dumps(args, ensure_ascii=False)


def _outcome(beat: CallsTool) -> Payload:
    if beat.error:
        return {"status": "error", "error": beat.error, "result_summary": beat.error}
    text = json.dumps(beat.output, ensure_ascii=False)
    summary = text if len(text) <= 120 else f"{text[:120]}…"
    return {"status": "success", "output": beat.output, "result_summary": summary, "output_bytes": len(text.encode())}


def _length(beat: Speaks | CallsTool) -> float:
    """Return the approximate duration of a step of the script in seconds."""
    if isinstance(beat, Speaks):
        return beat.after + WORD * len(beat.text.split())
    return beat.after + beat.takes + sum(_length(inner) for inner in beat.inside)


async def _viewers(has_viewers: Callable[[], bool], clock: Clock) -> None:
    while not has_viewers():
        await clock.sleep(POLL_EVERY_S)
