"""One tool call as the record has it: its row, its events, what is around it and inside it, and its replays. Rows and
events only. Called by the pages of a call, and by the API."""

import json
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from conversations import log
from conversations.errors import NotFound
from conversations.fragments import faces
from conversations.log.events import Call, Stored
from conversations.models import Approval, SessionItem, ToolCall
from conversations.models.tool_call import NEWEST_FIRST

SIBLINGS = 40  # calls of a run told beside one
INSIDE = 200  # events inside a call
LOOKED = 1_000  # events after a call's beginning that are looked through for those inside it
AROUND = 4  # events before and after
REPLAYS = 50
LATELY = 12  # other calls of the tool
ITEMS = 4  # of the model's memory

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call. `told` is the body of the event that called it, `result` of the one that ended it (empty: none)."""

    row: ToolCall
    call: Call
    told: Json
    result: Json
    approval: Approval | None

    @property
    def key(self) -> str:
        """Its conversation's id."""
        return self.row.conversation.key

    @property
    def tool(self) -> str:
        """The tool's qualified name, as the record has it."""
        space, name = self.row.namespace, self.row.name
        told = self.told.get("qualified_name")
        return told if isinstance(told, str) and told else f"{space}.{name}" if space and space != name else name

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended."""
        return self.row.finished_seq is not None

    @property
    def arguments(self) -> str:
        """What was sent, as JSON text; the text itself where it is none."""
        raw, said = self.told.get("args_raw"), faces.read(self.call.called).said
        if isinstance(raw, str):
            return raw if _is_json(raw) or not raw.strip() else json.dumps(raw, ensure_ascii=False)
        return bytes(said.args).decode("utf-8", "replace") if said.args is not None else ""

    @property
    def output(self) -> str:
        """What it gave, as JSON text; empty while it gave nothing."""
        return self._of_end("output") or self._of_end("result_summary")

    @property
    def error(self) -> str:
        """What went wrong, as JSON text; empty where nothing did."""
        return self._of_end("error")

    def _of_end(self, name: str) -> str:
        if not self.result:
            return ""
        value = self.result.get(name)
        return "" if value is None else json.dumps(value, ensure_ascii=False)


def find(id: str) -> Recorded:
    """Answer a call by our id. Raises NotFound."""
    found = ToolCall.objects.filter(id=id[:64].replace("\0", ""), conversation__is_staged=False)
    row = found.select_related("conversation").first()
    if row is None:
        raise NotFound(f"No tool call has the id {id[:80]!r}. It may be mistyped, or history went back.")
    called = log.read_after(row.conversation.key, row.called_seq - 1, 1)
    call = log.calls_of(row.conversation.key, called).get(row.called_seq)
    if call is None:
        raise NotFound(f"The record does not hold the call {id[:80]!r} any more")
    ended = call.finished if call.finished is not None and call.finished.kind == "tool_step" else None
    approval = Approval.objects.filter(tool_call=row.id).first()
    return Recorded(
        row, call, dict(faces.read(call.called).body), dict(faces.read(ended).body) if ended else {}, approval
    )


def siblings(one: Recorded) -> list[ToolCall]:
    """Answer the calls of the same run in order; of an observed call those around it in its conversation."""
    calls = ToolCall.objects.filter(conversation_id=one.row.conversation_id)
    if one.row.run is not None:
        near = calls.filter(run=one.row.run, called_seq__gte=_first_seq(one)).order_by("called_seq")
        return list(near[:SIBLINGS])
    observed = calls.filter(run=None)
    before = observed.filter(called_seq__lt=one.row.called_seq).order_by("-called_seq")[: SIBLINGS // 4]
    after = observed.filter(called_seq__gte=one.row.called_seq).order_by("called_seq")[: SIBLINGS // 4 + 1]
    return [*reversed(before), *after]


def _first_seq(one: Recorded) -> int:
    """Answer where the siblings begin: a long run's are told from a few before this one."""
    before = ToolCall.objects.filter(conversation_id=one.row.conversation_id, run=one.row.run)
    seqs = (
        before.filter(called_seq__lte=one.row.called_seq).order_by("-called_seq").values_list("called_seq", flat=True)
    )
    return min(list(seqs[: SIBLINGS // 2]), default=0)


def inside(one: Recorded) -> list[Stored]:
    """Answer the events of what ran inside the call, tokens left out; in order."""
    if one.row.run is None or one.told.get("tool_call") != one.row.id:
        return []
    last = one.row.finished_seq or one.row.called_seq + LOOKED
    found = log.read_after(one.key, one.row.called_seq, min(LOOKED, last - one.row.called_seq))
    mine = (e for e in found if e.run == one.row.run and e.kind != "token" and '"parent_call"' in e.body)
    return [e for e in mine if faces.read(e).body.get("parent_call") == one.row.id][:INSIDE]


def around(one: Recorded) -> list[Stored]:
    """Answer the events right before and after the call's own, tokens left out."""
    first, last = min(one.call.seqs), max(one.call.seqs)
    before = [e for e in log.read_before(one.key, first, AROUND * 8) if e.kind != "token"][-AROUND:]
    after = [e for e in log.read_after(one.key, last, AROUND * 8) if e.kind != "token"][:AROUND]
    own = [e for e in (one.call.called, one.call.asked, one.call.decided, one.call.finished) if e is not None]
    return [*before, *sorted({e.seq: e for e in own}.values(), key=lambda e: e.seq), *after]


def replays(one: Recorded) -> list[ToolCall]:
    """Answer the calls that people had made again from this one, newest first."""
    found = ToolCall.objects.filter(replay_of=one.row.id, conversation_id=one.row.conversation_id, run__isnull=False)
    return list(found.order_by("-called_seq")[:REPLAYS])


def original(one: Recorded) -> Recorded | None:
    """Answer the call that this one repeats, where the record has it; a claim from outside repeats none."""
    if one.row.replay_of is None or one.row.run is None:
        return None
    try:
        return find(one.row.replay_of)
    except NotFound:
        return None


def lately(one: Recorded) -> list[ToolCall]:
    """Answer other calls of the same public name by the same agent, newest first: what it is worth comparing with."""
    others = ToolCall.objects.filter(name=one.row.name, agent=one.row.agent, conversation__is_staged=False)
    found = others.exclude(id=one.row.id).order_by(*NEWEST_FIRST).select_related("conversation")
    return list(found[:LATELY])


def raw(one: Recorded) -> list[tuple[str, str]]:
    """Answer the call's events as they are stored, with their kind and seq; then items of the model's memory."""
    own = [e for e in (one.call.called, one.call.asked, one.call.decided, one.call.finished) if e is not None]
    events = sorted({e.seq: e for e in own}.values(), key=lambda e: e.seq)
    made = [(f"{event.kind}, event {event.seq}", event.body) for event in events]
    if one.row.run is None or not one.row.call_id:
        return made
    items = SessionItem.objects.filter(Q(payload__contains=json.dumps(one.row.call_id)), conversation=one.key)
    kept = items.order_by("seq").values_list("payload", flat=True)[:ITEMS]
    return [*made, *((f"memory, {_type(payload)}", payload) for payload in kept)]


def _type(payload: str) -> str:
    try:
        found = json.loads(payload)
    except ValueError:
        return "item"
    return str(found.get("type") or found.get("role") or "item")[:40] if isinstance(found, dict) else "item"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
