"""What living workers say of their teams' MCP servers. For the agents page."""

import json
from dataclasses import dataclass
from typing import Any

from conversations import nodes
from conversations.fragments import hidden
from conversations.readiness import OK

LONGEST = 300  # characters of what is wrong


@dataclass(frozen=True, slots=True)
class Server:
    """An MCP server of a team. `state`: what is wrong; empty when it is connected."""

    name: str
    state: str


def servers() -> dict[str, list[Server]]:
    """Answer them by team; of several workers, what is wrong at one of them is told."""
    found: dict[str, dict[str, str]] = {}
    for node, is_alive in nodes.known():
        if node.kind == "worker" and is_alive:
            for team, name, state in _told(node.facts):
                known = found.setdefault(team, {})
                known[name] = known.get(name) or ("" if state == OK else state)
    return {team: [Server(*map(hidden.spell, one)) for one in sorted(known.items())] for team, known in found.items()}


def _told(text: str) -> list[tuple[str, str, str]]:
    teams = _object(_object(_read(text)).get("mcp"))
    return [(t, str(n)[:100], str(s)[:LONGEST]) for t, told in teams.items() for n, s in _object(told).items()]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
