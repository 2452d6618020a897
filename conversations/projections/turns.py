"""Model turns → what they spent: ours as `model.turn` tells it, a foreign agent's as its `output` does."""

import msgspec

from conversations import principals
from conversations.envelopes import fit
from conversations.projections.state import Facts, Fold, Head, TurnRow

NAMES = (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens"))  # ours, and the older words


class Told(msgspec.Struct):
    """What is read of an event that tells it."""

    usage: msgspec.Raw = msgspec.Raw()
    agent: str = ""
    model: str = ""
    demo: bool = False


_decoder = msgspec.json.Decoder(Told)
_usage = msgspec.json.Decoder(dict[str, object])


def ours(changes: Fold, head: Head, facts: Facts) -> None:
    """Keep what a turn of ours spent; a claim of one counts nothing."""
    if principals.is_ours(facts.principal) and facts.run is not None:
        _keep(changes, head, facts)


def observed(changes: Fold, head: Head, facts: Facts) -> None:
    """Keep what a foreign agent's output says that it spent; most say nothing."""
    if '"usage"' in facts.body and head.head_seq > head.copied_seq:  # a fork's copy was counted where it was said
        _keep(changes, head, facts)


def _keep(changes: Fold, head: Head, facts: Facts) -> None:
    try:
        told = _decoder.decode(facts.body)
        usage = _usage.decode(told.usage) if told.usage else {}
    except (msgspec.MsgspecError, UnicodeError):
        return
    spent = [next((n for name in names if (n := _counted(usage.get(name)))), 0) for names in NAMES]
    if not any(spent):
        return
    agent = (told.agent or facts.said.speaker).removeprefix("agent:")
    changes.turns.append(
        TurnRow(head.id, head.head_seq, facts.at, fit(agent)[:200], fit(told.model)[:200], told.demo, *spent)
    )


def _counted(value: object) -> int:
    return value if type(value) is int and 0 <= value <= 1 << 53 else 0
