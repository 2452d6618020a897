"""Where in a run an error arose, as far as it tells. Called by the runner."""

from typing import Any

from agents import AgentsException, ModelBehaviorError
from pydantic import ValidationError

MOST = 200  # characters of a path


def place_of(error: BaseException, turn: int) -> dict[str, Any]:
    """Answer the agent at work, the turn, and where an answer did not fit its type, as a path from `$`."""
    if not isinstance(error, AgentsException) or turn == 0:
        return {}
    place: dict[str, Any] = {"turn": turn}
    if error.run_data is not None:
        place["agent"] = error.run_data.last_agent.name
    cause = error.__cause__
    if isinstance(error, ModelBehaviorError) and isinstance(cause, ValidationError):
        wrong = cause.errors(include_url=False, include_context=False, include_input=False)
        place["path"] = _path(wrong[0]["loc"] if wrong else ())
    return place


def _path(steps: tuple[int | str, ...]) -> str:
    return ("$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps))[:MOST]
