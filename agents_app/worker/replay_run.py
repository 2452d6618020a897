"""A claimed run of kind replay: read the request, make the recorded call again, and record it with a link to the first.
Its output is never sent to an agent. Started by the worker.

It does everything that the SDK does around a call, in the same order: check that the tool is enabled, the gate (policy)
and the team's input guardrails, a person's approval and, after it, all of this from the start, `executing` committed,
the call with its time limit, output guardrails. A call that was entered is never entered again, whatever happens to the
worker.
"""

import asyncio
import inspect
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents import Agent, FunctionTool, StreamEvent, ToolApprovalItem, Usage, UserError
from agents.agent_tool_state import consume_agent_tool_run_result, get_agent_tool_state_scope
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext
from agents.tool_guardrails import ToolInputGuardrailData, ToolOutputGuardrailData
from django.conf import settings
from django.db.models import QuerySet
from openai.types.responses import ResponseFunctionToolCall
from pydantic import BaseModel

from agents_app.approval_gate import gate, stored_decisions
from agents_app.call_decisions import Decision
from agents_app.memory import fork_memory, session, team_context
from agents_app.memory.team_context import ContextRefused
from agents_app.recorded_values import reason_of, truncate_fields
from agents_app.run_scope import RunScope, current_parent_call, current_runner, enter_scope
from agents_app.teams.definition import Team
from agents_app.teams.served_team import ServedTeam, as_timeout
from agents_app.tools import identity
from agents_app.worker import run_approvals, saved_state
from agents_app.worker.agent_run import GRACE
from agents_app.worker.call_ids import CallIdMap, EarlierCall
from agents_app.worker.claimed_run import ClaimedRun, WorkerServices
from agents_app.worker.gatekeeper import RunGatekeeper
from agents_app.worker.model_turns import ModelTurns
from agents_app.worker.run_hooks import RecordingHooks, total_of
from agents_app.worker.run_input import known_calls, metadata_of
from agents_app.worker.saved_state import Incompatible, SavedState, SignedRunState
from conversations.core.errors import Fenced, Invalid
from conversations.core.json_values import text_of
from conversations.events.redacted_events import has_redacted
from conversations.models import Conversation, Event, Run, ToolCall
from conversations.models.run import ENDING
from conversations.runs import claims
from conversations.runs.claims import Body, Claim
from conversations.runs.replay.eligibility import identity_in
from conversations.tool_calls.schemas import argument_check

KIND: Body = {"run_kind": "replay"}


class ReplayParameters(NamedTuple):
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
        """The idempotency key that the tool receives if nobody edits the arguments later: that of the replayed call, so
        that it takes effect once; with edited arguments the new call's own id."""
        return self.call if self.body.get("edited") is not False else self.text("key")


class ReplayInput(NamedTuple):
    """The input, read once. `context` is the team's current context; changes that the call makes to it are
    discarded."""

    request: ReplayParameters
    context: BaseModel
    calls: list[EarlierCall]
    decided: dict[str, Decision]
    metadata: Mapping[str, Any]


class ReplayCallIds(CallIdMap):
    """The call ids of a replay: the request gave the requested call its id; calls inside it get theirs as usual."""

    def __init__(self, run: str, earlier_calls: list[EarlierCall], request: ReplayParameters) -> None:
        super().__init__(run, earlier_calls)
        self._request = request

    def new(self, call_id: str) -> str:
        """Return our id for a call id that is used again: of the requested call the id in the request, of any other
        call (one inside it) a new one."""
        is_requested = call_id == self._request.text("tool_call_id")
        return self._request.call if is_requested else super().new(call_id)


class ReplayHooks(RecordingHooks):
    """Hooks that record which call the requested call replays."""

    request: ReplayParameters | None = None

    def _tool_step_body(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, our_id: str) -> Body:
        body = super()._tool_step_body(context, agent, tool, our_id)
        if self.request is not None and our_id == self.request.call:
            body |= {"replay_of": self.request.text("replay_of")}
        return body


class ReplayRefused(Exception):
    """The call is not made; the text names the reason. `is_recorded`: the record already contains it."""

    def __init__(self, reason: str, *, by: str = "", is_recorded: bool = False) -> None:
        super().__init__(reason)
        self.by, self.is_recorded = by, is_recorded


class ReplayRun(ClaimedRun):
    """A claimed replay in this process; the worker handles it like an `agent_run.AgentRun`."""

    kind = "replay"

    def __init__(self, claim: Claim, served: ServedTeam, services: WorkerServices, *, limit_s: float) -> None:
        super().__init__(claim, served, services, limit_s=limit_s)
        self._request = ReplayParameters({})
        self._usage = Usage()
        self._hooks = self._new_hooks(ReplayInput(self._request, served.team.context(), [], {}, {}))

    def request_stop(self, level: str) -> None:
        """Pass on a person's request: stop and cancel give a call that has started a few seconds to end, abort does
        not. Requests about conversations and agents' turns do not apply to a replay."""
        if level not in ENDING:
            return
        self._requested_stop = level
        if level == "abort" or not self._hooks.calls.unfinished:
            self.abort()
        else:
            asyncio.get_running_loop().call_later(GRACE, self.abort)

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self._limit_s):
                is_over = await self._replay()
        except Fenced:
            raise
        except asyncio.CancelledError:
            if self._event_writer.is_lost:
                raise Fenced("its lease ended") from None
            if not self._is_aborted:
                raise  # not by us: the loop ends
            if self._requested_stop in ENDING or not await self._services.do(self._requeue_unentered):
                await self._finish(await self._cancelled())
        except ReplayRefused as refused:
            bodies = [] if refused.is_recorded else [self._refusal(refused)]
            await self._finish({"event": "run.cancelled", "reason": f"not run: {refused}"[:2000]}, *bodies)
        except Exception as error:
            await self._failed(error)
        else:
            if is_over:
                await self._finish({"event": "run.done", "usage": total_of(self._usage), **self._spent()})

    async def _replay(self) -> bool:
        """Make the call; return False if the run waits for a person."""
        await self._time_earlier_attempts()
        replay_input: ReplayInput = await self._services.do(load_replay_input, self.claim, self._served.team)
        self._request, self._hooks = replay_input.request, self._new_hooks(replay_input)
        self._knows_earlier_calls = True
        self._gatekeeper = RunGatekeeper(self._event_writer, self._served, self._services.do, self._hooks)
        agent = self._served.team.agent(self.claim.agent)
        self._served.schemas(agent)  # its tools are guarded and watched from now on
        tool = requested_tool(agent, self._request)
        await self._services.do(self._check_arguments, tool)
        decided = replay_input.decided.get(self._request.call)
        if decided is not None and decided.decision == "reject":
            return True
        context = self._context(replay_input, agent, tool)
        with enter_scope(self._scope(replay_input)):
            self._services.bus.enter(self.claim, self._served.team)
            await self._require_enabled(context, agent, tool)
            await self._apply_input_guardrails(context, agent, tool)
            if decided is None and await self._needs_approval(context, tool):
                await self._request_approval(context, agent, tool)
                return False
            self._require_unchanged_tool(context, agent, tool)
            await self._invoke_tool(context, agent, tool)
        return True

    def _new_hooks(self, replay_input: ReplayInput) -> ReplayHooks:
        calls = ReplayCallIds(self.claim.run, replay_input.calls, replay_input.request)
        hooks = ReplayHooks(self._event_writer, calls, ModelTurns(self._event_writer), self._served, self._services.do)
        hooks.request, hooks.decided = replay_input.request, replay_input.decided
        return hooks

    def _check_arguments(self, tool: FunctionTool) -> None:
        if has_redacted(_request_events(self.claim)):
            raise ReplayRefused("the arguments were redacted after it was requested")
        try:
            argument_check.check(self._request.body.get("args") or {}, tool.params_json_schema)
        except Invalid as unfit:
            raise Incompatible(f"the arguments do not match {self._request.text('qualified_name')}: {unfit}") from None

    def _context(self, replay_input: ReplayInput, agent: Agent[Any], tool: FunctionTool) -> ToolContext[Any]:
        raw, call_id = self._request.text("args_raw"), self._request.text("tool_call_id")
        call = ResponseFunctionToolCall(type="function_call", call_id=call_id, name=tool.name, arguments=raw)
        return ToolContext(
            context=replay_input.context, usage=self._usage, tool_name=tool.name, tool_call_id=call_id,
            tool_arguments=raw, tool_call=call, tool_namespace=identity.namespace_of(tool), agent=agent,
            run_config=self._config(),
        )  # fmt: skip

    def _scope(self, replay_input: ReplayInput) -> RunScope:
        return RunScope(
            conversation=self.claim.conversation, run=self.claim.run, hooks=self._hooks, run_config=self._config(),
            on_event=self._on_nested_event, emit=self._write_team_event,
            message_metadata=replay_input.metadata, gatekeeper=self._gatekeeper,
            idempotency_key=self._idempotency_key(replay_input.decided.get(self._request.call)),
        )  # fmt: skip

    def _idempotency_key(self, decided: Decision | None) -> str:
        """Return the key that the tool receives: another one if whoever approved the call changed its arguments."""
        is_edited = decided is not None and decided.arguments is not None
        return self._request.call if is_edited else self._request.idempotency_key

    async def _on_nested_event(self, event: StreamEvent) -> None:
        self._hooks.turns.on_event(current_runner(), event)

    def _write_team_event(self, event: dict[str, Any]) -> None:
        fields = {"agent": self._hooks.acting, "turn": self._hooks.turns.current}
        self._services.bus.emit(
            self._event_writer, fields | event | {"parent_call": current_parent_call() or self._request.call}
        )

    async def _require_enabled(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> None:
        rule = tool.is_enabled
        enabled = rule(context, agent) if callable(rule) else rule
        if not (await enabled if inspect.isawaitable(enabled) else enabled):
            raise ReplayRefused(f"{tool.qualified_name} is disabled (is_enabled)", by="is_enabled")

    async def _apply_input_guardrails(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> None:
        """Check the call with the gate and the team's guardrails. Raises ReplayRefused."""
        for guardrail in tool.tool_input_guardrails or ():
            result = await guardrail.run(ToolInputGuardrailData(context=context, agent=agent))
            if result.behavior["type"] != "allow":
                is_gate = isinstance(guardrail, gate.PolicyGuardrail)  # which has told the record
                message = result.behavior.get("message") or f"the guardrail {guardrail.get_name()} stopped it"
                raise ReplayRefused(str(message), by=f"guardrail {guardrail.get_name()}", is_recorded=is_gate)

    async def _needs_approval(self, context: ToolContext[Any], tool: FunctionTool) -> bool:
        rule: Any = tool.needs_approval
        if not callable(rule):
            return bool(rule)
        needs_approval = rule(context, self._request.body.get("args") or {}, context.tool_call_id)
        return bool(await needs_approval if inspect.isawaitable(needs_approval) else needs_approval)

    async def _request_approval(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> None:
        """Suspend the run until a person has decided."""
        item = self._item(context, agent, tool)
        rules = await self._gatekeeper.rules()
        requests = run_approvals.pending_requests(
            [item], self._hooks.calls, self._served, self._hooks.turns.current, rules
        )
        signed_state = saved_state.sign(self.claim.run, SavedState("replay", 0), saved_state.tools_hash([item]))
        more: Body = {"replay_of": self._request.text("replay_of")}
        await self._services.do(self._suspend, [truncate_fields(body | more) for body in requests], signed_state)

    def _suspend(self, requests: list[Body], signed_state: SignedRunState) -> None:
        state, mac, sdk = signed_state
        claims.suspend(self.claim, "approval", *requests, state=state, state_mac=mac, sdk=sdk)

    def _require_unchanged_tool(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> None:
        """Raise Incompatible if the tool of an approved call is not the one for which approval was requested."""
        if self.claim.state is None:
            return
        _, then = saved_state.verify(self.claim)
        if saved_state.tools_hash([self._item(context, agent, tool)]) != then:
            raise Incompatible(f"the requested tool has changed: {tool.qualified_name}")

    def _item(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> ToolApprovalItem:
        assert context.tool_call is not None
        return ToolApprovalItem(
            agent=agent, raw_item=context.tool_call, tool_name=tool.name, tool_namespace=context.tool_namespace,
            tool_lookup_key=identity.key_of(tool),
        )  # fmt: skip

    async def _invoke_tool(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> None:
        await self._hooks.on_tool_start(context, agent, tool)  # `executing` is committed
        try:
            output = await invoke_function_tool(function_tool=tool, context=context, arguments=context.tool_arguments)
            self._require_no_nested_approval(context, tool)
            output = await self._apply_output_guardrails(context, agent, tool, output)
        except Fenced:
            raise
        except Exception as error:
            self._hooks.failed(context.tool_call_id, as_timeout(error))
            raise
        await self._hooks.on_tool_end(context, agent, tool, output)

    def _require_no_nested_approval(self, context: ToolContext[Any], tool: FunctionTool) -> None:
        """Raise UserError if an agent inside the call stopped for an approval, because it could not be resumed."""
        assert context.tool_call is not None
        scope_id = get_agent_tool_state_scope(context)
        inner = consume_agent_tool_run_result(context.tool_call, scope_id=scope_id)
        if inner is not None and inner.interruptions:
            raise UserError(f"an agent inside {tool.qualified_name} needs approval, which a replay cannot wait for")

    async def _apply_output_guardrails(
        self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, output: Any
    ) -> Any:
        """Check the call's output with the team's output guardrails; a guardrail may replace it."""
        for guardrail in tool.tool_output_guardrails or ():
            looked = await guardrail.run(ToolOutputGuardrailData(context=context, agent=agent, output=output))
            if looked.behavior["type"] == "reject_content":
                return looked.behavior["message"]
            if looked.behavior["type"] != "allow":
                raise UserError(f"the tool ran, but the output guardrail {guardrail.get_name()} withholds its output")
        return output

    async def _failed(self, error: Exception) -> None:
        if self._event_writer.is_lost:
            raise Fenced("lost") from error
        if isinstance(error, Incompatible):
            await self._finish({"event": "run.incompatible", "reason": str(error), **await self._in_doubt()})
            return
        reason, text = ("context" if isinstance(error, ContextRefused) else "error"), reason_of(error)
        ended = self._hooks.ended_by(error)
        await self._finish(await self._failure(error, reason, text), *ended)

    def _refusal(self, refused: ReplayRefused) -> Body:
        """Record that the call is not made; the gate records its own refusals."""
        body: Body = {"event": "policy.refused", "reason": str(refused)[:2000], "by": refused.by}
        names = ("agent", "tool_call", "tool_call_id", "name", "namespace", "qualified_name", "lookup_key", "schema")
        return body | {name: self._request.body.get(name) for name in (*names, "args_raw", "args", "replay_of")}

    async def _finish(self, end: Body, *before: Body) -> None:
        """End the run. The agents' memory and the team's context are not changed."""
        await self._event_writer.store(
            *self._hooks.turns.broken(), *before, end | KIND, in_same_transaction=self._clear_saved_state
        )


def request_of(claim: Claim) -> ReplayParameters:
    """Read the request for which a replay's run was queued. Sync."""
    body = _request_events(claim).values_list("body", flat=True).first()
    return ReplayParameters(json.loads(body) if body else {})


def _request_events(claim: Claim) -> QuerySet[Event]:
    events = Event.objects.filter(conversation__key=claim.conversation, seq=claim.input_seq, kind="replay.requested")
    return events.filter(run=claim.run)


def load_replay_input(claim: Claim, team: Team) -> ReplayInput:
    """Read what a claimed replay needs. Sync. Raises ContextRefused, Incompatible if it belongs to another team."""
    request = request_of(claim)
    if request.text("team") != team.name:
        raise Incompatible(f"this worker does not run the team {request.text('team')}")
    memory = session.load(claim.conversation, newest=1, days=settings.CONFIG.session_days)
    saved = fork_memory.saved_context(Conversation.objects.get(key=claim.conversation), memory, team.name)
    context, decided = team_context.read(team.context, saved, claim.conversation), stored_decisions.decisions(claim.run)
    return ReplayInput(request, context, known_calls(claim), decided, _metadata(claim, request))


def requested_tool(agent: Agent[Any], request: ReplayParameters) -> FunctionTool:
    """Find the tool by its registered identity, as it was when the replay was requested. Raises Incompatible."""
    expected, name = identity_in(request.body), request.text("qualified_name")
    for tool in agent.tools:
        layers = identity.layers(tool) if isinstance(tool, FunctionTool) else {}
        if layers and identity_in(layers) == expected:
            if layers["schema"] != request.body.get("schema"):
                raise Incompatible(f"{name} has changed since the replay was requested: request it again")
            assert isinstance(tool, FunctionTool)
            return tool
    raise Incompatible(f"{agent.name} no longer has the tool {name}")


def _metadata(claim: Claim, request: ReplayParameters) -> Mapping[str, Any]:
    """Return the metadata of the message that the first call's run answered, because hops continue to be counted."""
    run = ToolCall.objects.filter(id=request.text("replay_of")).values_list("run", flat=True).first()
    seq = Run.objects.filter(id=run).values_list("input_seq", flat=True).first() if run else None
    messages = Event.objects.filter(conversation__key=claim.conversation, seq=seq or 0, kind="message")
    body = messages.values_list("body", flat=True).first()
    return metadata_of(body) if body else {}
