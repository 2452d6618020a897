"""Model turns → what they spent: ours as `model.turn` tells it, a foreign agent's as its `output` does, or its
`model.call`."""

from collections.abc import Callable

import msgspec

from conversations.events.payload import clean_text
from conversations.events.projections import usage
from conversations.events.projections.participants import add_speaker
from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges, TurnRow

NAMES = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))  # ours, and the older words
DETAILS = ("input_tokens_details", "prompt_tokens_details")


class TurnFields(msgspec.Struct):
    """What is read of an event that tells it."""

    usage: msgspec.Raw = msgspec.Raw()
    agent: str = ""
    model: str = ""
    demo: bool = False
    duration_ms: float | None = None
    parent_call: str | None = None


_decoder = msgspec.json.Decoder(TurnFields)
_usage = msgspec.json.Decoder(dict[str, object])


def ours(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Keep what a turn of ours spent."""
    if event.run is not None:
        _keep(changes, head, event, any)


def observed(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Keep what a foreign agent's output says that it spent; most say nothing, and a side that is 0 was not counted:
    then what the turn spent is unknown."""
    if '"usage"' in event.body and head.head_seq > head.copied_seq:  # a fork's copy was counted where it was said
        _keep(changes, head, event, all)


def called(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Keep what an agent elsewhere spent on an answer, and count one that failed."""
    if event.run is None:
        observed(changes, head, event)
        head.errors += event.payload.error is not None
    if event.payload.speaker:
        add_speaker(changes, head, event)


def _keep(
    changes: RowChanges, head: ConversationHead, event: EventFacts, is_known: Callable[[list[int]], bool]
) -> None:
    try:
        fields = _decoder.decode(event.body)
        counted = _usage.decode(fields.usage) if bytes(fields.usage) not in (b"", b"null") else {}
    except (msgspec.MsgspecError, UnicodeError):
        return
    agent = clean_text((fields.agent or event.payload.speaker).removeprefix("agent:"))[:200]
    model = clean_text(fields.model)[:200]
    spent = [next((n for name in names if (n := _counted(counted.get(name)))), 0) for names in NAMES]
    if not is_known(spent):
        if event.run is not None:  # ours: that there was one is known
            sums = usage.of_agent(changes, head, agent, model, is_demo=fields.demo)
            sums.turns, sums.unknown_turns = sums.turns + 1, sums.unknown_turns + 1
        return
    cached = min(spent[0], _cached(counted))
    is_inside = event.run is None or bool(fields.parent_call)  # a foreign agent's time is not told
    worked_ms = 0 if is_inside else round(max(0.0, fields.duration_ms or 0))
    place = (head.id, head.head_seq, event.at)
    changes.turns.append(TurnRow(*place, agent, model, fields.demo, spent[0], spent[1], cached, event.run, worked_ms))
    sums = usage.of_agent(changes, head, agent, model, is_demo=fields.demo)
    sums.turns += 1
    sums.input_tokens, sums.output_tokens = sums.input_tokens + spent[0], sums.output_tokens + spent[1]
    sums.cached_tokens += cached
    sums.worked_ms += worked_ms


def _cached(counted: dict[str, object]) -> int:
    """Return how much of the input was read from a cache: as we tell it, or as servers do."""
    details = next((value for name in DETAILS if isinstance(value := counted.get(name), dict)), {})
    return _counted(counted.get("cached_tokens")) or _counted(details.get("cached_tokens"))


def _counted(value: object) -> int:
    return value if type(value) is int and 0 <= value <= 1 << 53 else 0
