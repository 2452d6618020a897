"""The budgets of one attempt: looked at before it begins and after each of its steps. Used by the agent's run.

A run that has reached one stops before its next step and asks, as about a tool call (`runs.budgets.questions`). One
that answers a client of the responses endpoint is not asked about: its client waits.
"""

from agents_app.worker.run_hooks import Do
from conversations.runs import claims
from conversations.runs.budgets import evaluate, questions
from conversations.runs.budgets.evaluate import ReachedBudget
from conversations.runs.claims import Body, Claim


class BudgetWatch:
    """What an attempt has reached. `reached` is set once, and stays."""

    def __init__(self, claim: Claim, do: Do) -> None:
        self._claim, self._do = claim, do
        self.reached: ReachedBudget | None = None

    async def refusal(self) -> str:
        """Close what was asked about earlier; return why the run may not go on, empty where it may. Raises Fenced."""
        if self._claim.attempt == 1:  # nothing was asked
            return ""
        why: str = await self._do(questions.settle, self._claim)
        return why

    async def has_put_aside(self, turn: int) -> bool:
        """Put a run aside that has nothing left to begin with, as it was; its memory has nothing of this attempt."""
        if evaluate.are_none():
            return False
        self.reached = await self._do(evaluate.reached, self._claim, self._claim.agent)
        if self.reached is not None:
            await self._do(self._put_aside, self.question(turn))
        return self.reached is not None

    async def look(self, agent: str) -> bool:
        """Return whether it was reached just now."""
        if self.reached is not None or evaluate.are_none():
            return False
        self.reached = await self._do(evaluate.reached, self._claim, agent)
        return self.reached is not None

    def question(self, turn: int) -> Body:
        """Make the question about what was reached."""
        assert self.reached is not None
        return questions.question(self._claim, self.reached, self._claim.agent, turn)

    def _put_aside(self, request: Body) -> None:
        claim = self._claim
        claims.wait(claim, "approval", request, state=claim.state, state_mac=claim.state_mac, sdk=claim.sdk)
