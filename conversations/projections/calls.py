"""Tool steps → tool call rows: which step starts a call, and which call a result ends."""

import hashlib

from conversations.envelopes import Said
from conversations.projections.participants import kind_of
from conversations.projections.state import CallRow, Facts, Fold, Head

BAD_STATUSES = {"error": "failed", "failed": "failed", "timeout": "timeout"}


def tool_step(changes: Fold, head: Head, facts: Facts) -> None:
    """Start a call or end one; a call of ours that was asked about first goes on from there."""
    if starts_call(facts.said):
        asked = _open_call(changes.open_calls.get(head.id, []), facts) if facts.run and facts.said.tool_call else None
        if asked is None:
            start_call(changes, head, facts)
        else:
            change(changes, asked, "executing")
    else:
        _end_call(changes, head, facts)
    if facts.said.speaker:
        changes.participants[head.id, facts.said.speaker] = kind_of(facts.said.speaker)


def starts_call(said: Said) -> bool:
    """Tell a call from a result; legacy steps have no status, and a result_summary makes a result (design 3.1)."""
    if said.status is not None:
        return said.status == "start"
    return said.result_summary is None and said.output is None and said.error is None


def start_call(changes: Fold, head: Head, facts: Facts) -> CallRow:
    """Make the row of a call that begins with this event."""
    said, is_ours = facts.said, facts.run is not None
    call_id = said.tool_call_id
    use = (head.id, facts.run, call_id or "")
    nth = changes.uses[use] = changes.uses.get(use, 0) + 1 if call_id else 1
    row = CallRow(
        id=said.tool_call[:64] if is_ours and said.tool_call else _derived_id(facts.at, head.key, head.head_seq),
        conversation_id=head.id,
        run=facts.run,
        call_id=call_id,
        nth=nth,
        agent=(said.agent or said.speaker.removeprefix("agent:"))[:200],
        name=(said.name or "")[:200],
        namespace=said.namespace and said.namespace[:200],
        lookup_key=said.lookup_key and said.lookup_key[:400],
        origin=said.origin and said.origin[:40],
        schema=said.schema and said.schema[:64],
        called_seq=head.head_seq,
        finished_seq=None,
        status="called" if said.status is None else "executing",
        arguments_digest=_digest(said),
        started_at=facts.at,
        duration_ms=None,
        replay_of=said.replay_of and said.replay_of[:64],
        qualified_name=_qualified(said),
        mcp_server=said.mcp_server and said.mcp_server[:200],
    )
    head.tool_calls += 1
    changes.made[row.id] = row
    changes.open_calls.setdefault(head.id, []).append(row)
    return row


def _end_call(changes: Fold, head: Head, facts: Facts) -> None:
    said = facts.said
    row = _open_call(changes.open_calls.get(head.id, []), facts) or start_call(changes, head, facts)
    failed = said.error is not None and said.status is None
    row.duration_ms = said.duration_ms
    row.output_bytes = _size(said)
    end(changes, head, row, BAD_STATUSES.get(said.status or "", "failed" if failed else "done"))
    head.errors += row.status != "done"


def end(changes: Fold, head: Head, row: CallRow, status: str) -> None:
    """End a call with the event at the head."""
    row.finished_seq = head.head_seq
    changes.open_calls[head.id].remove(row)
    change(changes, row, status)


def change(changes: Fold, row: CallRow, status: str) -> None:
    """Give a call another status."""
    row.status = status
    if row.id not in changes.made:
        changes.ended[row.id] = row


def _open_call(open_calls: list[CallRow], facts: Facts) -> CallRow | None:
    """Find the oldest open call this step can end: ours by our id, observed ones by call id, else by name."""
    said, run = facts.said, facts.run
    for row in open_calls:
        if row.run != run:
            continue
        if run is not None and said.tool_call:
            if row.id == said.tool_call:
                return row
        elif row.call_id == said.tool_call_id and (row.call_id is not None or row.name == (said.name or "")[:200]):
            return row
    return None


def _derived_id(at: int, key: str, seq: int) -> str:
    """Answer a foreign call's id: a UUIDv7 in form, made from its commit time and place: rebuild makes it again."""
    noise = hashlib.sha256(f"{at}\0{key}\0{seq}".encode("utf-8", "surrogatepass")).hexdigest()
    stamp = f"{at // 1000:012x}"
    return f"{stamp[:8]}-{stamp[8:]}-7{noise[:3]}-8{noise[3:6]}-{noise[6:18]}"


def _qualified(said: Said) -> str:
    """Answer the qualified name: the one told, else namespace and name."""
    name, space = (said.name or "")[:200], (said.namespace or "")[:200]
    return (said.qualified_name or (f"{space}.{name}" if space and space != name else name))[:401]


def _size(said: Said) -> int | None:
    """Answer the output's bytes: as told, else of the JSON that stands for it, of a text without its quotes."""
    if said.output_bytes is not None:
        return said.output_bytes
    raw = said.output if said.output is not None else said.result_summary
    if raw is None:
        return None
    text = bytes(raw).strip()
    return len(text) - 2 if text.startswith(b'"') else len(text)


def _digest(said: Said) -> str:
    text = said.args_raw.encode("utf-8", "surrogatepass") if said.args_raw is not None else bytes(said.args or b"")
    return hashlib.sha256(text).hexdigest()
