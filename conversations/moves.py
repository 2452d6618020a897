"""What was said and done in a conversation or one run, as a sequence to compare: the first divergence of two of them.

Ids and times are left out; a call is one move with its arguments and its output, however late that came. What happened
inside a call is the call's: it shows in its output. Called by the compare page.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import msgspec

from conversations import log
from conversations.envelopes import Said, read
from conversations.errors import NotFound, SwitchboardError
from conversations.log import Stored
from conversations.models import Conversation, Run
from conversations.projections import starts_call
from conversations.responses import words_of

MOST_EVENTS = 5_000  # of each side, after what they share
MOST_LOOKED = 20_000  # of them and of other runs between them
MOST_BYTES = 8 << 20  # of all that is looked at
BEFORE = 3  # equal moves shown before the first difference
AFTER = 120  # moves of each side shown from there on
ENDS = ("run.failed", "run.cancelled", "run.interrupted", "run.incompatible")
SAYING = ("message", "user_message", "output", "response.received")
CONTEXT = 40  # events read before the end of what is shared


class Move(NamedTuple):
    """One step. `key` is what is compared: the same key, the same move."""

    seq: int
    kind: str  # said, call, decision, handoff, end
    who: str
    name: str  # of the tool, or to whom
    words: str
    """what was said, or the arguments as JSON"""
    outcome: str = ""
    """of a call: what came of it, as JSON or text"""

    @property
    def key(self) -> tuple[str, ...]:
        """Answer all but the place."""
        return self[1:]


class Side(NamedTuple):
    """What is compared: a whole conversation, or one of its runs."""

    conversation: Conversation
    run: Run | None

    @property
    def name(self) -> str:
        """Answer how an address names it."""
        return f"{self.conversation.key}@{self.run.id}" if self.run else self.conversation.key


class Pair(NamedTuple):
    """A row of the comparison. `parts` names what differs of two moves of one kind."""

    left: Move | None
    right: Move | None
    is_same: bool
    parts: tuple[str, ...]


class Comparison(NamedTuple):
    """Two sequences side by side, from shortly before the first difference on."""

    pairs: list[Pair]
    same: int
    """moves before the first difference, of those that were compared"""
    shared: int
    """events that one side has copied from the other, or both from the same"""
    is_divided: bool
    is_cut: bool
    """whether one side goes on beyond what was read"""
    left_over: tuple[int, int]
    """moves of each side that are not shown"""


def side_of(name: str) -> Side:
    """Find what `CONVERSATION` or `CONVERSATION@RUN` names. Raises `NotFound`."""
    visible = Conversation.objects.visible().select_related("parent")
    if (found := visible.filter(key=name).first()) is not None:
        return Side(found, None)
    key, _, run_id = name.rpartition("@")
    run = Run.objects.filter(id=run_id, conversation__key=key).first()
    found = visible.filter(key=key).first()
    if run is None or found is None:
        raise NotFound(f"No conversation or run is called {name[:80]!r}. Give a conversation's id, or id@run.")
    return Side(found, run)


def compare(left: Side, right: Side) -> Comparison:
    """Find where two sides part."""
    shared = _shared(left, right)
    mine, is_cut = _moves(left, shared)
    yours, is_cut_too = _moves(right, shared)
    same = 0
    while same < min(len(mine), len(yours)) and mine[same].key == yours[same].key:
        same += 1
    start = max(0, same - BEFORE)
    some, others = mine[start : same + AFTER], yours[start : same + AFTER]
    over = len(mine) - start - len(some), len(yours) - start - len(others)
    is_divided = same < max(len(mine), len(yours))
    return Comparison(list(_aligned(some, others)), same, shared, is_divided, is_cut or is_cut_too, over)


def _shared(left: Side, right: Side) -> int:
    """Answer how many events two conversations have in common by copying; none where runs are compared."""
    if left.run is not None or right.run is not None:
        return 0
    one, other = left.conversation, right.conversation
    if other.parent_id == one.pk:
        return other.copied_seq
    if one.parent_id == other.pk:
        return one.copied_seq
    is_of_one = one.parent_id is not None and one.parent_id == other.parent_id
    return min(one.copied_seq, other.copied_seq) if is_of_one else 0


def _moves(side: Side, shared: int) -> tuple[list[Move], bool]:
    """Read one side's moves; whether there is more than was read."""
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
        if after < last and (len(events) >= MOST_EVENTS or size > MOST_BYTES or looked >= MOST_LOOKED):
            cut = True
            break
    asked = log.read_after(key, side.run.input_seq - 1, 1) if side.run else []
    return list(_Reader(key).moves([*asked, *events])), cut


class _Reader:
    """Makes moves of events."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._moves: list[Move] = []
        self._open: dict[str, int] = {}  # calls without an outcome: their places

    def moves(self, events: Sequence[Stored]) -> list[Move]:
        """Answer the moves, in the order in which they were begun."""
        for event in events:
            try:
                said, body = read(event.body.encode("utf-8", "replace")), msgspec.json.decode(event.body)
            except (SwitchboardError, msgspec.DecodeError, RecursionError):
                continue
            if isinstance(body, dict) and not body.get("parent_call"):
                self._take(event, said, body)
        return self._moves

    def _take(self, event: Stored, said: Said, body: dict[str, Any]) -> None:
        kind = event.kind
        if kind in SAYING:
            words = words_of(body.get("input")) if kind == "response.received" else said.words
            self._moves.append(Move(event.seq, "said", said.speaker, self._recipient(said), words))
        elif kind in ("tool_step", "approval.requested"):
            self._step(event, said)
        elif kind == "approval.decided":
            told = {name: body[name] for name in ("message", "output", "args_raw") if body.get(name)}
            words = _json(told) if told else ""
            self._moves.append(Move(event.seq, "decision", "", str(body.get("decision", ""))[:40], words))
        elif kind == "agent.handoff":
            who, to = (str(body.get(name, ""))[:200] for name in ("from_agent", "to_agent"))
            self._moves.append(Move(event.seq, "handoff", f"agent:{who}", f"agent:{to}", ""))
        elif kind in ENDS:
            self._moves.append(
                Move(event.seq, "end", said.speaker, kind.partition(".")[2], str(body.get("error") or ""))
            )

    def _recipient(self, said: Said) -> str:
        """Answer to whom; the conversation's own topic is the same everywhere."""
        here = f"chat:{self._key}", f"chat:{said.conversation_id}"
        return "" if said.recipient in here else said.recipient or ""

    def _step(self, event: Stored, said: Said) -> None:
        name = said.tool_call or (f"id {said.tool_call_id}" if said.tool_call_id else f"name {said.name}")
        if event.kind == "approval.requested" or starts_call(said):
            if name not in self._open or not said.tool_call:
                self._begin(name, event, said)
            return
        if name not in self._open:
            self._begin(name, event, said)
        place = self._open.pop(name)
        self._moves[place] = self._moves[place]._replace(outcome=_outcome(said))

    def _begin(self, name: str, event: Stored, said: Said) -> None:
        self._open[name] = len(self._moves)
        raw = bytes(said.args) if said.args is not None else (said.args_raw or "").encode("utf-8", "replace")
        self._moves.append(Move(event.seq, "call", said.speaker, said.name or "", _canonical(raw)))


def _outcome(said: Said) -> str:
    raw = next((value for value in (said.error, said.output, said.result_summary) if value is not None), None)
    word = "" if said.error is None and said.status in (None, "success") else f"{said.status or 'error'}: "
    return word + (_canonical(bytes(raw)) if raw is not None else said.status or "")


def _canonical(raw: bytes) -> str:
    """Write JSON the one way, so that order and spaces make no difference; a text of JSON as what it holds."""
    try:
        value = msgspec.json.decode(raw) if raw else {}
    except (msgspec.DecodeError, RecursionError):
        return raw.decode("utf-8", "replace")
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=1).decode()


def _aligned(left: Sequence[Move], right: Sequence[Move]) -> Iterator[Pair]:
    """Put two sequences side by side: what is the same beside itself, what is not in the order in which it came."""
    matcher = SequenceMatcher(None, [m.key for m in left], [m.key for m in right], autojunk=False)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        for n in range(max(i_end - i, j_end - j)):
            one = left[i + n] if i + n < i_end else None
            other = right[j + n] if j + n < j_end else None
            is_same = one is not None and other is not None and one.key == other.key
            yield Pair(one, other, is_same, _parts(one, other))


def _parts(one: Move | None, other: Move | None) -> tuple[str, ...]:
    if one is None or other is None or one.kind != other.kind:
        return ()
    words = {"who": "who", "name": "tool" if one.kind == "call" else "to whom"}
    words |= {"words": "arguments" if one.kind == "call" else "words", "outcome": "output"}
    return tuple(word for field, word in words.items() if getattr(one, field) != getattr(other, field))
