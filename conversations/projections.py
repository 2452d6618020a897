"""Event → row deltas (law I). The same fold serves `log.append` and `rebuild`.

| event | messages | tool_calls | errors | else |
|---|---|---|---|---|
| message | +1, unless it repeats an output (design 3.1) | | | participants, last line |
| output | +1 | | | last line; without a run it ends the preview |
| tool_step that starts a call, or ends one that never started | | +1 | | a tool call row |
| tool_step with an error | | | +1 | the call's end |
| conversation.opened, ours or an import's | | | | title; ours: handler, demo |
| anything else | | | | last_at only |

Claims (principals not ours) change counters, participants and observed calls, never a run, a state or a call of ours.
An import names the conversations it makes: a title is a caption, no state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from conversations import principals
from conversations.envelopes import Said

BAD_STATUSES = {"error": "failed", "failed": "failed", "timeout": "timeout"}


@dataclass(slots=True)
class Head:
    """A conversation's row while it is locked: where the history ends and what is folded so far."""

    id: int
    key: str
    head_seq: int = 0
    head_hash: str = ""
    last_at: int = 0
    last_sender: str = ""
    last_line: str = ""
    messages: int = 0
    tool_calls: int = 0
    errors: int = 0
    repeatable: str = ""
    preview_after: int = 0
    title: str = ""
    handler: str = ""
    is_demo: bool = False
    says: Said | None = None  # what was said last, until `settle`

    def settle(self) -> None:
        """Make the caption of what was said last: of a whole batch only that one shows."""
        if self.says is not None:
            self.last_sender = self.says.speaker
            self.last_line = " ".join(self.says.words[:400].split())[:200]
            self.says = None


@dataclass(slots=True)
class CallRow:
    """A tool call's row, as far as the fold writes it."""

    id: str
    conversation_id: int
    run: str | None
    call_id: str | None
    nth: int
    agent: str
    name: str
    namespace: str | None
    lookup_key: str | None
    origin: str | None
    schema: str | None
    called_seq: int
    finished_seq: int | None
    status: str
    arguments_digest: str
    started_at: int
    duration_ms: float | None
    replay_of: str | None


@dataclass(slots=True)
class Fold:
    """What a batch changes beside the heads. `open_calls` holds stored calls that this batch may end."""

    participants: dict[tuple[int, str], str] = field(default_factory=dict)
    named: set[tuple[int, str]] = field(default_factory=set)  # participants whom somebody else spoke to
    met: set[tuple[Any, ...]] = field(default_factory=set)  # who spoke to whom: folded once, however often it is
    made: dict[str, CallRow] = field(default_factory=dict)
    ended: dict[str, CallRow] = field(default_factory=dict)
    open_calls: dict[int, list[CallRow]] = field(default_factory=dict)
    uses: dict[tuple[int, str | None, str], int] = field(default_factory=dict)


Rule = Callable[[Fold, Head, "Facts"], None]


@dataclass(slots=True)
class Facts:
    """One event as the fold sees it: head.head_seq is already its seq."""

    said: Said
    at: int
    principal: str
    run: str | None


def fold(changes: Fold, head: Head, kind: str, facts: Facts) -> None:
    """Fold one event into its conversation's head and the batch's changes. `head.head_seq` is its seq already."""
    repeatable, head.repeatable = head.repeatable, ""
    head.last_at = facts.at
    if kind == "message":
        _message(changes, head, facts, repeatable)
    elif rule := RULES.get(kind):
        rule(changes, head, facts)


def _message(changes: Fold, head: Head, facts: Facts, repeatable: str) -> None:
    said = facts.said
    if not repeats_output(said, repeatable):
        head.messages += 1
    _take_part(changes, head, said)
    head.says = said


def repeats_output(said: Said, repeatable: str) -> bool:
    """Tell whether an envelope repeats an output: it names it, or says its words right after it (design 3.1)."""
    if said.metadata is not None and said.metadata.output_id:
        return True
    return bool(repeatable) and repeatable in (mark_output(said.speaker, said.words), mark_output("", said.words))


def mark_output(speaker: str, words: str) -> str:
    """Answer what identifies an output for an envelope that may repeat it; an unknown speaker matches any."""
    return hashlib.sha256(f"{speaker}\0{words}".encode("utf-8", "surrogatepass")).hexdigest()


def _output(changes: Fold, head: Head, facts: Facts) -> None:
    said = facts.said
    head.messages += 1
    head.repeatable = mark_output(said.speaker, said.words)
    if facts.run is None:
        head.preview_after = head.head_seq
    _take_part(changes, head, said)
    head.says = said


def _user_message(changes: Fold, head: Head, facts: Facts) -> None:
    _take_part(changes, head, facts.said)
    head.says = facts.said


def _control(changes: Fold, head: Head, facts: Facts) -> None:
    _take_part(changes, head, facts.said)


def _opened(changes: Fold, head: Head, facts: Facts) -> None:
    kind = facts.principal.partition(":")[0]
    if kind == "import" or principals.is_ours(facts.principal):
        head.title = (facts.said.title or "")[:200] or head.title
    if principals.is_ours(facts.principal):
        head.handler = (facts.said.handler or "")[:200] or head.handler
        head.is_demo = head.is_demo or bool(facts.said.demo)


def _tool_step(changes: Fold, head: Head, facts: Facts) -> None:
    if starts_call(facts.said):
        _start_call(changes, head, facts)
    else:
        _end_call(changes, head, facts)
    if facts.said.speaker:
        changes.participants[head.id, facts.said.speaker] = kind_of(facts.said.speaker)


def starts_call(said: Said) -> bool:
    """Tell a call from a result; legacy steps have no status, and a result_summary makes a result (design 3.1)."""
    if said.status is not None:
        return said.status == "start"
    return said.result_summary is None and said.output is None and said.error is None


def _start_call(changes: Fold, head: Head, facts: Facts) -> CallRow:
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
    )
    head.tool_calls += 1
    changes.made[row.id] = row
    changes.open_calls.setdefault(head.id, []).append(row)
    return row


def _end_call(changes: Fold, head: Head, facts: Facts) -> None:
    said = facts.said
    row = _open_call(changes.open_calls.get(head.id, []), facts) or _start_call(changes, head, facts)
    changes.open_calls[head.id].remove(row)
    failed = said.error is not None and said.status is None
    row.status = BAD_STATUSES.get(said.status or "", "failed" if failed else "done")
    row.finished_seq, row.duration_ms = head.head_seq, said.duration_ms
    head.errors += row.status != "done"
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


def _digest(said: Said) -> str:
    text = said.args_raw.encode("utf-8", "surrogatepass") if said.args_raw is not None else bytes(said.args or b"")
    return hashlib.sha256(text).hexdigest()


def _take_part(changes: Fold, head: Head, said: Said) -> None:
    meeting = (head.id, said.sender, said.agent, said.recipient)
    if meeting in changes.met:
        return
    changes.met.add(meeting)
    if said.speaker:
        changes.participants[head.id, said.speaker] = kind_of(said.speaker)
    recipient = (said.recipient or "")[:200]
    if recipient and not recipient.startswith("chat:"):
        changes.participants[head.id, recipient] = kind_of(recipient)
        if not _is_same(said.sender or said.agent or "", said.recipient or ""):
            changes.named.add((head.id, recipient))


def _is_same(name: str, other: str) -> bool:
    """Tell whether two names are one agent's: an agent that speaks to itself was named by nobody (design 3.7)."""
    return name.removeprefix("agent:") == other.removeprefix("agent:")


def kind_of(name: str) -> str:
    """Tell what a name on the wire stands for: agent, system or person."""
    if name.startswith("agent:"):
        return "agent"
    return "system" if name == "system" else "person"


RULES: dict[str, Rule] = {
    "output": _output,
    "user_message": _user_message,
    "control": _control,
    "tool_step": _tool_step,
    "conversation.opened": _opened,
}
