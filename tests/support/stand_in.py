"""A worker that needs no SDK and no model: it claims runs by the real actions and writes the events that a worker owes
the responses door. What it does is told by the first word of the last input; see `_SCRIPTS`.

In a test's own process it is a thread (`standing_in`); beside a server it is a process (`python -m
tests.support.stand_in`, or `main` by `manage.py shell`).
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from conversations.core.errors import Fenced
from conversations.events import commit_listeners, log
from conversations.events.response_ids import (
    PLAIN_MODEL,
    PLAIN_TEAM,
    call_item_id,
    message_item_id,
    reasoning_item_id,
    words_of,
)
from conversations.models import Agent, Event, Run
from conversations.runs import claims
from conversations.runs.claims import Claim, ServedAgents
from tests.support import held_run
from tests.support.claiming import served_agents

TEAM, MODEL, LABEL = "Stand-ins", "Stand-in", "stand-in-1"
FOR_EVER = 1 << 62
USAGE = {
    "input_tokens": 12,
    "input_tokens_details": {"cached_tokens": 2},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 19,
}
HOSTED = {"name": "look_up", "schema": "0" * 64, "effect": "read", "needs_approval": False, "origin": "hosted"}
SEALED = {"state": "{}", "state_mac": "0", "sdk": "0"}
Body = dict[str, Any]


def register(*, is_plain_demo: bool = True) -> None:
    """Say that the agent and plain models are served, as a worker does when it starts."""
    common: Body = {"served_until": FOR_EVER, "model": LABEL}
    Agent.objects.update_or_create(team=TEAM, name=MODEL, defaults=common | {"is_entry": True})
    plain = common | {"is_demo_model": is_plain_demo, "tools": json.dumps([HOSTED])}
    Agent.objects.update_or_create(team=PLAIN_TEAM, name=PLAIN_MODEL, defaults=plain)


class Answer:
    """One run being answered: what it says is remembered for the stored response."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        body = Event.objects.get(conversation__key=claim.conversation, seq=claim.input_seq).body
        self.request: Body = json.loads(body)
        self.response: str = self.request["response_id"]
        self.words = words_of(self.request["input"])
        self.output: list[Body] = []
        self.turn = 0
        self._uses: dict[str, int] = {}

    def store(self, *payloads: Body) -> None:
        """Write events of the run together."""
        log.append([self.claim.event(payload) for payload in payloads])

    def say(self, text: str, *, pieces: int = 0, final: bool = True, thoughts: int = 0, **more: Any) -> None:
        """Say a turn: tokens, then the output. `pieces=0` says every word by itself, -1 streams nothing."""
        self.turn += 1
        parts, thought = _cut(text, pieces), {"thoughts": thoughts} if thoughts else {}
        for index, part in enumerate(parts):
            self.store({"event": "token", "turn": self.turn, "text": part, "index": index, **thought})
        self.store({"event": "output", "turn": self.turn, "text": text, "final": final, **thought, **more})
        self.keep_message(text)

    def keep_message(self, text: str, status: str = "completed", kind: str = "output_text") -> None:
        """Have the answer hold this turn's message."""
        part: Body = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        part = part if kind == "output_text" else {"type": "refusal", "refusal": text}
        id_ = message_item_id(self.response, self.turn)
        item = {"type": "message", "id": id_, "status": status, "role": "assistant", "content": [part]}
        self.output.append(item)

    def call(self, name: str, arguments: str, call_id: str) -> None:
        """Ask the client to call something."""
        nth = self._uses[call_id] = self._uses.get(call_id, 0) + 1
        our = claims.our_call_id(self.claim.run, call_id, nth)
        step: Body = {"event": "tool_step", "name": name, "tool_call": our, "tool_call_id": call_id}
        self.store(step | {"origin": "external", "args": json.loads(arguments), "args_raw": arguments})
        item: Body = {"type": "function_call", "id": call_item_id(self.response, call_id, nth), "call_id": call_id}
        self.output.append(item | {"name": name, "arguments": arguments, "status": "completed"})

    def finish(self, status: str = "completed", *, end: str = "run.done", **more: Any) -> None:
        """End the response and its run in one transaction."""
        payload: Body = {"event": "response.completed", "response_id": self.response, "status": status, "model": LABEL}
        payload |= {"output": self.output, "usage": USAGE, "error": None, "incomplete_details": None}
        why = {"reason": more.pop("reason")} if "reason" in more else {}
        held_run.finish(self.claim, {"event": end, **why}, payload | more)

    def arguments(self) -> str:
        """Return what follows the script's word and a name, else no arguments."""
        return self.words.split(maxsplit=2)[2] if self.words.count(" ") > 1 else "{}"


def _cut(text: str, pieces: int) -> list[str]:
    if pieces < 0:
        return []
    if not pieces:
        return [word if at == 0 else f" {word}" for at, word in enumerate(text.split(" "))]
    size = max(1, len(text) // pieces)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _echo(answer: Answer, **more: Any) -> None:
    answer.say(f"You said: {answer.words}", **more)
    answer.finish()


def _call(answer: Answer) -> None:
    answer.say("Let me see.", final=False)
    answer.call(answer.words.split()[1], answer.arguments(), "call_1")
    answer.finish()


def _calls_twice(answer: Answer) -> None:
    answer.call("rain", '{"street": "Elm"}', "call_1")
    answer.call("rain", '{"street": "Oak"}', "call_1")
    answer.finish()


def _two_turns(answer: Answer) -> None:
    answer.say("First.", final=False)
    answer.store({"event": "output", "turn": 2, "text": "inside", "final": False, "parent_call": "call-1"})
    answer.turn += 1
    answer.say("Second.")
    answer.finish()


def _hosted(answer: Answer) -> None:
    step = {
        "event": "tool_step",
        "name": "look_up",
        "tool_call": claims.our_call_id(answer.claim.run, "h1", 1),
    }
    step |= {"tool_call_id": "h1", "origin": "hosted", "args": {}}
    answer.store(step | {"status": "start"})
    answer.store(step | {"status": "success", "output": "dry"})
    _echo(answer)


def _fail(answer: Answer) -> None:
    answer.store({"event": "token", "turn": 1, "text": "It is", "index": 0})
    answer.finish(
        "failed", end="run.failed", reason="error", error={"code": "model_error", "message": "no more"}, usage=None
    )


def _vanish(answer: Answer) -> None:
    answer.store({"event": "token", "turn": 1, "text": "It is", "index": 0})
    held_run.finish(answer.claim, {"event": "run.failed", "reason": "the worker stumbled"})


def _cut_short(answer: Answer) -> None:
    answer.turn = 1
    answer.store({"event": "token", "turn": 1, "text": "It is", "index": 0})
    answer.store({"event": "output", "turn": 1, "text": "It is", "final": True, "is_partial": True})
    answer.keep_message("It is", "incomplete")
    answer.finish("incomplete", incomplete_details={"reason": "max_output_tokens"})


def _cancelled(answer: Answer) -> None:
    answer.finish("cancelled", end="run.cancelled", usage=None)


def _think(answer: Answer) -> None:
    id_ = reasoning_item_id(answer.response, answer.turn + 1, 1)
    summary = [{"type": "summary_text", "text": "It rained."}]
    answer.output.append({"type": "reasoning", "id": id_, "summary": summary})
    _echo(answer, thoughts=1)


def _refuse(answer: Answer) -> None:
    answer.turn = 1
    answer.store({"event": "output", "turn": 1, "text": "I will not.", "final": True, "refusal": True})
    answer.keep_message("I will not.", kind="refusal")
    answer.finish()


def _unstreamed(answer: Answer) -> None:
    answer.turn = 1
    answer.keep_message("Only stored.")
    answer.finish()


def _ask(answer: Answer) -> None:
    if answer.claim.state is not None:
        answer.say("It is decided.")
        answer.finish()
        return
    requests = []
    for call_id in ("c1", "c2") if "twice" in answer.words else ("c1",):
        call = claims.our_call_id(answer.claim.run, call_id, 1)
        id_ = f"ask-{answer.response}" + "-2" * len(requests)
        payload: Body = {"event": "approval.requested", "approval_id": id_, "tool_call": call}
        payload |= {"parent_call": "around"} if "inside" in answer.words else {}
        requests.append(payload | {"name": "file", "args": {}, "tool_call_id": call_id})
    claims.suspend(answer.claim, "approval", *requests, **SEALED)


def _many(answer: Answer) -> None:
    count = int(answer.words.split()[1])
    answer.say("word " * count, pieces=count)
    answer.finish()


def _hold(answer: Answer) -> None:
    """Say something, then keep the run until somebody cancels it or the hold is released."""
    answer.store({"event": "token", "turn": 1, "text": "Holding", "index": 0})
    while not RELEASED.wait(0.02):
        if Run.objects.filter(id=answer.claim.run, stop="cancel").exists():
            _cancelled(answer)
            return
    answer.turn = 1
    answer.store({"event": "output", "turn": 1, "text": "Holding on", "final": True})
    answer.keep_message("Holding on")
    answer.finish()


RELEASED = threading.Event()
_SCRIPTS: dict[str, Callable[[Answer], None]] = {
    "call": _call,
    "calls": _calls_twice,
    "two": _two_turns,
    "hosted": _hosted,
    "fail": _fail,
    "vanish": _vanish,
    "cut": _cut_short,
    "cancel": _cancelled,
    "think": _think,
    "refuse": _refuse,
    "unstreamed": _unstreamed,
    "silent": lambda answer: _echo(answer, pieces=-1),
    "ask": _ask,
    "many": _many,
    "hold": _hold,
}


def answer(claim: Claim) -> None:
    """Answer one run."""
    answer_ = Answer(claim)
    script = _SCRIPTS.get(answer_.words.split(" ", 1)[0], _echo)
    with contextlib.suppress(Fenced):  # taken away meanwhile
        script(answer_)


class StandIn(threading.Thread):
    """Claims and answers, each run in a thread of its own, until it is closed."""

    def __init__(self, *, name: str = "stand-in", at_most: int = 8) -> None:
        super().__init__(name=name, daemon=True)
        self.trouble: list[BaseException] = []
        self._at_most = at_most
        self._news = threading.Event()
        self._is_open = True

    def run(self) -> None:
        """Look whenever something was committed here, and every 50 ms for what others commit."""
        end = commit_listeners.on_committed(lambda _: self._news.set())
        running: list[threading.Thread] = []
        teams = served_agents(TEAM, MODEL), served_agents(PLAIN_TEAM, PLAIN_MODEL)
        try:
            while self._is_open:
                self._news.wait(0.05)
                self._news.clear()
                for claim in chain.from_iterable(self._claimed(team) for team in teams):
                    running.append(threading.Thread(target=self._answer, args=[claim], daemon=True))
                    running[-1].start()
        except BaseException as error:
            self.trouble.append(error)
        finally:
            end()
            for thread in running:
                thread.join(60)
            _give_back()

    def _claimed(self, team: ServedAgents) -> list[Claim]:
        return claims.claim(self.name, team, at_most=self._at_most)

    def _answer(self, claim: Claim) -> None:
        try:
            answer(claim)
        except BaseException as error:
            self.trouble.append(error)
        finally:
            _give_back()

    def close(self) -> None:
        """End it."""
        self._is_open = False
        self._news.set()
        self.join(60)


def _give_back() -> None:
    from django.db import connection

    connection.close()


@contextmanager
def standing_in() -> Iterator[StandIn]:
    """Have runs answered in this process; at the end nothing had gone wrong."""
    RELEASED.clear()
    register()
    worker = StandIn()
    worker.start()
    try:
        yield worker
    finally:
        RELEASED.set()
        worker.close()
        assert not worker.is_alive(), "the stand-in did not stop"
        assert not worker.trouble, worker.trouble


def main(seconds: float = 600.0) -> None:
    """Answer runs of this data directory from a process of its own."""
    register()
    worker = StandIn()
    worker.start()
    deadline = time.monotonic() + seconds
    while worker.is_alive() and time.monotonic() < deadline:
        worker.join(1.0)
