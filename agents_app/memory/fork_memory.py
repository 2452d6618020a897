"""What a fork's agents remember before their first run there: the copied events as model input. Called by `run_input`.

A conversation's memory is rows apart from the record and says nothing of events; so a fork's is made from its prefix,
which is exact to the event, and the same for a history that was imported. It is kept as rows with the first run's end.

| event | item |
|---|---|
| message, user_message, response.received | a user's words; an agent's: an answer; the system's: a system message, |
| | where people or an import say it. What a run answered stands where that run began, as it did in its own memory |
| output | an answer, unless the message after it repeats it, or its run then failed: an output guardrail refused it |
| tool_step, approval.requested: a call | a function call, under its call id where that occurs once |
| its end, or a decision that ended it | the function call's output |

Left out: what happened inside a call, requests about a budget, handoffs (the agents of today decide theirs), thoughts,
and calls without an output, which no model's server takes.
"""

import json
from bisect import bisect_right
from typing import Any, NamedTuple

from agents.items import TResponseInputItem
from django.db import connection

from agents_app.approval_gate.output_after_edit import with_change
from agents_app.memory import session
from agents_app.memory.session import DjangoSession
from conversations.core import principals
from conversations.core.json_values import as_text
from conversations.events import payload, recorded_arguments, registry
from conversations.events.log import bounded_reads
from conversations.events.log.sql import marks
from conversations.events.payload import ParsedPayload
from conversations.events.projections import SpokenMessages, is_call_start, mark_output, repeats_output
from conversations.events.response_ids import words_of
from conversations.models import Conversation, Run, SessionItem
from conversations.runs.budgets.evaluate import ORIGIN

KINDS = registry.names_with("remembered")
PER_ITEM = 4  # events read for each item that is kept: a call has several
REJECTED = "Tool execution was not approved."
_REMEMBERED = f"""FROM conversations_event WHERE conversation_id=%s AND seq<=%s
AND NOT kind='token' AND kind IN ({marks(len(KINDS))})"""
_ANSWER = """SELECT seq FROM conversations_event WHERE conversation_id=%s AND seq>%s AND seq<=%s AND NOT kind='token'
AND kind='output' AND run=%s ORDER BY seq DESC LIMIT 1"""

Item = dict[str, Any]


class ForkStep(NamedTuple):
    """One event of a fork's prefix."""

    seq: int
    kind: str
    run: str | None
    principal: str
    payload: ParsedPayload
    body: Item


def needs_memory(fork: Conversation) -> bool:
    """Return whether a fork's agents have no memory of their own yet."""
    if not fork.copied_seq or SessionItem.objects.filter(conversation=fork.key).exists():
        return False
    return not Run.objects.filter(conversation=fork, status="done").exists()


def build_fork_memory(fork: Conversation, answers: int, *, newest: int) -> list[TResponseInputItem]:
    """Return the newest items of a fork's prefix, from 4 MiB of events, oldest first, for a run that answers event
    `answers`. Synchronous.

    Messages after that event, which wait for runs of their own, are left out.
    """
    with connection.cursor() as cursor:
        values, limit = [fork.pk, fork.copied_seq, *KINDS], newest * PER_ITEM
        rows = bounded_reads.rows(
            cursor, "seq,kind,run,principal,body", _REMEMBERED, values, order="seq DESC", limit=limit
        )
    memory = _Memory()
    for seq, kind, run, principal, body in reversed(rows):
        read = payload.decoded(body)
        if not read.get("parent_call") and read.get("origin") != ORIGIN:
            memory.take(ForkStep(seq, kind, run, principal, payload.parse(body.encode("utf-8", "replace")), read))
    return memory.items(answers, newest)


def saved_context(conversation: Conversation, memory: DjangoSession, team: str) -> str | None:
    """Return a team's newest context; until the team has finished a run in a fork, that of where the fork begins."""
    context = memory.context.get(team)
    if context is not None or not conversation.copied_seq or _has_finished(conversation, team):
        return context
    return context_of(conversation, team)


def context_of(fork: Conversation, team: str) -> str | None:
    """Return a team's context as it was where the fork begins, with the fork's own id; None if none was stored then.

    A run's context counts from its answer on, although it is stored with the run's end. A fork without a context of its
    own at that point has its parent's.
    """
    parent, at = fork.parent, fork.copied_seq
    while parent is not None:
        held = session.contexts_of(parent.key, team)
        index = bisect_right(held, at, key=lambda stored: stored.since)
        if index < len(held) and _answered(parent, held[index].since, at):
            index += 1
        if index:
            return _of_its_own(held[index - 1].text, parent, fork)
        if _has_finished(parent, team, at):
            return None
        at = min(at, parent.copied_seq)
        parent = parent.parent
    return None


def _has_finished(conversation: Conversation, team: str, by: int | None = None) -> bool:
    """Return whether a team has finished a run there, up to an event."""
    runs = Run.objects.filter(conversation=conversation, team=team, status="done")
    return (runs if by is None else runs.filter(ended_seq__lte=by)).exists()


def _answered(conversation: Conversation, ended: int, at: int) -> bool:
    """Return whether the run that ended there had answered by an earlier event."""
    run = Run.objects.filter(conversation=conversation, ended_seq=ended, queued_seq__lte=at).first()
    if run is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_ANSWER, [conversation.pk, run.queued_seq, ended, run.id])
        answer = cursor.fetchone()
    return answer is not None and int(answer[0]) <= at


def _of_its_own(text: str, parent: Conversation, fork: Conversation) -> str:
    read = json.loads(text)
    if isinstance(read, dict) and read.get("conversation_id") == parent.key:
        return json.dumps(read | {"conversation_id": fork.key})
    return text


class _Memory:
    """The items while the events are read."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._open: dict[str, Item] = {}  # calls by our id, else by call id, else by name
        self._used: set[str] = set()  # call ids
        self._answered: set[str] = set()
        self._edited: dict[str, str] = {}  # by call id: the arguments that a person wrote before it ran
        self._final: dict[str, Item] = {}  # by run: its answer
        self._last: dict[int, str] = {}  # the output right before, by its seq
        self._spoken = SpokenMessages()
        self._at: dict[int, Item] = {}  # what was said, by its seq
        self._waiting_inputs: dict[str, tuple[int, Item]] = {}  # what a run that has not begun will answer

    def take(self, step: ForkStep) -> None:
        """Add one event."""
        last, self._last = self._last.pop(step.seq - 1, ""), {}
        is_echo = self._spoken.is_echo(step.seq, step.kind, step.payload)
        count = len(self._items)
        match step.kind:
            case "run.queued" | "run.started" | "run.delivered":
                self._run(step)
            case "tool_step" | "approval.requested":
                self._call(step)
            case "approval.decided":
                self._approval_decided(step)
            case "output":
                self._last = {step.seq: mark_output(step.payload.speaker, step.payload.words)}
                self._say("assistant", step.payload.words, str(step.body.get("phase") or ""))
                if step.run and step.body.get("final") is True and len(self._items) > count:
                    self._final[step.run] = self._items[-1]
            case "run.failed":
                self._refuse(self._final.pop(step.run or "", None))
            case "response.received":
                self._say("user", words_of(step.body.get("input")))
            case "user_message" if is_echo:
                pass
            case _ if not repeats_output(step.payload, last) and not self._is_of_a_call(step):
                self._say(_role(step), step.payload.words)
        if len(self._items) > count:
            self._at[step.seq] = self._items[-1]

    def items(self, answers: int, newest: int) -> list[TResponseInputItem]:
        """Return the newest items, each call with its output."""
        waiting = [
            item for seq, item in sorted(self._waiting_inputs.values(), key=lambda held: held[0]) if seq <= answers
        ]
        newest_items: list[Any] = [*self._items, *waiting][-newest:]
        called = {item["call_id"] for item in newest_items if item.get("type") == "function_call"} & self._answered
        return [item for item in newest_items if "call_id" not in item or item["call_id"] in called]

    def _run(self, step: ForkStep) -> None:
        """Put a message at the beginning of the run that answers it, or where an active run took it in."""
        if step.run is None:
            return
        if step.kind != "run.queued":
            if step.run in self._waiting_inputs:
                self._items.append(self._waiting_inputs.pop(step.run)[1])
        elif (item := self._at.get(seq := step.body.get("input_seq", 0))) is not None:
            self._items = [other for other in self._items if other is not item]
            self._waiting_inputs[step.run] = seq, item

    def _refuse(self, answer: Item | None) -> None:
        self._items = [item for item in self._items if item is not answer]

    def _say(self, role: str, text: str, phase: str = "") -> None:
        if not text:
            return
        if role == "assistant":
            content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
            item: Item = {"type": "message", "role": role, "status": "completed", "content": content}
            self._items.append(item | ({"phase": phase} if phase else {}))
        else:
            self._items.append({"role": role, "content": text})

    def _call(self, step: ForkStep) -> None:
        name = _key(step)
        if step.kind == "approval.requested" or is_call_start(step.payload):
            if name not in self._open or not step.payload.tool_call:
                self._begin(step, name)
        else:
            if name not in self._open:
                self._begin(step, name)
            self._end(self._open.pop(name), _output(step))

    def _begin(self, step: ForkStep, name: str) -> None:
        provider_id, parsed = step.payload.tool_call_id, step.payload
        call_id = provider_id if provider_id and provider_id not in self._used else f"event_{step.seq}"
        self._used.add(call_id)
        sent = parsed.args_raw or bytes(parsed.args or b"{}").decode("utf-8", "replace")
        item = {"type": "function_call", "call_id": call_id, "name": parsed.name or "unnamed", "arguments": sent}
        self._open[name] = item
        self._items.append(item)

    def _approval_decided(self, step: ForkStep) -> None:
        item = self._open.get(_key(step))
        if item is not None and (edited := recorded_arguments.edited(step.body)):  # "" if redacted
            self._edited[item["call_id"]] = edited
        if item is not None and step.body.get("decision") == "reject":
            del self._open[_key(step)]
            self._end(item, str(step.body.get("message") or REJECTED))

    def _end(self, call: Item, output: str) -> None:
        if (ran := self._edited.pop(call["call_id"], None)) is not None:
            output = with_change(output, requested=call["arguments"], ran=ran)
        self._answered.add(call["call_id"])
        self._items.append({"type": "function_call_output", "call_id": call["call_id"], "output": output})

    def _is_of_a_call(self, step: ForkStep) -> bool:
        """Return whether an agent's message was sent by a call that is in the memory itself."""
        return step.run is not None and step.payload.speaker.startswith("agent:")


def _key(step: ForkStep) -> str:
    parsed = step.payload
    return parsed.tool_call or (f"id {parsed.tool_call_id}" if parsed.tool_call_id else f"name {parsed.name}")


def _role(step: ForkStep) -> str:
    """Return the role of a message. System messages count only from people or an import: anyone else could write that
    sender, and theirs are a user's."""
    if step.payload.speaker.startswith("agent:"):
        return "assistant"
    may_instruct = principals.is_people(step.principal) or principals.is_imported(step.principal)
    return "system" if step.payload.speaker == "system" and may_instruct else "user"


def _output(step: ForkStep) -> str:
    """Return a call's output as its model received it: a text as it is, else JSON; an error in words."""
    parsed = step.payload
    raw = next((value for value in (parsed.output, parsed.result_summary, parsed.error) if value is not None), None)
    if raw is None:
        return parsed.status or "done"
    return as_text(payload.decoded(bytes(raw)))
