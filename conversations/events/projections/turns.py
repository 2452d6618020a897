"""Model turns → what they spent: ours as `model.turn` tells it, an external agent's as its `output` does, or its
`model.call`."""

from collections.abc import Callable
from typing import Annotated

import msgspec

from conversations.events.payload import clean_text
from conversations.events.projections import usage
from conversations.events.projections.participants import add_speaker
from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges, TurnRow

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]


class CountDetails(msgspec.Struct, gc=False):
    """Of which tokens."""

    cached_tokens: Count = 0
    cache_write_tokens: Count = 0


class TokenCounts(msgspec.Struct, gc=False):
    """What an answer spent: in our words, and in older ones."""

    input_tokens: Count = 0
    prompt_tokens: Count = 0
    output_tokens: Count = 0
    completion_tokens: Count = 0
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0
    input_tokens_details: CountDetails | None = None
    prompt_tokens_details: CountDetails | None = None

    @property
    def cached(self) -> int:
        """Return how much of the input was read from a cache: as we tell it, or as servers do."""
        details = self.input_tokens_details or self.prompt_tokens_details
        return self.cached_tokens or (details.cached_tokens if details else 0)

    @property
    def cache_written(self) -> int:
        """Return how much of the input was written to a cache."""
        details = self.input_tokens_details or self.prompt_tokens_details
        return self.cache_write_tokens or (details.cache_write_tokens if details else 0)


NOTHING = TokenCounts()
OF_CACHE = ("cached_tokens", "cache_write_tokens")
COUNTS = ("input_tokens", "prompt_tokens", "output_tokens", "completion_tokens", *OF_CACHE)
DETAILS = ("input_tokens_details", "prompt_tokens_details")


class _AnswerFields(msgspec.Struct, gc=False):
    agent: str = ""
    model: str = ""
    demo: bool = False
    duration_ms: float | None = None
    parent_call: str | None = None


class TurnFields(_AnswerFields, gc=False):
    """What is read of an event that tells it."""

    usage: TokenCounts | None = None


class LooseTurnFields(_AnswerFields, gc=False):
    """The same, with the usage as it came: JSON of any kind."""

    usage: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(TurnFields)
_loose = msgspec.json.Decoder(LooseTurnFields)
_usage = msgspec.json.Decoder(dict[str, object])


def ours(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Keep what a turn of ours spent."""
    if event.run is not None:
        _keep(changes, head, event, any)


def observed(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Keep what an external agent's output says that it spent; most say nothing, and a side that is 0 was not counted:
    then what the turn spent is unknown."""
    if '"usage"' in event.body and head.head_seq > head.copied_seq:  # a fork's copy was counted where it was said
        _keep(changes, head, event, all)


def called(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Keep what an external agent spent on an answer, and count one that failed."""
    if event.run is None:
        observed(changes, head, event)
        head.errors += event.payload.error is not None
    add_speaker(changes, head, event)


def _keep(
    changes: RowChanges, head: ConversationHead, event: EventFacts, is_known: Callable[[tuple[int, int]], bool]
) -> None:
    if (fields := _read(event.body)) is None:
        return
    agent = clean_text((fields.agent or event.payload.speaker).removeprefix("agent:"))[:200]
    model = clean_text(fields.model)[:200]
    counts = fields.usage or NOTHING
    spent = counts.input_tokens or counts.prompt_tokens, counts.output_tokens or counts.completion_tokens
    is_unknown = not is_known(spent)
    if is_unknown and event.run is None:  # ours alone: that there was one is known
        return
    cached = min(spent[0], counts.cached)
    written = min(spent[0] - cached, counts.cache_written)
    is_inside = event.run is None or bool(fields.parent_call)  # an external agent's working time is unknown
    worked_ms = 0 if is_inside or is_unknown else round(max(0.0, fields.duration_ms or 0))
    place = (head.id, head.head_seq, event.at)
    changes.turns.append(TurnRow(*place, agent, model, fields.demo, *spent, cached, written, event.run, worked_ms))
    sums = usage.of_agent(changes, head, agent, model, is_demo=fields.demo)
    sums.turns, sums.unknown_turns = sums.turns + 1, sums.unknown_turns + is_unknown
    sums.input_tokens, sums.output_tokens = sums.input_tokens + spent[0], sums.output_tokens + spent[1]
    sums.cached_tokens, sums.cache_write_tokens = sums.cached_tokens + cached, sums.cache_write_tokens + written
    sums.worked_ms += worked_ms


def _read(body: str) -> TurnFields | None:
    """Read the fields; None where one of them is not of its type."""
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError):
        return _read_leniently(body)


def _read_leniently(body: str) -> TurnFields | None:
    """Read the same where a count may be anything: what is not a number of tokens is 0."""
    try:
        loose = _loose.decode(body)
        raw = bytes(loose.usage)
        usage = _usage.decode(raw) if raw not in (b"", b"null") else {}
    except (msgspec.MsgspecError, UnicodeError):
        return None
    details = next((value for name in DETAILS if isinstance(value := usage.get(name), dict)), {})
    counts = TokenCounts(input_tokens_details=CountDetails(*(_counted(details.get(name)) for name in OF_CACHE)))
    for name in COUNTS:
        setattr(counts, name, _counted(usage.get(name)))
    return TurnFields(loose.agent, loose.model, loose.demo, loose.duration_ms, loose.parent_call, counts)


def _counted(value: object) -> int:
    return value if type(value) is int and 0 <= value <= 1 << 53 else 0
