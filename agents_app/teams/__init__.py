"""Teams of agents: declared by their packages, loaded, registered and served. A team's code imports from here."""

from agents_app.mcp.servers import McpServer
from agents_app.nested_runs import agent_tool, nested_run
from agents_app.run_scope import current_scope, idempotency_key, tell
from agents_app.teams.definition import NoContext, Team

__all__ = ["McpServer", "NoContext", "Team", "agent_tool", "current_scope", "idempotency_key", "nested_run", "tell"]
