"""Model turns → what they spent: ours as `model.turn` tells it, a foreign agent's as its `output` does."""

from collections.abc import Callable

import msgspec

from conversations.events.payload import clean_text
from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges, TurnRow

NAMES = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))  # ours, and the older words


class TurnFields(msgspec.Struct):
    """What is read of an event that tells it."""

    usage: msgspec.Raw = msgspec.Raw()
    agent: str = ""
    model: str = ""
    demo: bool = False


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


def _keep(
    changes: RowChanges, head: ConversationHead, event: EventFacts, is_known: Callable[[list[int]], bool]
) -> None:
    try:
        fields = _decoder.decode(event.body)
        usage = _usage.decode(fields.usage) if fields.usage else {}
    except (msgspec.MsgspecError, UnicodeError):
        return
    spent = [next((n for name in names if (n := _counted(usage.get(name)))), 0) for names in NAMES]
    if not is_known(spent):
        return
    agent = (fields.agent or event.payload.speaker).removeprefix("agent:")
    changes.turns.append(
        TurnRow(
            head.id,
            head.head_seq,
            event.at,
            clean_text(agent)[:200],
            clean_text(fields.model)[:200],
            fields.demo,
            *spent,
        )
    )


def _counted(value: object) -> int:
    return value if type(value) is int and 0 <= value <= 1 << 53 else 0
