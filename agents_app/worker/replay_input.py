"""Read the input of a replay, and record its call with a link to the call that it replays. Used by `replay_run`."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents import Agent, FunctionTool
from agents.tool_context import ToolContext
from django.conf import settings
from pydantic import BaseModel

from agents_app.approval_gate import run_approvals
from agents_app.approval_gate.gate import Decision
from agents_app.memory import session, team_context
from agents_app.teams.definition import Team
from agents_app.tools import identity
from agents_app.worker.call_ids import CallIdMap, EarlierCall
from agents_app.worker.run_hooks import RecordingHooks
from agents_app.worker.run_input import known_calls, metadata_of
from agents_app.worker.saved_state import Incompatible
from conversations.core.json_values import text_of
from conversations.models import Event, Run, ToolCall
from conversations.runs.claims import Body, Claim
from conversations.runs.replay.eligibility import PRESENT, identity_in


class ReplayRequest(NamedTuple):
    """A person's request, as recorded."""

    body: dict[str, Any]

    def text(self, name: str) -> str:
        """Return a field that is a string, or else an empty text."""
        return text_of(self.body.get(name)) or ""

    @property
    def call(self) -> str:
        """Our id of the new call."""
        return self.text("tool_call")

    @property
    def idempotency_key(self) -> str:
        """The idempotency key that the tool receives: the first call's, so that it takes effect once; with edited
        arguments the new call's own id."""
        return self.call if self.body.get("edited") is not False else self.text("key")


class ReplayInput(NamedTuple):
    """The input, read once. `context` is the team's current context; changes that the call makes to it are
    discarded."""

    request: ReplayRequest
    context: BaseModel
    calls: list[EarlierCall]
    decided: dict[str, Decision]
    metadata: Mapping[str, Any]


def request_of(claim: Claim) -> ReplayRequest:
    """Read the request for which a replay's run was queued. Sync."""
    events = Event.objects.filter(conversation__key=claim.conversation, seq=claim.input_seq, kind="replay.requested")
    body = events.filter(run=claim.run).values_list("body", flat=True).first()
    return ReplayRequest(json.loads(body) if body else {})


def load_replay_input(claim: Claim, team: Team) -> ReplayInput:
    """Read what a claimed replay needs. Sync. Raises ContextRefused, Incompatible if it belongs to another team."""
    request = request_of(claim)
    if request.text("team") != team.name:
        raise Incompatible(f"this worker does not run the team {request.text('team')}")
    memory = session.load(claim.conversation, newest=1, days=settings.CONFIG.session_days)
    context = team_context.read(team.context, memory.context.get(team.name), claim.conversation)
    decided = run_approvals.decisions(claim.run)
    return ReplayInput(request, context, known_calls(claim), decided, _metadata(claim, request))


def tool_of(agent: Agent[Any], request: ReplayRequest) -> FunctionTool:
    """Find the tool by its registered identity, as it was when the replay was requested. Raises Incompatible."""
    expected, name = identity_in(request.body), request.text("qualified_name")
    for tool in agent.tools:
        layers = identity.layers(tool) if isinstance(tool, FunctionTool) else {}
        if layers and {layer: layers.get(layer) or "" for layer in PRESENT} == expected:
            if layers["schema"] != request.body.get("schema"):
                raise Incompatible(f"{name} has changed since the replay was requested: request it again")
            assert isinstance(tool, FunctionTool)
            return tool
    raise Incompatible(f"{agent.name} no longer has the tool {name}")


def _metadata(claim: Claim, request: ReplayRequest) -> Mapping[str, Any]:
    """Return the metadata of the message that the first call's run answered, because hops continue to be counted."""
    call = ToolCall.objects.filter(id=request.text("replay_of")).values_list("run", flat=True).first()
    seq = Run.objects.filter(id=call).values_list("input_seq", flat=True).first() if call else None
    messages = Event.objects.filter(conversation__key=claim.conversation, seq=seq or 0, kind="message")
    body = messages.values_list("body", flat=True).first()
    return metadata_of(body) if body else {}


class ReplayCallIds(CallIdMap):
    """The call ids of a replay: the request gave the requested call its id; calls inside it get theirs as usual."""

    def __init__(self, run: str, earlier_calls: list[EarlierCall], request: ReplayRequest) -> None:
        super().__init__(run, earlier_calls)
        self._request = request

    def new(self, call_id: str) -> str:
        """Return our id for a call id that is used anew: of the requested call the id in the request, of any other call
        (one inside it) a new one."""
        is_requested = call_id == self._request.text("tool_call_id")
        return self._request.call if is_requested else super().new(call_id)


class ReplayHooks(RecordingHooks):
    """Hooks that record which call the requested call replays."""

    request: ReplayRequest | None = None

    def _tool_step_body(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, our_id: str) -> Body:
        body = super()._tool_step_body(context, agent, tool, our_id)
        if self.request is not None and our_id == self.request.call:
            body |= {"replay_of": self.request.text("replay_of")}
        return body
