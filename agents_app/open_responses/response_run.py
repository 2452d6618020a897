"""How a run that answers a request differs from other runs. Created by `agent_run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents import ModelRefusalError, StreamEvent, ToolApprovalItem, Usage
from agents.run_config import CallModelData, ModelInputData
from openai.types.responses import ResponseIncompleteEvent
from pydantic import BaseModel

from agents_app.open_responses import client_tool_calls, openai_parameters
from agents_app.open_responses.preparation import Prepared, prepare
from agents_app.open_responses.request import Item, Limited, RunRequest, Unfit
from agents_app.open_responses.request_team import team_for
from agents_app.open_responses.request_tools import Hosted, is_client_tool
from agents_app.open_responses.response_builder import ResponseBuilder
from agents_app.open_responses.response_hooks import ResponseHooks
from agents_app.teams.definition import PLAIN_TEAM
from agents_app.teams.served_team import ServedTeam
from agents_app.worker.call_ids import CallIdMap
from agents_app.worker.event_writer import RunEventWriter
from agents_app.worker.model_turns import ModelTurns
from conversations.core.db_threads import RunInThread
from conversations.runs.claims import Body, Claim

CUT_AT_ONCE = "finish_reason='length'"  # how the SDK tells of a chat answer that ended before its first word


@dataclass(slots=True)
class ResponseRun:
    """The request, the model's input, and the growing response. `served` is the team as the request sees it."""

    request: RunRequest
    served: ServedTeam
    prepared: Prepared
    answer: ResponseBuilder
    unfit: Unfit | None

    @property
    def items(self) -> list[Item]:
        """Return the model's input: the whole chain."""
        return self.prepared.items

    @property
    def of_scope(self) -> dict[str, Any]:
        """Return what the run passes to its tools and to the approval gate."""
        return {"response_id": self.request.response_id, "restriction": self.request.restriction}

    @property
    def keeps_context(self) -> bool:
        """Return whether the team has a context to store; a plain model's run has none."""
        return self.served.team.name != PLAIN_TEAM

    def set_response_id(self, context: BaseModel) -> None:
        """Set the response id in a context that has a field for it."""
        if "response_id" in type(context).model_fields:
            context.response_id = self.request.response_id  # type: ignore[attr-defined]  # asked for in the line before

    def new_hooks(
        self, event_writer: RunEventWriter, calls: CallIdMap, turns: ModelTurns, do: RunInThread
    ) -> ResponseHooks:
        """Return the run's hooks."""
        hook_args = (event_writer, calls, turns, self.served, do)
        is_first = turns.current == 0 and event_writer.claim.state is None
        return ResponseHooks(*hook_args, answer=self.answer, is_first=is_first, call_count=self.prepared.call_count)

    def filter_input(self, data: CallModelData[Any]) -> ModelInputData:
        """Return what a model is sent. Passed to the SDK as `call_model_input_filter`."""
        return openai_parameters.resolvable_input(data, self.served.model_of(data.agent).model)

    def on_event(self, event: StreamEvent) -> None:
        """Note an answer that the model's server cut off."""
        if event.type == "raw_response_event" and isinstance(event.data, ResponseIncompleteEvent):
            self.answer.hear_cut(event.data.response)

    def to_ask(self, stopped: Sequence[ToolApprovalItem]) -> list[ToolApprovalItem]:
        """Return those calls that stopped the run which a person decides about."""
        return [item for item in stopped if not is_client_tool(item)]

    def called(self, stopped: Sequence[ToolApprovalItem], calls: CallIdMap, turn: int) -> list[Body]:
        """Add the calls for the client; return their events."""
        own = [item for item in stopped if is_client_tool(item)]
        self.answer.call(turn, own)
        return client_tool_calls.called_bodies(own, calls, turn)

    def is_answer(self, error: BaseException) -> bool:
        """Return whether what ended the run is still an answer: a refusal, or one that was cut off."""
        if CUT_AT_ONCE in str(error):
            self.answer.hear_cut(None)
        return isinstance(error, ModelRefusalError) or (bool(self.answer.cut) and not isinstance(error, Limited))

    def completed(self, end: Body, bodies: Sequence[Body], spent: Usage | None) -> list[Body]:
        """Return the event for the client that comes right before the run's end."""
        return self.answer.completed(end, bodies, spent)


async def reply_to(
    claim: Claim, request: RunRequest, served: ServedTeam, do: RunInThread, hosted: Mapping[str, Hosted]
) -> ResponseRun:
    """Prepare the answer to a request. What makes it unfit is stored: the run has to end with it."""
    prepared: Prepared = await do(prepare, claim, request)
    unfit, requested = prepared.unfit, served
    if unfit is None:
        try:
            requested = team_for(served, request, claim.agent, hosted)
        except Unfit as found:
            unfit = found
    label = requested.model_of(requested.team.agent(claim.agent)).label
    answer = ResponseBuilder(
        request, is_own=prepared.is_own, spoken=prepared.spoken, output_tokens=prepared.output_tokens, label=label
    )
    return ResponseRun(request, requested, prepared, answer, unfit)
