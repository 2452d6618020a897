"""One claimed run, from its claim to its end: the SDK's streamed run, recorded as it proceeds.

Every outcome is handled here: done, waiting, failed with the actual reason, cancelled, incompatible, returned to the
queue; or the fence was lost, and nothing more is written.
"""

import asyncio
import contextlib
import logging
from functools import partial
from typing import Any

from agents import MaxTurnsExceeded, RunConfig, Runner, RunState, StreamEvent, ToolApprovalItem
from agents.result import RunResultStreaming
from django.conf import settings

from agents_app.memory import team_context
from agents_app.memory.interjections import InterjectionFilter
from agents_app.memory.session import DjangoSession
from agents_app.open_responses.request import Limited, Unfit
from agents_app.open_responses.response_run import ResponseRun, reply_to
from agents_app.recorded_values import reason_of, truncate_fields
from agents_app.run_scope import RunScope, current_parent_call, current_runner, enter_scope
from agents_app.teams.served_team import ServedTeam
from agents_app.worker import run_approvals, saved_state
from agents_app.worker.budget_watch import BudgetWatch
from agents_app.worker.call_ids import CallIdMap, EarlierCall
from agents_app.worker.claimed_run import ClaimedRun, WorkerServices
from agents_app.worker.error_location import place_of
from agents_app.worker.gatekeeper import RunGatekeeper
from agents_app.worker.model_turns import ModelTurns, TurnTooLarge
from agents_app.worker.next_step_messages import MessageDelivery
from agents_app.worker.run_hooks import RecordingHooks, total_of
from agents_app.worker.run_input import RunInput, ServerAway, load_run_input, restore_run_state
from agents_app.worker.saved_state import Incompatible, SavedState, SignedRunState
from conversations.core.errors import Fenced, SwitchboardError
from conversations.core.failpoints import failpoint
from conversations.events import log
from conversations.models import Conversation
from conversations.models.run import ENDING
from conversations.runs import claims
from conversations.runs.claims import Body, Claim

logger = logging.getLogger(__name__)

GRACE = 5.0  # seconds that calls which have begun get to end when a person cancels their run
STOP_LEVELS = ("", "park", "pause", "stop", "cancel", "abort")  # each overrides those on its left; park: by the worker
UNWIND = 5.0  # seconds for the SDK's own tasks to end


class AgentRun(ClaimedRun):
    """A claimed run in this process."""

    def __init__(self, claim: Claim, served: ServedTeam, services: WorkerServices, *, limit_s: float) -> None:
        super().__init__(claim, served, services, limit_s=limit_s)
        self._result: RunResultStreaming | None = None
        self._memory: DjangoSession | None = None  # read by `_open`, with the handler
        self._handler = ""
        self._excess: TurnTooLarge | None = None
        self._reply: ResponseRun | None = None  # to a client of the responses API
        self._budget = BudgetWatch(claim, services.do)
        self._hooks = self._new_hooks([], 0)  # until `_open` knows earlier attempts

    def request_stop(self, level: str) -> None:
        """Pass on a request by a person (pause, stop, cancel, abort) or the worker (park); the strongest one
        applies."""
        if STOP_LEVELS.index(level) <= STOP_LEVELS.index(self._requested_stop) or self.has_ended or self._task is None:
            return
        self._requested_stop = level
        if level == "abort":
            self.abort()
        elif self._result is not None and (level != "cancel" or self._hooks.calls.unfinished):
            self._result.cancel(mode="after_turn")
            if level == "cancel":
                asyncio.get_running_loop().call_later(GRACE, self.abort)
        elif level == "cancel":
            self.abort()

    async def _run(self) -> None:
        try:
            async with asyncio.timeout(self._limit_s):
                run_input = await self._open()
                if self._reply is None and not await self._may_begin():
                    return
                result = await self._execute(run_input)
        except Fenced:
            raise
        except asyncio.CancelledError:
            await self._unwind()
            if self._event_writer.is_lost:
                raise Fenced("its lease ended") from None
            if not self._is_aborted:
                raise  # not by us: the loop ends
            await self._cancel()
        except ServerAway as away:
            await self._services.do(self._suspend_for_server, away)
        except Exception as error:
            await self._unwind()
            await self._fail(error)
        else:
            await self._end(result)

    async def _open(self) -> RunInput:
        await self._time_earlier_attempts()
        run_input: RunInput = await self._services.read(load_run_input, self.claim, self._served.team)
        self._memory, self._handler = run_input.memory, run_input.handler
        if run_input.request is not None:
            reply = await reply_to(
                self.claim, run_input.request, self._served, self._services.do, self._services.hosted
            )
            self._reply, self._served = reply, reply.served
            self._event_writer.keeps_lengths = True
            reply.set_response_id(run_input.context)
        self._hooks = self._new_hooks(run_input.calls, run_input.turns)
        self._knows_earlier_calls = True
        self._gatekeeper = RunGatekeeper(self._event_writer, self._served, self._services.do, self._hooks)
        self._delivery = MessageDelivery(self._event_writer, self._services, run_input.memory, self._hooks.turns)
        self._interjection_filter = InterjectionFilter((), (), self._delivery.take, has_begun=False)
        if self._reply is not None and self._reply.unfit is not None:
            raise self._reply.unfit
        return run_input

    def _new_hooks(self, earlier_calls: list[EarlierCall], turns: int) -> RecordingHooks:
        calls, model_turns = CallIdMap(self.claim.run, earlier_calls), ModelTurns(self._event_writer, turns)
        if self._reply is not None:
            hooks: RecordingHooks = self._reply.new_hooks(self._event_writer, calls, model_turns, self._services.do)
        else:
            hooks = RecordingHooks(self._event_writer, calls, model_turns, self._served, self._services.do)
        hooks.on_excess = self._exceeded
        hooks.on_progress = self._check_budget
        return hooks

    async def _execute(self, run_input: RunInput) -> RunResultStreaming:
        """Run the agent until it stops. Raises the SDK's errors, Incompatible, TimeoutError, Fenced."""
        agent = self._served.team.agent(self.claim.agent)
        model_input: str | list[Any] | RunState[Any, Any] = self._reply.items if self._reply else run_input.sdk_input
        more: dict[str, Any] = {"context": run_input.context}
        if self.claim.state is not None:
            model_input, more = await self._restore_state(run_input), {}
        config = self._config()
        scope = RunScope(
            conversation=self.claim.conversation,
            run=self.claim.run,
            hooks=self._hooks,
            run_config=config,
            on_event=self._on_nested_event,
            emit=self._write_team_event,
            message_metadata=run_input.metadata,
            **(self._reply.of_scope if self._reply else {}),
            is_resumed=self.claim.state is not None,
            gatekeeper=self._gatekeeper,
        )
        self._services.bus.enter(self.claim, self._served.team)
        with enter_scope(scope):
            result = self._result = Runner.run_streamed(
                agent, model_input, max_turns=self._served.team.max_turns, hooks=self._hooks, run_config=config,
                session=None if self._reply else self._memory, **more,
            )  # fmt: skip
            if self._requested_stop:
                result.cancel(mode="after_turn")
            async for event in result.stream_events():
                self._hooks.turns.on_event(current_runner(), event)
                if self._reply is not None:
                    self._reply.on_event(event)
        if self._excess is not None:
            raise self._excess
        return result

    def _config(self) -> RunConfig:
        config = super()._config()
        config.call_model_input_filter = self._reply.filter_input if self._reply else self._interjection_filter
        return config

    async def _may_begin(self) -> bool:
        """Return whether budgets allow it to start or continue; otherwise it has ended, or waits for approval."""
        if why := await self._budget.refusal():
            await self._finish({"event": "run.cancelled", "reason": why, **await self._in_doubt()})
            return False
        return not await self._budget.suspend_if_spent(self._hooks.turns.current)

    async def _check_budget(self, agent: str) -> None:
        if self._reply is None and await self._budget.look(agent) and self._result is not None:
            self._result.cancel(mode="after_turn")

    async def _restore_state(self, run_input: RunInput) -> RunState[Any, Any]:
        """Restore the saved state, and apply the decisions. Raises Incompatible, ServerAway."""
        state, saved = await restore_run_state(self.claim, run_input, self._served.team, self._services.away)
        self._hooks.turns.last = max(saved.turns, run_input.turns)
        self._hooks.decided = run_input.decided
        self._interjection_filter = InterjectionFilter(
            saved.interjections, run_input.missed.all, self._delivery.take, has_begun=True
        )
        run_approvals.apply_to_state(state, self._hooks.calls, run_input.decided)
        return state

    async def _on_nested_event(self, event: StreamEvent) -> None:
        """Handle what streams inside a call; an exception here would end only the call."""
        try:
            self._hooks.turns.on_event(current_runner(), event)
        except TurnTooLarge as error:
            self._exceeded(error)

    def _exceeded(self, error: TurnTooLarge) -> None:
        """End the run, because a model inside a call has sent too much."""
        self._excess = error
        if self._result is not None:
            self._result.cancel(mode="immediate")

    def _write_team_event(self, event: dict[str, Any]) -> None:
        parent = current_parent_call()
        fields = {"agent": self._hooks.acting, "turn": self._hooks.turns.current}
        body = fields | event | ({"parent_call": parent} if parent else {})
        self._services.bus.emit(self._event_writer, body)

    async def _end(self, result: RunResultStreaming) -> None:
        """Handle the end of the stream: the run waits, was stopped at the end of a turn, or is done."""
        if self._event_writer.is_lost:
            raise Fenced("lost")
        try:
            asks = self._reply.to_ask(result.interruptions) if self._reply else result.interruptions
            if asks and self._requested_stop not in ENDING:
                await self._request_approvals(result, asks)
            elif self._reply is not None and result.interruptions and not asks:
                await self._finish_result(result)  # with calls that are the client's to answer
            elif self._budget.reached and not self._requested_stop and result.final_output is None:
                request = self._budget.build_request(self._hooks.turns.current)
                await self._services.do(self._suspend, "approval", [request], self._signed_state(result))
                failpoint("after-budget")
            elif self._requested_stop and result.final_output is None:
                await self._stop(result)
            else:
                await self._finish_result(result)
        except Fenced:
            raise
        except Exception as error:  # such as a state or a context that cannot be saved
            await self._fail(error)

    async def _finish_result(self, result: RunResultStreaming) -> None:
        context = team_context.write(result.context_wrapper.context)
        bodies: list[Body] = []
        final = result.final_output if isinstance(result.final_output, str) else None
        is_said = result.last_agent.output_type not in (None, str) and bool(
            self._hooks.last_text
        )  # unwrapped by the SDK
        if final and final != self._hooks.last_text and not is_said:  # a tool's result is the answer
            bodies.append(
                {
                    "event": "output",
                    "agent": result.last_agent.name,
                    "turn": self._new_turn(),
                    "text": final,
                    "final": True,
                }
            )
        spent = None if self._hooks.has_unknown_usage else total_of(result.context_wrapper.usage)
        done: Body = {"event": "run.done", "usage": spent}
        if self._reply is not None:
            bodies += self._reply.called(result.interruptions, self._hooks.calls, self._hooks.turns.current)
            saved_context = context if self._reply.keeps_context else None
            await self._finish(done | self._spent(), *bodies, *self._reply.answer.refusals(), context=saved_context)
            return
        await self._finish(done | self._spent(), *bodies, last_agent=result.last_agent.name, context=context)

    async def _request_approvals(self, result: RunResultStreaming, asks: list[ToolApprovalItem]) -> None:
        """Suspend the run until people have decided about these calls."""
        turn = self._hooks.turns.current
        rules = await self._gatekeeper.rules()
        requests = run_approvals.pending_requests(asks, self._hooks.calls, self._served, turn, rules)
        await self._services.do(self._suspend, "approval", requests, self._signed_state(result))

    async def _stop(self, result: RunResultStreaming) -> None:
        """Handle a requested stop at the end of a turn: by a person, or because the worker stops."""
        if self._requested_stop in ENDING:
            await self._cancel()
        elif self._requested_stop == "pause":
            await self._services.do(self._suspend, "pause", [], self._signed_state(result))
        else:
            await self._services.do(self._requeue, "the worker stopped", self._signed_state(result))

    async def _cancel(self) -> None:
        if self._requested_stop not in ENDING and self._result is None:  # it has begun nothing here
            await self._services.do(claims.requeue, self.claim, "the worker stopped")
            return
        await self._finish(await self._cancelled())

    async def _fail(self, error: BaseException) -> None:
        if self._event_writer.is_lost:
            raise Fenced("lost") from error
        if (unfit := _behind(error, Incompatible)) is not None:
            await self._finish({"event": "run.incompatible", "reason": str(unfit), **await self._in_doubt()})
            return
        if self._reply is not None and self._result is not None and self._reply.is_answer(error):
            try:
                await self._finish_result(self._result)
                return
            except team_context.ContextRefused as refused:
                error = refused
        reason = "max_turns" if isinstance(error, MaxTurnsExceeded) else "error"
        text = reason_of(error)
        if isinstance(error, team_context.ContextRefused):
            reason = "context"
        elif (excess := _behind(error, TurnTooLarge)) is not None:
            reason, text = "output_limit", str(excess)
        elif isinstance(error, Unfit | Limited):
            reason, text = error.code, str(error)
        elif not (isinstance(error, SwitchboardError) or self._is_late(error)):
            logger.warning("a run failed: %s", text)
        ended = self._hooks.ended_by(error)
        failed = await self._failure(error, reason, text)
        at_work = self._result.current_agent if self._result is not None else None
        if location := place_of(error, at_work, self._hooks.turns.current, self._hooks.last_text):
            failed["place"] = location
        await self._finish(failed, *ended)

    def _new_turn(self) -> int:
        self._hooks.turns.last += 1
        return self._hooks.turns.last

    def _signed_state(self, result: RunResultStreaming) -> SignedRunState:
        text = result.to_state().to_string(context_serializer=team_context.to_mapping, strict_context=True)
        return saved_state.sign(
            self.claim.run,
            SavedState(text, self._hooks.turns.current, self._served.team.name, self._interjection_filter.all),
            saved_state.tools_hash(result.interruptions),
        )

    async def _finish(self, end: Body, *before: Body, last_agent: str = "", context: str | None = None) -> None:
        bodies = [*self._hooks.turns.broken(), *before]
        if last_agent and last_agent != self._handler and self._handler in ("", self.claim.agent):
            bodies.append({"event": "conversation.handler", "handler": f"agent:{last_agent}"})
        if self._reply is not None:
            bodies += self._reply.completed(end, bodies, self._result.context_wrapper.usage if self._result else None)
        await self._event_writer.store(
            *bodies, end, in_same_transaction=partial(self._save_memory_and_clear_state, context)
        )

    def _save_memory_and_clear_state(self, context: str | None) -> None:
        """Write the memory and delete the saved state. Sync, with the conversation locked and the fence checked."""
        self._save(context)
        self._clear_saved_state()

    def _suspend(self, reason: str, requests: list[Body], signed_state: SignedRunState) -> None:
        state, mac, sdk = signed_state
        with log.write_transaction():
            Conversation.objects.locked(key=self.claim.conversation)
            self._save(None)
            claims.suspend(self.claim, reason, *map(truncate_fields, requests), state=state, state_mac=mac, sdk=sdk)

    def _suspend_for_server(self, away: ServerAway) -> None:
        """Suspend the run unchanged, because it has not started anything: its tool's MCP server is away."""
        saved = {"state": self.claim.state or "", "state_mac": self.claim.state_mac or "", "sdk": self.claim.sdk or ""}
        claims.suspend(self.claim, "server", about={"server": away.server, "detail": away.why}, **saved)

    def _requeue(self, reason: str, signed_state: SignedRunState) -> None:
        with log.write_transaction():
            Conversation.objects.locked(key=self.claim.conversation)
            self._save(None)
            claims.requeue(self.claim, reason, signed_state=signed_state)

    def _save(self, context: str | None) -> None:
        if self._memory is None:
            return
        self._memory.save(
            team=self._served.team.name, context=context, run=self.claim.run, days=settings.CONFIG.session_days
        )

    async def _unwind(self) -> None:
        """Stop the SDK's own tasks, so that nothing of the run continues."""
        if self._result is None:
            return
        self._result.cancel(mode="immediate")
        task = self._result.run_loop_task
        if task is not None:
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await asyncio.wait({task}, timeout=UNWIND)


def _behind(error: BaseException | None, kind: type[BaseException]) -> BaseException | None:
    """Return the cause of a given type in an error's chain: the SDK wraps the errors of hooks in its own."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__
    return error
