"""Event → row deltas (law I). The same fold serves `log.append` and `rebuild`.

| event | messages | tool_calls | errors | else |
|---|---|---|---|---|
| message | +1, unless it repeats an output (design 3.1) | | | participants, last line |
| output | +1 | | | last line, unless it is of a run inside a call; without a run it ends the preview |
| tool_step that starts a call, or ends one that never started | | +1 | | a tool call row |
| tool_step with an error | | | +1 | the call's end |
| conversation.opened, ours or an import's | | | | title; ours: handler, demo, parent |
| conversation.paused, resumed, taken_over, handed_back, ours | | | | state, owner (`control`) |
| response.received | | | | participants, last line |
| model.turn, ours; an output without a run that tells what it spent | | | | a turn's row (`turns`) |
| response.completed, ours | | | | its response row's end (`responses`) |
| conversation.forked | | | | title, handler, parent, which events are copies (`forks`) |
| a fork's copy of the above: only what the first two lines and response.received fold | | | | |
| anything else | | | | last_at only |

Claims (principals not ours) change counters, participants and observed calls, never a run, a state or a call of ours.
An import names the conversations it makes: a title is a caption, no state.
"""

from __future__ import annotations

import hashlib

from conversations import principals
from conversations.envelopes import Said
from conversations.projections import calls, control, forks, responses, runs, turns
from conversations.projections.participants import kind_of, take_part
from conversations.projections.state import (
    ApprovalRow,
    CallRow,
    Decision,
    Facts,
    Fold,
    Head,
    ResponseRow,
    Rule,
    RunRow,
    RunStep,
    TurnRow,
)

__all__ = [
    "ApprovalRow",
    "CallRow",
    "Decision",
    "Facts",
    "Fold",
    "Head",
    "ResponseRow",
    "RunRow",
    "RunStep",
    "TurnRow",
    "fold",
    "kind_of",
    "mark_output",
    "repeats_output",
    "starts_call",
]

starts_call = calls.starts_call
INSIDE = '"parent_call":'  # in a body of ours; within a text its quotes would be escaped


def fold(changes: Fold, head: Head, kind: str, facts: Facts) -> None:
    """Fold one event into its conversation's head and the batch's changes. `head.head_seq` is its seq already."""
    repeatable, head.repeatable = head.repeatable, ""
    head.last_at = facts.at
    if kind == "message":
        _message(changes, head, facts, repeatable)
    elif head.head_seq <= head.copied_seq and kind not in forks.COPIED:
        _copied(changes, head, facts)
    elif rule := RULES.get(kind):
        rule(changes, head, facts)


def _message(changes: Fold, head: Head, facts: Facts, repeatable: str) -> None:
    said = facts.said
    if not repeats_output(said, repeatable):
        head.messages += 1
    take_part(changes, head, said)
    head.says, head.says_by = said, facts.principal


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
        if head.head_seq > head.copied_seq:  # what a fork's copy spent was spent there
            turns.observed(changes, head, facts)
    take_part(changes, head, said)
    if facts.run is None or INSIDE not in facts.body:
        head.says, head.says_by = said, facts.principal


def _user_message(changes: Fold, head: Head, facts: Facts) -> None:
    take_part(changes, head, facts.said)
    head.says, head.says_by = facts.said, facts.principal


def _copied(changes: Fold, head: Head, facts: Facts) -> None:
    """Fold a fork's copy that says nothing: of what was done there only who took part is told here."""
    if facts.said.event == "tool_step" and facts.said.speaker:
        changes.participants[head.id, facts.said.speaker] = kind_of(facts.said.speaker)


def _control(changes: Fold, head: Head, facts: Facts) -> None:
    take_part(changes, head, facts.said)


def _opened(changes: Fold, head: Head, facts: Facts) -> None:
    kind = facts.principal.partition(":")[0]
    if kind == "import" or principals.is_ours(facts.principal):
        head.title = (facts.said.title or "")[:200] or head.title
    if principals.is_ours(facts.principal):
        head.handler = (facts.said.handler or "")[:200] or head.handler
        head.is_demo = head.is_demo or bool(facts.said.demo)
        forks.opened(changes, head, facts)


RULES: dict[str, Rule] = {
    "output": _output,
    "user_message": _user_message,
    "control": _control,
    "tool_step": calls.tool_step,
    "conversation.opened": _opened,
    "conversation.forked": forks.forked,
    **control.RULES,
    **runs.RULES,
    "model.turn": turns.ours,
    **responses.RULES,
}
