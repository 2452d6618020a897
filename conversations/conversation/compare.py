"""Turn a conversation or a run into comparable steps, and find where two of them diverge.

Ids, times and replays are ignored; a call is one step with the arguments that it ran with and its output, however late
that came. What happened inside a call belongs to the call, as its output shows it. Called by the compare page.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import msgspec

from conversations.core import principals
from conversations.core.errors import NotFound, SwitchboardError
from conversations.core.json_diff import paired
from conversations.events import log, recorded_arguments, registry
from conversations.events.log import Stored
from conversations.events.payload import ParsedPayload, decoded, parse
from conversations.events.projections import is_call_start
from conversations.events.response_ids import words_of
from conversations.models import Conversation, Run

MAX_EVENTS = 5_000  # of each side, after what they share
MAX_LOOKED = 20_000  # of them and of other runs between them
MAX_BYTES = 8 << 20  # of all that is looked at
BEFORE = 3  # equal moves shown before the first difference
AFTER = 120  # moves of each side shown from there on
ENDS = registry.bad_run_ends()
SPEECH = registry.names_with("speech")
LABELS = {  # what differs between two steps of a kind, by field
    "said": {"who": "sender", "name": "recipient", "words": "text"},
    "call": {"who": "agent", "name": "tool", "words": "arguments", "outcome": "output"},
    "decision": {"who": "decided by", "name": "decision", "words": "reason"},
    "handoff": {"who": "from", "name": "to"},
    "end": {"who": "agent", "name": "outcome", "words": "error"},
}
CONTEXT = 40  # events read before the end of what is shared


class ComparedStep(NamedTuple):
    """One step. Steps with equal `key` are equal."""

    seq: int
    kind: str  # said, call, decision, handoff, end
    who: str
    name: str  # of the tool, or to whom, or the decision
    words: str
    """what was said, the arguments as JSON, or the text of a decision"""
    outcome: str = ""
    """of a call: what came of it, as JSON or text"""
    is_edited: bool = False
    """of a call: a person changed its arguments before it ran"""
    principal: str = ""
    """of what a person said or decided: whose event it is"""

    @property
    def key(self) -> tuple[str, ...]:
        """Return everything that is compared."""
        return self.kind, self.who, self.name, self.words, self.outcome


class ComparedSide(NamedTuple):
    """One side of a comparison: a whole conversation, or one of its runs."""

    conversation: Conversation
    run: Run | None

    @property
    def name(self) -> str:
        """Return the side as addresses write it: `CONVERSATION` or `CONVERSATION@RUN`."""
        return f"{self.conversation.key}@{self.run.id}" if self.run else self.conversation.key


class StepPair(NamedTuple):
    """A row of the comparison. `parts` names the differences between two steps of one kind."""

    first: ComparedStep | None
    second: ComparedStep | None
    is_same: bool
    parts: tuple[str, ...]


class Comparison(NamedTuple):
    """Two sequences side by side, from shortly before the first difference."""

    pairs: list[StepPair]
    same: int
    """moves before the first difference, of those that were compared"""
    shared: int
    """events that one side has copied from the other, or both from the same"""
    is_divided: bool
    is_cut: bool
    """whether one side goes on beyond what was read"""
    left_over: tuple[int, int]
    """moves of each side that are not shown"""


def side_of(name: str) -> ComparedSide:
    """Parse `CONVERSATION` or `CONVERSATION@RUN`. Raises NotFound."""
    visible = Conversation.objects.visible().select_related("parent")
    if (conversation := visible.filter(key=name).first()) is not None:
        return ComparedSide(conversation, None)
    key, _, run_id = name.rpartition("@")
    run = Run.objects.filter(id=run_id, conversation__key=key).first()
    conversation = visible.filter(key=key).first()
    if run is None or conversation is None:
        raise NotFound(f"There is no conversation or run {name[:80]!r}. Enter a conversation ID, or ID@RUN.")
    return ComparedSide(conversation, run)


def compare(left: ComparedSide, right: ComparedSide) -> Comparison:
    """Compare two sides and find where they diverge."""
    shared = _shared(left, right)
    mine, is_cut = _moves(left, shared)
    yours, is_cut_too = _moves(right, shared)
    same = 0
    while same < min(len(mine), len(yours)) and mine[same].key == yours[same].key:
        same += 1
    start = max(0, same - BEFORE)
    steps, others = mine[start : same + AFTER], yours[start : same + AFTER]
    over = len(mine) - start - len(steps), len(yours) - start - len(others)
    is_divided = same < max(len(mine), len(yours))
    return Comparison(list(_aligned(steps, others)), same, shared, is_divided, is_cut or is_cut_too, over)


def _shared(left: ComparedSide, right: ComparedSide) -> int:
    """Return how many events two conversations share because they were copied; 0 if runs are compared."""
    if left.run is not None or right.run is not None:
        return 0
    conversation, other = left.conversation, right.conversation
    if other.parent_id == conversation.pk:
        return other.copied_seq
    if conversation.parent_id == other.pk:
        return conversation.copied_seq
    is_of_one = conversation.parent_id is not None and conversation.parent_id == other.parent_id
    return min(conversation.copied_seq, other.copied_seq) if is_of_one else 0


def _moves(side: ComparedSide, shared: int) -> tuple[list[ComparedStep], bool]:
    """Read one side's steps; return also whether there are more than were read."""
    events, size, looked, cut = [], 0, 0, False
    key = side.conversation.key
    after = side.run.queued_seq - 1 if side.run else max(0, shared - CONTEXT)
    last = (side.run.ended_seq if side.run else None) or side.conversation.head_seq
    while after < last:
        page = log.read_told(key, after)
        if not page:
            break
        after = page[-1].seq
        events += [e for e in page if e.seq <= last and (side.run is None or e.run == side.run.id)]
        looked += len(page)
        size += sum(len(e.body) for e in page)
        if after < last and (len(events) >= MAX_EVENTS or size > MAX_BYTES or looked >= MAX_LOOKED):
            cut = True
            break
    inputs = log.read_after(key, side.run.input_seq - 1, 1) if side.run else []
    replays = Run.objects.filter(conversation=side.conversation, kind="replay").values_list("id", flat=True)
    return list(_Reader(key, None if side.run else set(replays)).moves([*inputs, *events])), cut


class _Reader:
    """Turns events into steps, except for those of replays (`replays`: their runs so far known; None: keep them)."""

    def __init__(self, key: str, replays: set[str] | None) -> None:
        self._key, self._replays = key, replays
        self._moves: list[ComparedStep] = []
        self._calls: dict[str, int] = {}  # our calls: their places
        self._open: dict[str, int] = {}  # calls without an outcome: their places

    def moves(self, events: Sequence[Stored]) -> list[ComparedStep]:
        """Return the steps, in the order in which they began."""
        for event in events:
            try:
                text = event.body.encode("utf-8", "replace")
                payload, body = parse(text), decoded(text)
            except (SwitchboardError, ValueError):
                continue
            if isinstance(body, dict) and not body.get("parent_call") and not self._is_of_replay(event, body):
                self._take(event, payload, body)
        return self._moves

    def _take(self, event: Stored, payload: ParsedPayload, body: dict[str, Any]) -> None:
        kind = event.kind
        if kind in SPEECH:
            text = words_of(body.get("input")) if kind == "response.received" else payload.words
            self._moves.append(
                ComparedStep(
                    event.seq, "said", payload.speaker, self._recipient(payload), text, principal=event.principal
                )
            )
        elif kind in ("tool_step", "approval.requested"):
            self._step(event, payload)
        elif kind == "approval.decided":
            self._decide(event, body)
        elif kind == "agent.handoff":
            who, to = (str(body.get(name, ""))[:200] for name in ("from_agent", "to_agent"))
            self._moves.append(ComparedStep(event.seq, "handoff", f"agent:{who}", f"agent:{to}", ""))
        elif kind in ENDS:
            self._moves.append(
                ComparedStep(event.seq, "end", payload.speaker, kind.partition(".")[2], str(body.get("error") or ""))
            )

    def _is_of_replay(self, event: Stored, body: dict[str, Any]) -> bool:
        """Return whether an event of ours belongs to a replay that is left out; a fork has copies of replays, but not
        their runs."""
        if self._replays is None or not principals.is_ours(event.principal):
            return False
        run = str(body.get("run_id") or event.run or "")
        if event.kind == "replay.requested":
            self._replays.add(run)
        return run in self._replays

    def _decide(self, event: Stored, body: dict[str, Any]) -> None:
        """Add a decision, and have the call show the arguments that a person entered."""
        by = principals.doer(event.principal, str(body.get("rule_by") or body.get("by") or ""))
        words = "\n".join(str(body[name]) for name in ("message", "output") if body.get(name))
        self._moves.append(
            ComparedStep(event.seq, "decision", by, str(body.get("decision", ""))[:40], words, principal=by)
        )
        index, text = self._calls.get(str(body.get("tool_call"))), recorded_arguments.edited(body)
        if index is not None and text is not None:
            words = _canonical(text.encode("utf-8", "replace"))
            self._moves[index] = self._moves[index]._replace(words=words, is_edited=True)

    def _recipient(self, payload: ParsedPayload) -> str:
        """Return the recipient; the conversation's own topic is the same in every conversation."""
        here = f"chat:{self._key}", f"chat:{payload.conversation_id}"
        return "" if payload.recipient in here else payload.recipient or ""

    def _step(self, event: Stored, payload: ParsedPayload) -> None:
        name = payload.tool_call or (f"id {payload.tool_call_id}" if payload.tool_call_id else f"name {payload.name}")
        if event.kind == "approval.requested" or is_call_start(payload):
            if name not in self._open or not payload.tool_call:
                self._begin(name, event, payload)
            return
        if name not in self._open:
            self._begin(name, event, payload)
        index = self._open.pop(name)
        self._moves[index] = self._moves[index]._replace(outcome=_outcome(payload))

    def _begin(self, name: str, event: Stored, payload: ParsedPayload) -> None:
        self._open[name] = len(self._moves)
        if payload.tool_call:
            self._calls[payload.tool_call] = len(self._moves)
        raw = bytes(payload.args) if payload.args is not None else (payload.args_raw or "").encode("utf-8", "replace")
        self._moves.append(ComparedStep(event.seq, "call", payload.speaker, payload.name or "", _canonical(raw)))


def _outcome(payload: ParsedPayload) -> str:
    raw = next((value for value in (payload.error, payload.output, payload.result_summary) if value is not None), None)
    word = "" if payload.error is None and payload.status in (None, "success") else f"{payload.status or 'error'}: "
    return word + (_canonical(bytes(raw)) if raw is not None else payload.status or "")


def _canonical(raw: bytes) -> str:
    """Write JSON in canonical form, so that order and spaces do not matter; JSON inside a text is parsed."""
    try:
        value = decoded(raw) if raw else {}
    except (ValueError, RecursionError):
        return raw.decode("utf-8", "replace")
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1).decode()


def _aligned(left: Sequence[ComparedStep], right: Sequence[ComparedStep]) -> Iterator[StepPair]:
    """Align two sequences: equal steps beside each other, others in their order."""
    matcher = SequenceMatcher(None, [m.key for m in left], [m.key for m in right], autojunk=False)
    for i, j in paired(matcher.get_opcodes()):
        step, other = (None if i is None else left[i]), (None if j is None else right[j])
        is_same = step is not None and other is not None and step.key == other.key
        yield StepPair(step, other, is_same, _parts(step, other))


def _parts(step: ComparedStep | None, other: ComparedStep | None) -> tuple[str, ...]:
    if step is None or other is None or step.kind != other.kind:
        return ()
    return tuple(word for field, word in LABELS[step.kind].items() if getattr(step, field) != getattr(other, field))
