"""A run's side of answering a request: what the attempt that executes it does differently. Made by `runner`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents import ModelRefusalError, RawResponsesStreamEvent, StreamEvent, ToolApprovalItem, Usage
from openai.types.responses import ResponseIncompleteEvent
from pydantic import BaseModel

from agents_app.calls import Calls
from agents_app.hooks import Do
from agents_app.pen import Pen
from agents_app.responding import returned
from agents_app.responding.answer import Answer
from agents_app.responding.asked import Asked, Item, Limited, Unfit
from agents_app.responding.prepared import Prepared, prepare
from agents_app.responding.rosters import roster_for
from agents_app.responding.steps import AnswerSteps
from agents_app.responding.tools import Hosted, is_external
from agents_app.roster import Roster
from agents_app.teams import PLAIN_TEAM
from agents_app.turns import Turns
from conversations.actions.runs import Body, Claim

CUT_AT_ONCE = "finish_reason='length'"  # how the SDK tells of a chat answer that ended before its first word


@dataclass(slots=True)
class Reply:
    """The request, what the model is given, and the answer as it grows. `roster` is the team as the request sees it."""

    asked: Asked
    roster: Roster
    prepared: Prepared
    answer: Answer
    unfit: Unfit | None

    @property
    def items(self) -> list[Item]:
        """What the model is given: the whole chain."""
        return self.prepared.items

    @property
    def of_scope(self) -> dict[str, Any]:
        """What the run hands on to its tools and to the gate."""
        return {"response_id": self.asked.response_id, "restriction": self.asked.restriction}

    @property
    def keeps_context(self) -> bool:
        """Whether the team remembers something; a plain model's run has nothing to remember."""
        return self.roster.team.name != PLAIN_TEAM

    def tell(self, context: BaseModel) -> None:
        """Tell a context that asks for it which response it is."""
        if "response_id" in type(context).model_fields:
            context.response_id = self.asked.response_id  # type: ignore[attr-defined]  # asked for in the line before

    def steps(self, pen: Pen, calls: Calls, turns: Turns, do: Do) -> AnswerSteps:
        """Make the run's hooks."""
        given = (pen, calls, turns, self.roster, do)
        return AnswerSteps(*given, answer=self.answer, is_first=turns.current == 0, made=self.prepared.made)

    def take(self, event: StreamEvent) -> None:
        """Notice an answer that the model's server ended before the model had."""
        if isinstance(event, RawResponsesStreamEvent) and isinstance(event.data, ResponseIncompleteEvent):
            self.answer.hear_cut(event.data.response)

    def to_ask(self, stopped: Sequence[ToolApprovalItem]) -> list[ToolApprovalItem]:
        """Of the calls that stopped the run, answer those that a person decides about."""
        return [item for item in stopped if not is_external(item)]

    def called(self, stopped: Sequence[ToolApprovalItem], calls: Calls, turn: int) -> list[Body]:
        """Take the calls that are the client's, and answer what the record is told of them."""
        own = [item for item in stopped if is_external(item)]
        self.answer.call(turn, own)
        return returned.told(own, calls, turn)

    def is_answer(self, error: BaseException) -> bool:
        """Tell whether what ended the run is an answer all the same: a refusal, or one that was cut off."""
        if CUT_AT_ONCE in str(error):
            self.answer.hear_cut(None)
        return isinstance(error, ModelRefusalError) or (bool(self.answer.cut) and not isinstance(error, Limited))

    def completed(self, end: Body, told: Sequence[Body], spent: Usage | None) -> list[Body]:
        """Answer the event for the client that comes directly before the run's end."""
        return self.answer.completed(end, told, spent)


async def reply_to(claim: Claim, asked: Asked, roster: Roster, do: Do, hosted: Mapping[str, Hosted]) -> Reply:
    """Look into a request. What makes it unfit is kept: the run has to end with it."""
    prepared: Prepared = await do(prepare, claim, asked)
    unfit, made = prepared.unfit, roster
    if unfit is None:
        try:
            made = roster_for(roster, asked, claim.agent, hosted)
        except Unfit as found:
            unfit = found
    label = made.model_of(made.team.agent(claim.agent)).label
    answer = Answer(asked, is_own=prepared.is_own, said=prepared.said, label=label)
    return Reply(asked, made, prepared, answer, unfit)
