"""Who steers a conversation (law I): paused or not, and independently whether a person holds it.

| event, ours | state | owner |
|---|---|---|
| conversation.paused | paused | |
| conversation.resumed | open | |
| conversation.taken_over | | who did it |
| conversation.handed_back | | nobody: the agents |

`paused_seq` and `owned_seq` name the event that says who, when and why; 0 while it is not so.
"""

from conversations.projections.runs import Told, of_ours
from conversations.projections.state import Facts, Fold, Head, Rule


@of_ours
def _paused(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    head.state, head.paused_seq = "paused", head.head_seq


@of_ours
def _resumed(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    head.state, head.paused_seq = "open", 0


@of_ours
def _taken_over(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    head.owner, head.owned_seq = (told.by or facts.principal)[:160], head.head_seq


@of_ours
def _handed_back(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    head.owner, head.owned_seq = "", 0


RULES: dict[str, Rule] = {
    "conversation.paused": _paused,
    "conversation.resumed": _resumed,
    "conversation.taken_over": _taken_over,
    "conversation.handed_back": _handed_back,
}
