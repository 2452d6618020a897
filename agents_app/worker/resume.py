"""Resume a run that was set aside: restore its saved state for the team as it is now. Called by `AgentRun`.

If the state no longer fits the team, `Incompatible` is raised and the run ends. If an MCP server that the run needs is
not connected, `ServerAway` is raised: the run keeps its saved state and waits, and is queued again when a worker has
connected to that server (`blocked_runs`). So a run outlives a restart of the server.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agents import RunState

from agents_app.memory import team_context
from agents_app.teams.definition import Team
from agents_app.worker import saved_state
from agents_app.worker.event_writer import reason_of
from agents_app.worker.run_input import RunInput
from agents_app.worker.saved_state import Incompatible, SavedState
from conversations.runs.claims import Claim

Away = Callable[[str], Mapping[str, str]]  # team → its MCP servers that are not connected, and what is wrong with each

MAKES_THE_CALL = ("approve", "edit")


class ServerAway(Exception):
    """A decided call needs an MCP server that is not connected now. `why` is a text for people."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(f"{server}: {why}")
        self.server, self.why = server, why


def nobody_away(team: str) -> Mapping[str, str]:
    """Report all servers as connected, for a worker without any."""
    return {}


async def restore_run_state(
    claim: Claim, run_input: RunInput, team: Team, away: Away
) -> tuple[RunState[Any, Any], SavedState]:
    """Return the SDK's state and the saved state that it was restored from. Raises Incompatible, ServerAway,
    ContextRefused."""
    missing = {name: away(team.name)[name] for name in _servers(run_input) if name in away(team.name)}
    needed = [name for name in _servers(run_input, MAKES_THE_CALL) if name in missing]
    if needed:
        raise ServerAway(needed[0], missing[needed[0]])
    try:
        return await _deserialize(claim, team)
    except Incompatible:
        if missing:  # its tools are not known here yet
            raise ServerAway(*next(iter(missing.items()))) from None
        raise


async def _deserialize(claim: Claim, team: Team) -> tuple[RunState[Any, Any], SavedState]:
    saved, tools = saved_state.verify(claim)
    try:
        state: RunState[Any, Any] = await RunState.from_string(
            team.agent(claim.agent), saved.state,
            context_deserializer=team_context.reader(team.context), strict_context=True,
        )  # fmt: skip
    except team_context.ContextRefused:
        raise
    except Exception as error:  # whatever the SDK raises over a state that it cannot read
        raise Incompatible(reason_of(error)) from error
    interruptions = state.get_interruptions()
    if interruptions and saved_state.tools_hash(interruptions) != tools:
        names = ", ".join(sorted({item.qualified_name or str(item.name) for item in interruptions}))
        raise Incompatible(f"a tool whose approval was requested has changed: {names}")
    return state, saved


def _servers(run_input: RunInput, decisions: tuple[str, ...] = ()) -> Iterator[str]:
    """Return the MCP servers of the calls that were decided and have not ended."""
    for call in run_input.calls:
        decision = run_input.decided.get(call.id)
        if decision is None or not decision.server or (decisions and decision.decision not in decisions):
            continue
        if call.status in ("waiting", "approved", "rejected"):
            yield decision.server
