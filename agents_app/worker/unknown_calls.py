"""The calls of tools that an agent does not have, in one attempt of a run. Used by its hooks.

A model may make up a name, or call a tool that an MCP server has dropped since an earlier turn. The SDK tells the model
of each; where they do not stop, the run ends.
"""

from collections import Counter

from openai.types.responses import ResponseFunctionToolCall

from agents_app.open_responses.request import Unfit
from agents_app.run_scope import RunnerId

MAX_UNKNOWN = 4  # in a run, and in each run inside a call; the model is told of each but the last


class UnknownCalls:
    """Those that the SDK could not resolve, by runner."""

    def __init__(self) -> None:
        self._requested: dict[RunnerId, dict[str, ResponseFunctionToolCall]] = {}  # of the last answer, by id
        self._refused: set[tuple[RunnerId, str]] = set()
        self._counts: Counter[RunnerId] = Counter()
        self._last_name = ""

    def request(self, runner: RunnerId, calls: list[ResponseFunctionToolCall]) -> list[ResponseFunctionToolCall]:
        """Note the calls of an answer; return those that repeat a refused one under its id, of which the SDK says
        nothing again."""
        self._requested[runner] = {call.call_id: call for call in calls}
        return [call for call in calls if (runner, call.call_id) in self._refused]

    def requested(self, runner: RunnerId, call_id: str) -> ResponseFunctionToolCall | None:
        """Return a call of the last answer."""
        return self._requested.get(runner, {}).get(call_id)

    def refuse(self, runner: RunnerId, call: ResponseFunctionToolCall) -> None:
        """Count a call of an unknown tool."""
        self._refused.add((runner, call.call_id))
        self._counts[runner] += 1
        self._last_name = f"{call.namespace}.{call.name}" if call.namespace else call.name

    def check(self, runner: RunnerId, agent: str, names: list[str]) -> None:
        """Raise Unfit if there were too many; `names`: what the agent may call."""
        count = self._counts[runner]
        if count < MAX_UNKNOWN:
            return
        offered = ", ".join(sorted(names))[:1000] or "none"
        raise Unfit(
            "unknown_tool",
            f"The model called unknown tools {count} times after being corrected: {self._last_name} is not a tool of"
            f" {agent}, which has: {offered}.",
        )
