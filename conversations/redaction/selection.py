"""Which events a redaction takes: those that were named, what says the same beside them, and all copies: in forks, and
in conversations that were moved here.

Of a tool call it may be one field; of a person it is what they said, what was said to them, and what names them.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import NamedTuple

from django.db import connection
from django.db.models import Q

from conversations.access.action_context import find_conversation
from conversations.core.errors import Invalid, NotFound
from conversations.core.plain_text import short_title
from conversations.events import payload
from conversations.events.log import bounded_reads
from conversations.events.types.redaction import FIELD_MARK, ID_ERASED, REDACTED
from conversations.models import Annotation, Approval, Conversation, Event, ToolCall
from conversations.redaction import call_field
from conversations.telemetry import late_names
from conversations.telemetry.late_names import MOVED

NO_WORDS = (REDACTED, MOVED, ID_ERASED)  # these stay: they say what became of others
MAX_EVENTS = 500  # of one conversation at once
MAX_OF_PERSON = 20_000  # events at once
SAYS_SOMETHING = Q(erased_by=None) | Q(erased_by__startswith=FIELD_MARK)
_OF_PERSON = """SELECT e.conversation_id,e.seq FROM conversations_event e JOIN conversations_conversation c
ON c.id=e.conversation_id WHERE NOT c.is_staged AND e.kind<>%s AND (e.erased_by IS NULL OR e.erased_by LIKE %s)
AND ({}) ORDER BY e.conversation_id,e.seq LIMIT %s"""
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


class Part(NamedTuple):
    """Events of one conversation that lose their words, in order, and what each was."""

    conversation: Conversation
    events: Sequence[tuple[int, str]]  # seq, kind

    @property
    def seqs(self) -> list[int]:
        """Their numbers."""
        return [seq for seq, _ in self.events]


def range_of(text: str, most: int) -> range | None:
    """Return the numbers that `7` or `5-7` means; None for anything else, and for more than `most`."""
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    return range(first, last + 1) if 0 <= last - first < most else None


def parts_of(key: str, seqs: Collection[int]) -> list[Part]:
    """Return the conversation's part and that of each fork that has copies, by row. Raises NotFound, Invalid."""
    row = find_conversation(key)
    if not seqs or len(seqs) > MAX_EVENTS:
        raise Invalid(f"must be 1 to {MAX_EVENTS} events; got {len(seqs)}", field="seqs")
    there = set(Event.objects.filter(conversation=row, seq__in=seqs).values_list("seq", flat=True))
    if missing := sorted(set(seqs) - there):
        raise Invalid(f"event {missing[0]} is not in this conversation, which has {row.head_seq:,}", field="seqs")
    return _with_copies(part_of(row, _with_companions(row, there)))


def parts_of_call(call_id: str, field: str) -> list[Part]:
    """Return the same of a tool call: all of it, or the events that say what stands in a field of it. Raises NotFound,
    Invalid."""
    call = ToolCall.objects.select_related("conversation").filter(pk=call_id).first()
    if call is None:
        raise NotFound("there is no such tool call")
    part = part_of(call.conversation, _with_companions(call.conversation, {call.called_seq}))
    if field:
        part = part._replace(events=[(seq, kind) for seq, kind in part.events if seq in _without(part, field)])
        if not part.events:
            raise Invalid(f"the tool call has no value in {field}", field="field")
    return _with_copies(part, field)


def events_of_person(name: str, words: Sequence[str]) -> dict[Conversation, list[int]]:
    """Return, by conversation, what a person said and was told, and what has one of these words in any case.
    Raises Invalid for words that are too short, and where it is too much at once."""
    if not name and not words:
        raise Invalid("must name a person or words", field="person")
    if any(len(word) < call_field.SHORTEST for word in words):
        raise Invalid(f"must have at least {call_field.SHORTEST} characters each", field="words")
    like = "ILIKE" if connection.vendor == "postgresql" else "LIKE"
    forms = {form for word in words for form in call_field.spellings_of_word(word)}
    patterns = [f"%{_escaped(form)}%" for form in sorted(forms)]
    conditions = [f"e.body {like} %s ESCAPE '!'"] * len(patterns)
    for form in sorted(call_field.spellings(name)) if name else ():
        conditions += ["e.principal=%s", "e.body LIKE %s ESCAPE '!'"]
        patterns += [f"user:{form}", f'%"user:{_escaped(form)}"%']
    with connection.cursor() as cursor:
        values: list[str | int] = [REDACTED, f"{FIELD_MARK}%", *patterns, MAX_OF_PERSON + 1]
        cursor.execute(_OF_PERSON.format(" OR ".join(conditions)), values)
        rows = cursor.fetchall()
    if len(rows) > MAX_OF_PERSON:
        raise Invalid(f"more than {MAX_OF_PERSON:,} events match: use rarer words", field="words")
    of = Conversation.objects.in_bulk({conversation for conversation, _ in rows})
    seqs_of: dict[Conversation, list[int]] = {}
    for conversation, seq in rows:
        seqs_of.setdefault(of[conversation], []).append(seq)
    return seqs_of


def _escaped(text: str) -> str:
    return "".join(f"!{sign}" if sign in "!%_" else sign for sign in text)


def _without(part: Part, field: str) -> Collection[int]:
    bodies = Event.objects.filter(conversation=part.conversation, seq__in=part.seqs).values_list("seq", "body")
    return call_field.without(dict(bodies), field)


def _with_copies(first: Part, field: str = "") -> list[Part]:
    """Return a part and those of its copies, each with what was noted there about a copied event; with `field`, only
    the notes that say what stands in that field."""
    parts = [first, *_half_moved(first)]
    for part in parts:  # grows: forks of forks
        first_seq = min(part.seqs, default=1 << 62)
        forks = Conversation.objects.visible().filter(parent=part.conversation, copied_seq__gte=first_seq - 1)
        own_events = {fork: _own_events(fork) for fork in forks}
        titles = {event.title for events in own_events.values() for event in events if event.title}
        repeated = _said_in(part, titles) if titles else set()
        for fork, events in own_events.items():
            copies = [seq for seq in part.seqs if seq <= fork.copied_seq]
            notes = _notes_about(fork, copies)
            if field and notes:
                notes &= set(_without(part_of(fork, {*copies, *notes}), field))
            repeats = _repeating(events, fork.copied_seq + 1, part.seqs, repeated)
            parts.append(part_of(fork, {*copies, *repeats, *notes}))
    parts += [before for part in list(parts) for before in _moved_here(part)]
    return sorted((part for part in parts if part.events), key=lambda part: part.conversation.pk)


def _moved_here(part: Part) -> Iterator[Part]:
    """Return the parts of the conversations that were moved into this one: they are hidden, and keep their events."""
    hidden = Conversation.objects.published().filter(is_staged=True)
    moves = Event.objects.filter(conversation__in=hidden, kind=MOVED).select_related("conversation")
    from_here = [move.conversation for move in moves if json.loads(move.body)["to"] == part.conversation.key]
    yield from _same_events(part, from_here)


def _half_moved(part: Part) -> Iterator[Part]:
    """Return the parts of where a trace is being moved to, and of the traces that are being moved here."""
    row = part.conversation.pk
    others = [to if trace == row else trace for trace, to in late_names.half_moved() if row in (trace, to)]
    yield from _same_events(part, Conversation.objects.filter(pk__in=others))


def _same_events(part: Part, conversations: Iterable[Conversation]) -> Iterator[Part]:
    """Return the parts of these conversations that have the same events under the same ids."""
    ids: set[str | None] | None = None
    for conversation in conversations:
        if ids is None:
            rows = Event.objects.filter(conversation=part.conversation, seq__in=part.seqs)
            ids = set(rows.values_list("event_id", flat=True)) - {None}
        events = Event.objects.filter(conversation=conversation, event_id__in=ids)
        yield part_of(conversation, list(events.values_list("seq", flat=True)))


class _ForkEvent(NamedTuple):
    """One of the first events of a fork after those it copied."""

    seq: int
    title: str
    is_changed: bool  # the message that was changed in the fork


def _own_events(fork: Conversation) -> list[_ForkEvent]:
    rows = Event.objects.filter(conversation=fork, seq__in=(fork.copied_seq + 1, fork.copied_seq + 2))
    return [
        _ForkEvent(seq, payload.parse(body.encode()).title or "", seq > fork.copied_seq + 1 and '"changed"' in body)
        for seq, body in rows.order_by("seq").values_list("seq", "body")
    ]


def _repeating(events: Sequence[_ForkEvent], changed_seq: int, seqs: Collection[int], titles: Set[str]) -> list[int]:
    """Return the events of a fork itself that repeat its parent: its title, and the message that was changed in it."""
    return [event.seq for event in events if event.title in titles or (event.is_changed and changed_seq in seqs)]


def _said_in(part: Part, titles: Set[str]) -> set[str]:
    """Return the titles that are, in full or shortened, in the words of these events."""
    bodies = Event.objects.filter(conversation=part.conversation, seq__in=part.seqs).values_list("body", flat=True)
    repeated: set[str] = set()
    for body in bodies.iterator(chunk_size=bounded_reads.FETCHED):
        event = payload.parse(body.encode())
        for text in (" ".join(text.split()) for text in (event.words, event.title or "") if text):
            repeated |= {title for title in titles if title in text or title == short_title(text)}
    return repeated


def part_of(conversation: Conversation, seqs: Collection[int]) -> Part:
    """Return those of the events that still say something."""
    rows = Event.objects.filter(SAYS_SOMETHING, conversation=conversation, seq__in=seqs).exclude(kind__in=NO_WORDS)
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
    repeats: set[int] = set()
    for output in events.filter(seq__in=seqs, kind="output").defer("body"):
        more |= set(_tokens_of(row, output))
    spoken = events.filter(seq__in=more).exclude(kind="token").values_list("seq", "body")
    for seq, body in spoken.iterator(chunk_size=bounded_reads.FETCHED):
        words = payload.parse(body.encode()).words
        near = events.filter(seq__in=(seq - 1, seq + 1)).values_list("seq", "body") if words else ()
        repeats |= {other for other, text in near if payload.parse(text.encode()).words == words}
    more |= repeats
    return more | _notes_about(row, more)


def _notes_about(row: Conversation, seqs: Collection[int]) -> set[int]:
    return set(Annotation.objects.filter(conversation=row, about__in=seqs).values_list("seq", flat=True))


def _tokens_of(row: Conversation, output: Event) -> Sequence[int]:
    tokens = Event.objects.filter(conversation=row, kind="token", seq__lt=output.seq, run=output.run)
    if output.run is not None:
        return list(tokens.filter(turn=output.turn).values_list("seq", flat=True))
    before = Event.objects.filter(conversation=row, kind="output", seq__lt=output.seq, run=None).order_by("-seq")
    return list(tokens.filter(seq__gt=before.values_list("seq", flat=True).first() or 0).values_list("seq", flat=True))
