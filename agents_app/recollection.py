"""What a fork's agents remember before their first run there: the copied events as model input. Called by opening.

A conversation's memory is rows apart from the record and says nothing of events; so a fork's is made from its prefix,
which is exact to the event, and the same for a history that was imported. It is kept as rows with the first run's end.

| event | item |
|---|---|
| message, user_message, response.received | a user's words; an agent's: an answer; the system's: a system message. |
| | What a run answered stands where that run began, as it did in its own memory |
| output | an answer, unless the message after it repeats it |
| tool_step, approval.requested: a call | a function call, under its call id where that is told once |
| its end, or a decision that ended it | the function call's output |

Left out: what happened inside a call, handoffs (the agents of today decide theirs), thoughts, and calls without an
output, which no model's server takes.
"""

import json
from bisect import bisect_right
from typing import Any, NamedTuple

from agents.items import TResponseInputItem
from django.db import connection

from agents_app import session
from conversations import envelopes
from conversations.envelopes import Said
from conversations.models import Conversation, Run, SessionItem
from conversations.projections import mark_output, repeats_output, starts_call
from conversations.responses import words_of

KINDS = (
    "message", "user_message", "response.received", "output", "tool_step", "approval.requested", "approval.decided",
    "run.queued", "run.started",
)  # fmt: skip
PER_ITEM = 4  # events read for each item that is kept: a call has several
REJECTED = "Tool execution was not approved."
_READ = f"""SELECT seq,kind,run,body FROM conversations_event WHERE conversation_id=%s AND seq<=%s AND kind<>'token'
AND kind IN ({",".join(["%s"] * len(KINDS))}) ORDER BY seq DESC LIMIT %s"""
_ANSWER = """SELECT seq FROM conversations_event WHERE conversation_id=%s AND seq>%s AND seq<=%s AND kind<>'token'
AND kind='output' AND run=%s ORDER BY seq DESC LIMIT 1"""

Item = dict[str, Any]


class Step(NamedTuple):
    """One event of the prefix."""

    seq: int
    kind: str
    run: str | None
    said: Said
    body: Item


def is_due(found: Conversation) -> bool:
    """Tell whether a fork's agents have no memory of their own yet."""
    if not found.copied_seq or SessionItem.objects.filter(conversation=found.key).exists():
        return False
    return not Run.objects.filter(conversation=found, status="done").exists()


def of_fork(found: Conversation, answers: int, *, newest: int) -> list[TResponseInputItem]:
    """Answer the newest items of a fork's prefix, oldest first, for a run that answers event `answers`. Sync.

    What was said after that and waited for its own run is left out.
    """
    with connection.cursor() as cursor:
        cursor.execute(_READ, [found.pk, found.copied_seq, *KINDS, newest * PER_ITEM])
        rows = cursor.fetchall()[::-1]
    memory = _Memory()
    for seq, kind, run, body in rows:
        read = json.loads(body)
        if not read.get("parent_call"):
            memory.take(Step(seq, kind, run, envelopes.read(body.encode("utf-8", "replace")), read))
    return memory.items(answers, newest)


def context_of(found: Conversation, team: str) -> str | None:
    """Answer a team's context as it was where the fork begins, with the fork's own id; None where none was kept then.

    A run's context counts from its answer on, though it is kept with the run's end. A fork that has none of its own
    there yet has its parent's.
    """
    parent, at = found.parent, found.copied_seq
    while parent is not None:
        held = session.contexts_of(parent.key, team)
        place = bisect_right(held, at, key=lambda one: one.since)
        if place < len(held) and _answered(parent, held[place].since, at):
            place += 1
        if place:
            return _of_its_own(held[place - 1].text, parent, found)
        if Run.objects.filter(conversation=parent, status="done", ended_seq__lte=at).exists():
            return None
        at = min(at, parent.copied_seq)
        parent = parent.parent
    return None


def _answered(conversation: Conversation, ended: int, at: int) -> bool:
    """Tell whether the run that ended there had answered by an earlier event."""
    run = Run.objects.filter(conversation=conversation, ended_seq=ended, queued_seq__lte=at).first()
    if run is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_ANSWER, [conversation.pk, run.queued_seq, ended, run.id])
        answer = cursor.fetchone()
    return answer is not None and int(answer[0]) <= at


def _of_its_own(text: str, parent: Conversation, found: Conversation) -> str:
    read = json.loads(text)
    if isinstance(read, dict) and read.get("conversation_id") == parent.key:
        return json.dumps(read | {"conversation_id": found.key})
    return text


class _Memory:
    """The items while the events are walked."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._open: dict[str, Item] = {}  # calls by our id, else by call id, else by name
        self._used: set[str] = set()  # call ids
        self._answered: set[str] = set()
        self._last: dict[int, str] = {}  # the output right before, by its seq
        self._at: dict[int, Item] = {}  # what was said, by its seq
        self._held: dict[str, tuple[int, Item]] = {}  # what a run that has not begun will answer

    def take(self, step: Step) -> None:
        """Remember one event."""
        last, self._last = self._last.pop(step.seq - 1, ""), {}
        count = len(self._items)
        match step.kind:
            case "run.queued" | "run.started":
                self._run(step)
            case "tool_step" | "approval.requested":
                self._call(step)
            case "approval.decided":
                self._decided(step)
            case "output":
                self._last = {step.seq: mark_output(step.said.speaker, step.said.words)}
                self._say("assistant", step.said.words)
            case "response.received":
                self._say("user", words_of(step.body.get("input")))
            case _ if not repeats_output(step.said, last) and not self._is_of_a_call(step):
                self._say(_role(step.said), step.said.words)
        if len(self._items) > count:
            self._at[step.seq] = self._items[-1]

    def items(self, answers: int, newest: int) -> list[TResponseInputItem]:
        """Answer the newest, each call with its output."""
        waiting = [item for seq, item in sorted(self._held.values(), key=lambda held: held[0]) if seq <= answers]
        kept: list[Any] = [*self._items, *waiting][-newest:]
        called = {item["call_id"] for item in kept if item.get("type") == "function_call"} & self._answered
        return [item for item in kept if "call_id" not in item or item["call_id"] in called]

    def _run(self, step: Step) -> None:
        """Put what a run answers where the run begins."""
        if step.run is None:
            return
        if step.kind == "run.started":
            if step.run in self._held:
                self._items.append(self._held.pop(step.run)[1])
        elif (item := self._at.get(seq := step.body.get("input_seq", 0))) is not None:
            self._items = [one for one in self._items if one is not item]
            self._held[step.run] = seq, item

    def _say(self, role: str, words: str) -> None:
        if not words:
            return
        if role == "assistant":
            said = [{"type": "output_text", "text": words, "annotations": [], "logprobs": []}]
            self._items.append({"type": "message", "role": role, "status": "completed", "content": said})
        else:
            self._items.append({"role": role, "content": words})

    def _call(self, step: Step) -> None:
        name = _key(step)
        if step.kind == "approval.requested" or starts_call(step.said):
            if name not in self._open or not step.said.tool_call:
                self._begin(step, name)
        else:
            if name not in self._open:
                self._begin(step, name)
            self._end(self._open.pop(name), _output(step))

    def _begin(self, step: Step, name: str) -> None:
        told, said = step.said.tool_call_id, step.said
        call_id = told if told and told not in self._used else f"event_{step.seq}"
        self._used.add(call_id)
        sent = said.args_raw if said.args_raw is not None else bytes(said.args or b"{}").decode("utf-8", "replace")
        item = {"type": "function_call", "call_id": call_id, "name": said.name or "unnamed", "arguments": sent}
        self._open[name] = item
        self._items.append(item)

    def _decided(self, step: Step) -> None:
        item = self._open.get(_key(step))
        if item is not None and step.body.get("decision") == "reject":
            del self._open[_key(step)]
            self._end(item, str(step.body.get("message") or REJECTED))

    def _end(self, call: Item, output: str) -> None:
        self._answered.add(call["call_id"])
        self._items.append({"type": "function_call_output", "call_id": call["call_id"], "output": output})

    def _is_of_a_call(self, step: Step) -> bool:
        """Tell whether an agent's message was sent by a call, which tells it already."""
        return step.run is not None and step.said.speaker.startswith("agent:")


def _key(step: Step) -> str:
    said = step.said
    return said.tool_call or (f"id {said.tool_call_id}" if said.tool_call_id else f"name {said.name}")


def _role(said: Said) -> str:
    if said.speaker.startswith("agent:"):
        return "assistant"
    return "system" if said.speaker == "system" else "user"


def _output(step: Step) -> str:
    """Answer a call's end as its model was told it: a text as it is, else JSON; an error in words."""
    said = step.said
    raw = next((value for value in (said.output, said.result_summary, said.error) if value is not None), None)
    if raw is None:
        return said.status or "done"
    value = json.loads(bytes(raw))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
