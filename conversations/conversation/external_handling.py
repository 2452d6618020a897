"""Which conversations are handled by agents of other programs: a program's token opened them, nobody here handles them,
and no worker has served any of their agents. Used by the list and by a conversation's page."""

from collections.abc import Iterable, Mapping

from conversations.models import Agent

OPENERS = ("token:", "bus:")


def may_be_external(opened_by: str, handler: str) -> bool:
    """Return whether it depends on a conversation's agents."""
    return not handler and opened_by.startswith(OPENERS)


def external(agents: Mapping[int, Iterable[str]]) -> set[int]:
    """Return those of these conversations, given with their agents' names, that have agents but none of ours. One query
    if there are any agents."""
    names = {id_: {name.removeprefix("agent:") for name in of} for id_, of in agents.items()}
    if not (every := set().union(*names.values())):
        return set()
    ours = set(Agent.objects.filter(name__in=every).values_list("name", flat=True))
    return {id_ for id_, of in names.items() if of and not of & ours}
