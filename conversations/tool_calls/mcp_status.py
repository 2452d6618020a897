"""What live workers report about their teams' MCP servers. For the agents page."""

from dataclasses import dataclass
from typing import Any

from conversations.core import hidden_characters, node_heartbeat
from conversations.core.json_values import parse_object
from conversations.core.status import OK

MAX_PROBLEM = 300  # characters of what is wrong


@dataclass(frozen=True, slots=True)
class McpServerStatus:
    """An MCP server of a team. `state`: its problem; empty if it is connected."""

    name: str
    state: str


def servers() -> dict[str, list[McpServerStatus]]:
    """Return the MCP servers by team; if several workers use one, the problem of any of them is shown."""
    by_team: dict[str, dict[str, str]] = {}
    for node, is_alive in node_heartbeat.known_nodes():
        if node.kind == "worker" and is_alive:
            for team, name, state in _server_states(node.facts):
                states = by_team.setdefault(team, {})
                states[name] = states.get(name) or ("" if state == OK else state)
    return {
        team: [McpServerStatus(*map(hidden_characters.spelled_out, entry)) for entry in sorted(states.items())]
        for team, states in by_team.items()
    }


def _server_states(text: str) -> list[tuple[str, str, str]]:
    teams = _object((parse_object(text) or {}).get("mcp"))
    return [
        (t, str(n)[:100], str(s)[:MAX_PROBLEM]) for t, reports in teams.items() for n, s in _object(reports).items()
    ]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
