"""The agents for which a stand-in for a worker claims runs. For tests."""

from conversations.runs.claims import ServedAgents


def served_agents(team: str, *names: str) -> ServedAgents:
    """Return these agents of one team, as its worker would name them; messages may be sent to each."""
    return ServedAgents(team, names, entry=names)
