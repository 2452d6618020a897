"""What a replay's run begins with, and how its one call is told: linked to the call that it repeats. Used by
`replaying`."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents import Agent, FunctionTool
from agents.tool_context import ToolContext
from django.conf import settings
from pydantic import BaseModel

from agents_app import asking, contexts, identity, session
from agents_app.calls import Calls, Known
from agents_app.decided import Decided
from agents_app.hooks import Steps
from agents_app.opening import known_calls, metadata_of
from agents_app.sealing import Incompatible
from agents_app.teams import Team
from conversations.actions.runs import Body, Claim
from conversations.models import Event, Run, ToolCall
from conversations.replayable import PRESENT, named_by


class Asked(NamedTuple):
    """What a person asked for, as the record tells it."""

    body: dict[str, Any]

    def text(self, name: str) -> str:
        """Answer a field that is a text, else nothing."""
        value = self.body.get(name)
        return value if isinstance(value, str) else ""

    @property
    def call(self) -> str:
        """Our id of the new call."""
        return self.text("tool_call")

    @property
    def key(self) -> str:
        """The key under which the call goes: with other arguments it is another one."""
        return self.call if self.body.get("edited") is not False else self.text("key")


class Opening(NamedTuple):
    """Read at once. `context` is what the team remembers now; what the call makes of it is not kept."""

    asked: Asked
    context: BaseModel
    calls: list[Known]
    decided: dict[str, Decided]
    metadata: Mapping[str, Any]


def request_of(claim: Claim) -> Asked:
    """Read what a replay's run was queued for. Sync."""
    asked = Event.objects.filter(conversation__key=claim.conversation, seq=claim.input_seq, kind="replay.requested")
    body = asked.filter(run=claim.run).values_list("body", flat=True).first()
    return Asked(json.loads(body) if body else {})


def opening_of(claim: Claim, team: Team) -> Opening:
    """Read what a claimed replay needs. Sync. Raises ContextRefused, Incompatible when another team was meant."""
    asked = request_of(claim)
    if asked.text("team") != team.name:
        raise Incompatible(f"this worker does not serve the team {asked.text('team')}")
    memory = session.load(claim.conversation, newest=1, days=settings.CONFIG.session_days)
    context = contexts.read(team.context, memory.context.get(team.name), claim.conversation)
    decided = asking.decisions(claim.run)
    return Opening(asked, context, known_calls(claim), decided, _metadata(claim, asked))


def tool_of(agent: Agent[Any], asked: Asked) -> FunctionTool:
    """Find the tool by its registered identity, as it was when the replay was asked for. Raises Incompatible."""
    wanted, name = named_by(asked.body), asked.text("qualified_name")
    for tool in agent.tools:
        layers = identity.layers(tool) if isinstance(tool, FunctionTool) else {}
        if layers and {one: layers.get(one) or "" for one in PRESENT} == wanted:
            if layers["schema"] != asked.body.get("schema"):
                raise Incompatible(f"{name} has changed since this was asked for: ask again")
            assert isinstance(tool, FunctionTool)
            return tool
    raise Incompatible(f"{agent.name} has no tool {name} any more")


def _metadata(claim: Claim, asked: Asked) -> Mapping[str, Any]:
    """Answer the metadata of the message that the first call's run answered: hops are counted on."""
    call = ToolCall.objects.filter(id=asked.text("replay_of")).values_list("run", flat=True).first()
    seq = Run.objects.filter(id=call).values_list("input_seq", flat=True).first() if call else None
    said = Event.objects.filter(conversation__key=claim.conversation, seq=seq or 0, kind="message")
    body = said.values_list("body", flat=True).first()
    return metadata_of(body) if body else {}


class OneCall(Calls):
    """The calls of a replay: the asked one has its id already, calls inside it get theirs as ever."""

    def __init__(self, run: str, known: list[Known], asked: Asked) -> None:
        super().__init__(run, known)
        self._asked_for = asked

    def new(self, call_id: str) -> str:
        """Answer the id of one more use."""
        is_asked = call_id == self._asked_for.text("tool_call_id")
        return self._asked_for.call if is_asked else super().new(call_id)


class ReplaySteps(Steps):
    """Hooks that say of the asked call which one it repeats."""

    asked: Asked | None = None

    def _step(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, ours: str) -> Body:
        told = super()._step(context, agent, tool, ours)
        is_asked = self.asked is not None and ours == self.asked.call
        return told | {"replay_of": self.asked.text("replay_of")} if is_asked and self.asked else told
