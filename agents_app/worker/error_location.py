"""Locate an error in a run: the active agent, its turn, and the field of an answer that does not match. Called by
`agent_run`."""

from typing import Any

from agents import Agent, AgentOutputSchema, AgentsException, ModelBehaviorError
from agents.agent_output import AgentOutputSchemaBase
from pydantic import ValidationError

MAX_LENGTH = 200  # characters of a path, and of why


def place_of(error: BaseException, agent: Agent[Any] | None, turn: int, answer: str) -> dict[str, Any]:
    """Return the location of an SDK error. `answer` is the agent's last answer: the SDK reports that it does not match,
    but not where."""
    if not isinstance(error, AgentsException) or agent is None or turn == 0:
        return {}
    location: dict[str, Any] = {"turn": turn, "agent": agent.name}
    if isinstance(error, ModelBehaviorError) and str(error).startswith("Invalid JSON"):
        location |= _misfit(agent.output_type, answer)
    return location


def _misfit(kind: Any, answer: str) -> dict[str, str]:
    """Return the first field that does not match, as a path from `$`, and why, without the answer's text."""
    if kind in (None, str) or (isinstance(kind, AgentOutputSchemaBase) and not isinstance(kind, AgentOutputSchema)):
        return {}  # text, or a schema that validates in a way of its own
    schema = kind if isinstance(kind, AgentOutputSchema) else AgentOutputSchema(kind)
    try:
        schema._type_adapter.validate_json(answer, strict=True if schema.is_strict_json_schema() else None)
    except ValidationError as found:
        wrong = found.errors(include_url=False, include_context=False, include_input=False)[0]
        return {"path": _path(wrong["loc"]), "why": wrong["msg"][:MAX_LENGTH]}
    return {}


def _path(steps: tuple[int | str, ...]) -> str:
    return ("$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps))[:MAX_LENGTH]
