"""Tool steps and requested replays → tool call rows: which step starts a call, and which call a result ends."""

import hashlib

from conversations.core import principals
from conversations.events import original_times
from conversations.events.payload import ParsedPayload, fields_of
from conversations.events.projections import usage
from conversations.events.projections.open_calls import NO_RESULT, FoldedCall, OpenCalls
from conversations.events.projections.participants import add_speaker
from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges

BAD_STATUSES = {"error": "failed", "failed": "failed", "timeout": "timeout"}


def tool_step(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Start a call or end one; a call of ours that was asked about or requested first goes on from there."""
    if is_call_start(event.payload):
        call = _open_call(changes.open_calls[head.id], event) if event.run and event.payload.tool_call else None
        if call is None:
            start_call(changes, head, event)
        else:
            change(changes, call, "executing")
    else:
        _end_call(changes, head, event)
    add_speaker(changes, head, event)


def is_call_start(payload: ParsedPayload) -> bool:
    """Tell a call from a result; legacy steps have no status, and a result_summary makes a result (§3.1)."""
    if payload.status is not None:
        return payload.status == "start"
    return payload.result_summary is None and payload.output is None and payload.error is None


def start_call(changes: RowChanges, head: ConversationHead, event: EventFacts) -> FoldedCall:
    """Make the row of a call that begins with this event."""
    payload, is_ours = event.payload, event.run is not None
    call_id = payload.tool_call_id
    use = (head.id, event.run, call_id or "")
    nth = changes.uses[use] = changes.uses.get(use, 0) + 1 if call_id else 1
    row = FoldedCall(
        id=payload.tool_call[:64] if is_ours and payload.tool_call else _observed_id(changes, head, event.at),
        conversation_id=head.id,
        run=event.run,
        call_id=call_id,
        nth=nth,
        agent=(payload.agent or payload.speaker.removeprefix("agent:"))[:200],
        name=(payload.name or "")[:200],
        namespace=payload.namespace and payload.namespace[:200],
        lookup_key=payload.lookup_key and payload.lookup_key[:400],
        origin=payload.origin and payload.origin[:40],
        schema=payload.schema and payload.schema[:64],
        called_seq=head.head_seq,
        finished_seq=None,
        status=_status_at_start(event),
        arguments_digest=_digest(payload),
        started_at=event.at,
        duration_ms=None,
        replay_of=payload.replay_of and payload.replay_of[:64],
        qualified_name=_qualified(payload),
        mcp_server=payload.mcp_server and payload.mcp_server[:200],
    )
    head.tool_calls += 1
    if payload.origin != "budget":  # an approval request that stands for no tool (`runs.budgets`)
        usage.add_call(changes, head, row.agent)
    changes.new_calls[row.id] = row
    changes.open_calls[head.id].add(row)
    return row


def _status_at_start(event: EventFacts) -> str:
    """Return the status of a call that begins. One that was imported long after it is over, and has no result until one
    follows; one of a session that is followed while it happens is going on."""
    if principals.is_imported(event.principal):
        first = original_times.of_imported(fields_of(event.body))
        if not original_times.is_followed(event.at, first):
            return NO_RESULT
    return "called" if event.payload.status is None else "executing"


def replay_requested(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Make the row of the new call, which `replay_of` links to the replayed one, before a worker executes it."""
    if event.run is not None and event.payload.tool_call:
        start_call(changes, head, event)


def _end_call(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    payload = event.payload
    row = _open_call(changes.open_calls[head.id], event) or start_call(changes, head, event)
    failed = payload.error is not None and payload.status is None
    row.duration_ms = payload.duration_ms
    row.output_bytes = _size(payload)
    usage.add_time(changes, head, row.agent, row.duration_ms, event.body)
    end(changes, head, row, BAD_STATUSES.get(payload.status or "", "failed" if failed else "done"))
    head.errors += row.status != "done"


def end(changes: RowChanges, head: ConversationHead, row: FoldedCall, status: str) -> None:
    """End a call with the event at the head."""
    row.finished_seq = head.head_seq
    changes.open_calls[head.id].remove(row)
    change(changes, row, status)


def change(changes: RowChanges, row: FoldedCall, status: str) -> None:
    """Give a call another status."""
    row.status = status
    if row.id not in changes.new_calls:
        changes.changed_calls[row.id] = row


def _open_call(open_calls: OpenCalls, event: EventFacts) -> FoldedCall | None:
    """Find the oldest open call this step can end: ours by our id, observed ones by call id, else by name."""
    payload, run = event.payload, event.run
    if run is not None and payload.tool_call:
        row = open_calls.find(payload.tool_call)
        return row if row is not None and row.run == run else None
    return open_calls.oldest(run, payload.tool_call_id, (payload.name or "")[:200])


def _observed_id(changes: RowChanges, head: ConversationHead, at: int) -> str:
    return changes.call_ids.get((head.id, head.head_seq)) or derived_id(at, head.key, head.head_seq)


def derived_id(at: int, key: str, seq: int) -> str:
    """Return the id of an external agent's call: a UUIDv7 in form, of its commit time and place, as in a rebuild."""
    noise = hashlib.sha256(f"{at}\0{key}\0{seq}".encode("utf-8", "surrogatepass")).hexdigest()
    stamp = f"{at // 1000:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7{noise[:3]}-8{noise[3:6]}-{noise[6:18]}"


def _qualified(payload: ParsedPayload) -> str:
    """Return the qualified name: the one told, else namespace and name."""
    name, space = (payload.name or "")[:200], (payload.namespace or "")[:200]
    return (payload.qualified_name or (f"{space}.{name}" if space and space != name else name))[:401]


def _size(payload: ParsedPayload) -> int | None:
    """Return the output's bytes: as stated, else of the JSON that stands for it, of a text without its quotes."""
    if payload.output_bytes is not None:
        return payload.output_bytes
    raw = payload.output if payload.output is not None else payload.result_summary
    if raw is None:
        return None
    text = bytes(raw).strip()
    return len(text) - 2 if text.startswith(b'"') else len(text)


def _digest(payload: ParsedPayload) -> str:
    text = (
        payload.args_raw.encode("utf-8", "surrogatepass")
        if payload.args_raw is not None
        else bytes(payload.args or b"")
    )
    return hashlib.sha256(text).hexdigest()
