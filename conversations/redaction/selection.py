"""Which events a redaction takes: those that were named, what says the same beside them, and all copies in forks."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from django.db.models import Q

from conversations.core.errors import Invalid, NotFound
from conversations.events import payload
from conversations.events.types.redaction import REDACTED
from conversations.models import Annotation, Approval, Conversation, Event, SessionItem, ToolCall

MAX_EVENTS = 500  # of one conversation at once


class Part(NamedTuple):
    """Events of one conversation that lose their words, in order, and what each was."""

    conversation: Conversation
    events: Sequence[tuple[int, str]]  # seq, kind

    @property
    def seqs(self) -> list[int]:
        """Their numbers."""
        return [seq for seq, _ in self.events]

    @property
    def memory(self) -> int:
        """How many items of agents' memory of the conversation go."""
        return SessionItem.objects.filter(conversation=self.conversation.key).count()


def parts_of(key: str, seqs: Collection[int]) -> list[Part]:
    """Return the conversation's part and that of each fork that has copies, by row. Raises NotFound, Invalid."""
    row = Conversation.objects.visible().filter(key=key).first()
    if row is None:
        raise NotFound(f"there is no conversation {key[:80]!r}")
    if not seqs or len(seqs) > MAX_EVENTS:
        raise Invalid(f"must be 1 to {MAX_EVENTS} events; got {len(seqs)}", field="seqs")
    there = set(Event.objects.filter(conversation=row, seq__in=seqs).values_list("seq", flat=True))
    if missing := sorted(set(seqs) - there):
        raise Invalid(f"event {missing[0]} is not in this conversation, which has {row.head_seq:,}", field="seqs")
    parts = [part_of(row, _with_companions(row, there))]
    for part in parts:  # grows: forks of forks
        forks = Conversation.objects.filter(parent=part.conversation, copied_seq__gte=min(part.seqs, default=1 << 62))
        parts += [part_of(fork, [seq for seq in part.seqs if seq <= fork.copied_seq]) for fork in forks]
    return sorted((part for part in parts if part.events), key=lambda part: part.conversation.pk)


def part_of(conversation: Conversation, seqs: Collection[int]) -> Part:
    """Return those of the events that still say something."""
    rows = Event.objects.filter(conversation=conversation, seq__in=seqs, salt__isnull=False).exclude(kind=REDACTED)
    return Part(conversation, list(rows.order_by("seq").values_list("seq", "kind")))


def _with_companions(row: Conversation, seqs: set[int]) -> set[int]:
    """Add what says the same: a call's other events, the parts of an answer, an envelope that repeats an output, and
    what people noted about it."""
    events = Event.objects.filter(conversation=row)
    calls = ToolCall.objects.filter(Q(called_seq__in=seqs) | Q(finished_seq__in=seqs), conversation=row)
    more = set(seqs)
    for id_, called, finished in calls.values_list("id", "called_seq", "finished_seq"):
        questions = Approval.objects.filter(tool_call=id_).values_list("asked_seq", "decided_seq")
        more |= {seq for seq in (called, finished, *(seq for pair in questions for seq in pair)) if seq}
    for output in events.filter(seq__in=seqs, kind="output"):
        more |= set(_tokens_of(row, output))
    spoken = events.filter(seq__in=more).exclude(kind="token").values_list("seq", "body")
    for seq, body in list(spoken):
        words = payload.parse(body.encode()).words
        near = events.filter(seq__in=(seq - 1, seq + 1)).values_list("seq", "body") if words else ()
        more |= {other for other, text in near if payload.parse(text.encode()).words == words}
    return more | set(Annotation.objects.filter(conversation=row, about__in=more).values_list("seq", flat=True))


def _tokens_of(row: Conversation, output: Event) -> Sequence[int]:
    tokens = Event.objects.filter(conversation=row, kind="token", seq__lt=output.seq, run=output.run)
    if output.run is not None:
        return list(tokens.filter(turn=output.turn).values_list("seq", flat=True))
    before = Event.objects.filter(conversation=row, kind="output", seq__lt=output.seq, run=None).order_by("-seq")
    return list(tokens.filter(seq__gt=before.values_list("seq", flat=True).first() or 0).values_list("seq", flat=True))
