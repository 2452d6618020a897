"""Check the budgets of one attempt before it starts and after each of its steps. Used by the agent's run.

A run that has reached a budget stops before its next step and requests approval, as for a tool call
(`runs.budgets.budget_requests`). A run that answers a client of `/v1/responses` makes no request: its client waits.
"""

from agents_app.worker.saved_state import acting_agent
from conversations.core.db_threads import RunInThread
from conversations.runs import claims
from conversations.runs.budgets import budget_requests, evaluate
from conversations.runs.budgets.evaluate import ReachedBudget
from conversations.runs.claims import Body, Claim


class BudgetWatch:
    """The budget that an attempt has reached. `reached` is set once and not changed."""

    def __init__(self, claim: Claim, do: RunInThread) -> None:
        self._claim, self._do = claim, do
        self._agent = claim.agent  # who was at work when the budget was reached
        self.reached: ReachedBudget | None = None

    async def refusal(self) -> str:
        """Close the earlier approval request; return why the run may not continue, or an empty text if it may. Raises
        Fenced."""
        if self._claim.attempt == 1:  # nothing was asked
            return ""
        why: str = await self._do(budget_requests.settle, self._claim)
        return why

    async def suspend_if_spent(self, turn: int) -> bool:
        """Suspend a run unchanged if its budget is already spent, and return whether it is; its memory contains nothing
        of this attempt. Raises Incompatible."""
        if await evaluate.are_none(self._do):
            return False
        self._agent = await self._do(acting_agent, self._claim)
        self.reached = await self._do(evaluate.reached, self._claim, self._agent)
        if self.reached is not None:
            await self._do(self._suspend, self.build_request(turn))
        return self.reached is not None

    async def look(self, agent: str) -> bool:
        """Return whether a budget has just been reached."""
        if self.reached is not None or await evaluate.are_none(self._do):
            return False
        self._agent = agent
        self.reached = await self._do(evaluate.reached, self._claim, agent)
        return self.reached is not None

    def build_request(self, turn: int) -> Body:
        """Return the approval request for the budget that was reached."""
        assert self.reached is not None
        return budget_requests.build_request(self._claim, self.reached, self._agent, turn)

    def _suspend(self, request: Body) -> None:
        claim = self._claim
        claims.suspend(claim, "approval", request, state=claim.state, state_mac=claim.state_mac, sdk=claim.sdk)
