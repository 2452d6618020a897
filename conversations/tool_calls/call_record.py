"""Read one tool call from the record: its row, its events, those around and inside it, and its replays. Called by the
pages of a call, and by the API."""

import json
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from conversations.core import json_values, principals
from conversations.core.errors import NotFound
from conversations.events import log, original_times, recorded_arguments
from conversations.events.log.records import CallEvents, Stored
from conversations.models import Approval, SessionItem, ToolCall
from conversations.models.tool_call import NEWEST_FIRST
from conversations.rendering import event_rows

SIBLINGS = 40  # calls of a run told beside one
INSIDE = 200  # events inside a call
LOOKED = 1_000  # events after a call's beginning that are looked through for those inside it
AROUND = 4  # events before and after
REPLAYS = 50
LATELY = 12  # other calls of the tool
ITEMS = 4  # of the model's memory

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call, with the bodies of the events that called it and that ended it (empty: it has not ended)."""

    row: ToolCall
    call: CallEvents
    called_body: Json
    ended_body: Json
    approval: Approval | None

    @property
    def conversation_key(self) -> str:
        """Its conversation's id."""
        return self.row.conversation.key

    @property
    def tool(self) -> str:
        """The tool's qualified name, as recorded."""
        space, name = self.row.namespace, self.row.name
        qualified_name = self.called_body.get("qualified_name")
        return (
            qualified_name
            if isinstance(qualified_name, str) and qualified_name
            else f"{space}.{name}"
            if space and space != name
            else name
        )

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self.row.finished_seq is not None

    @property
    def is_imported(self) -> bool:
        """Return whether an import recorded it."""
        return principals.is_imported(self.call.called.principal)

    @property
    def began_at(self) -> int:
        """When it was called, µs UTC: an imported one originally, if the record has it."""
        first = original_times.of_imported(self.called_body) if self.is_imported else None
        return self.row.started_at if first is None else first

    @property
    def arguments(self) -> str:
        """The arguments sent, as JSON text; the original text if they are not JSON."""
        raw, parsed = self.called_body.get("args_raw"), event_rows.parse_event(self.call.called).payload
        if isinstance(raw, str):
            return raw if _is_json(raw) or not raw.strip() else json.dumps(raw, ensure_ascii=False)
        return bytes(parsed.args).decode("utf-8", "replace") if parsed.args is not None else ""

    @property
    def edited(self) -> str | None:
        """The arguments that a person entered before it ran, as JSON text; None if they were not changed."""
        return (
            recorded_arguments.edited(event_rows.parse_event(self.call.approval_decision).body)
            if self.call.approval_decision
            else None
        )

    @property
    def ran(self) -> str:
        """The arguments that it ran with, or would have, as JSON text: the person's, or else those sent."""
        return self.arguments if self.edited is None else self.edited

    @property
    def as_ran(self) -> Json:
        """The body of the event that called it, with the arguments that it ran with."""
        return recorded_arguments.as_ran(self.called_body, self.edited)

    @property
    def output(self) -> str:
        """Its output, as JSON text; empty if there is none."""
        return self._of_end("output") or self._of_end("result_summary")

    @property
    def error(self) -> str:
        """Its error, as JSON text; empty if there is none."""
        return self._of_end("error")

    def _of_end(self, name: str) -> str:
        if not self.ended_body:
            return ""
        value = self.ended_body.get(name)
        return "" if value is None else json.dumps(value, ensure_ascii=False)


def find(id: str) -> CallRecord:
    """Return a call by our id. Raises NotFound."""
    calls = ToolCall.objects.filter(id=id[:64].replace("\0", ""), conversation__is_staged=False)
    row = calls.select_related("conversation").first()
    if row is None:
        raise NotFound(
            f"There is no tool call {id[:80]!r}. It may be mistyped, or the database was restored from a backup."
        )
    called = log.read_after(row.conversation.key, row.called_seq - 1, 1)
    call = log.calls_of(row.conversation.key, called).get(row.called_seq)
    if call is None:
        raise NotFound(f"The record no longer contains the call {id[:80]!r}")
    ended = call.finished if call.finished is not None and call.finished.kind == "tool_step" else None
    approval = Approval.objects.filter(tool_call=row.id).first()
    return CallRecord(
        row,
        call,
        dict(event_rows.parse_event(call.called).body),
        dict(event_rows.parse_event(ended).body) if ended else {},
        approval,
    )


def siblings(recorded: CallRecord) -> list[ToolCall]:
    """Return the calls of the same run in order; for an observed call, those around it in its conversation."""
    calls = ToolCall.objects.filter(conversation_id=recorded.row.conversation_id)
    if recorded.row.run is not None:
        near = calls.filter(run=recorded.row.run, called_seq__gte=_first_seq(recorded)).order_by("called_seq")
        return list(near[:SIBLINGS])
    observed = calls.filter(run=None)
    before = observed.filter(called_seq__lt=recorded.row.called_seq).order_by("-called_seq")[: SIBLINGS // 4]
    after = observed.filter(called_seq__gte=recorded.row.called_seq).order_by("called_seq")[: SIBLINGS // 4 + 1]
    return [*reversed(before), *after]


def _first_seq(recorded: CallRecord) -> int:
    """Return where the siblings start: for a long run, a few calls before this one."""
    before = ToolCall.objects.filter(conversation_id=recorded.row.conversation_id, run=recorded.row.run)
    seqs = (
        before.filter(called_seq__lte=recorded.row.called_seq)
        .order_by("-called_seq")
        .values_list("called_seq", flat=True)
    )
    return min(list(seqs[: SIBLINGS // 2]), default=0)


def nested_events(recorded: CallRecord) -> list[Stored]:
    """Return the events of what ran inside the call, without tokens, in order."""
    if recorded.row.run is None or recorded.called_body.get("tool_call") != recorded.row.id:
        return []
    last = recorded.row.finished_seq or recorded.row.called_seq + LOOKED
    events = log.read_after(
        recorded.conversation_key, recorded.row.called_seq, min(LOOKED, last - recorded.row.called_seq)
    )
    mine = (e for e in events if e.run == recorded.row.run and e.kind != "token" and '"parent_call"' in e.body)
    return [e for e in mine if event_rows.parse_event(e).body.get("parent_call") == recorded.row.id][:INSIDE]


def neighbouring_events(recorded: CallRecord) -> list[Stored]:
    """Return the events right before and after the call's own, without tokens."""
    first, last = recorded.call.seqs[0], recorded.call.seqs[-1]
    before = [e for e in log.read_before(recorded.conversation_key, first, AROUND * 8) if e.kind != "token"][-AROUND:]
    after = [e for e in log.read_after(recorded.conversation_key, last, AROUND * 8) if e.kind != "token"][:AROUND]
    return [*before, *recorded.call.events, *after]


def replays(recorded: CallRecord) -> list[ToolCall]:
    """Return the replays of this call, newest first."""
    calls = ToolCall.objects.filter(
        replay_of=recorded.row.id, conversation_id=recorded.row.conversation_id, run__isnull=False
    )
    return list(calls.order_by("-called_seq").select_related("conversation")[:REPLAYS])


def original(recorded: CallRecord) -> CallRecord | None:
    """Return the call that this one replays, if it is recorded; a claim from outside replays none."""
    if recorded.row.replay_of is None or recorded.row.run is None:
        return None
    try:
        return find(recorded.row.replay_of)
    except NotFound:
        return None


def recent_calls(recorded: CallRecord) -> list[ToolCall]:
    """Return other calls with the same public name by the same agent, newest first, for comparison."""
    others = ToolCall.objects.filter(name=recorded.row.name, agent=recorded.row.agent, conversation__is_staged=False)
    calls = others.exclude(id=recorded.row.id).order_by(*NEWEST_FIRST).select_related("conversation")
    return list(calls[:LATELY])


def raw(recorded: CallRecord) -> list[tuple[str, str]]:
    """Return the call's events as they are stored, with their kind and seq, then items of the model's memory."""
    entries = [(f"{event.kind}, event {event.seq}", event.body) for event in recorded.call.events]
    if recorded.row.run is None or not recorded.row.call_id:
        return entries
    items = SessionItem.objects.filter(
        Q(payload__contains=json.dumps(recorded.row.call_id)), conversation=recorded.conversation_key
    )
    payloads = items.order_by("seq").values_list("payload", flat=True)[:ITEMS]
    return [*entries, *((f"memory, {_type(payload)}", payload) for payload in payloads)]


def _type(payload: str) -> str:
    item = json_values.parse_object(payload) or {}
    return str(item.get("type") or item.get("role") or "item")[:40]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
