"""The base of `AgentRun` and `ReplayRun`: a claimed run in this process, which the worker starts with `run`, and which
ends, or is lost with its lease."""

import asyncio
import copy
import logging
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from agents import RunConfig

from agents_app.approval_gate.gate import GUARDED_CALLS
from agents_app.open_responses.request_tools import Hosted
from agents_app.teams.served_team import ServedTeam
from agents_app.worker import run_input
from agents_app.worker.event_writer import RunEventWriter
from agents_app.worker.run_bus import RunBus
from agents_app.worker.run_hooks import RecordingHooks, ms_since
from conversations.core import log_format
from conversations.core.database_clock import database_now
from conversations.core.db_threads import RunInThread
from conversations.core.errors import Fenced
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.projections.runs import NEVER_ENTERED
from conversations.models import Conversation, Event, Run, ToolCall
from conversations.models.run import ENDING
from conversations.runs import claims
from conversations.runs.claims import Body, Claim

logger = logging.getLogger(__name__)

BASE_RUN_CONFIG = RunConfig(
    tracing_disabled=True, tool_name_collision_policy="error", tool_execution=GUARDED_CALLS,
    tool_not_found_behavior="return_error_to_model",
)  # fmt: skip
"""Copied for each run: making one with a tool execution reads every type hint of the class, 1 ms."""


class WorkerServices(NamedTuple):
    """The objects that all runs of a worker share."""

    writer: log.WriterThreads
    do: RunInThread
    read: RunInThread
    bus: RunBus
    hosted: Mapping[str, Hosted]
    away: run_input.Away


class ClaimedRun:
    """The common base of an agent's run and a replay. `kind` is its name in the log."""

    kind = "run"
    _hooks: RecordingHooks

    def __init__(self, claim: Claim, served: ServedTeam, services: WorkerServices, *, limit_s: float) -> None:
        self.claim = claim
        self._served, self._services, self._limit_s = served, services, limit_s
        self._event_writer = RunEventWriter(claim, services.writer)
        self._task: asyncio.Task[Any] | None = None
        self._began = time.monotonic()
        self._earlier_ms = 0.0  # since its first start, until this attempt
        self._is_aborted = False
        self._requested_stop = ""  # one of STOP_LEVELS
        self._knows_earlier_calls = claim.attempt == 1  # whether `_hooks` has those of earlier attempts
        self.has_ended = False

    async def run(self) -> None:
        """Execute the run until it ends."""
        self._task = asyncio.current_task()
        with log_format.log_context(run=self.claim.run, conversation=self.claim.conversation):
            try:
                await self._run()
            except Fenced as lost:
                logger.warning("this worker lost the %s: %s", self.kind, lost)
            finally:
                self.has_ended = True
                self._services.bus.leave(self.claim)

    def abort(self) -> None:
        """End it immediately."""
        if not (self.has_ended or self._is_aborted or self._task is None):
            self._is_aborted = True
            self._task.cancel()

    def lose(self) -> None:
        """Stop at once and write nothing, because the run no longer belongs to this worker."""
        self._event_writer.is_lost = True
        self.abort()

    def _config(self) -> RunConfig:
        """Return the SDK's run configuration."""
        config = copy.copy(BASE_RUN_CONFIG)
        config.model_provider = self._served.provider
        config.tool_error_formatter = self._hooks.format_error
        config.workflow_name = self._served.team.name
        return config

    async def _time_earlier_attempts(self) -> None:
        """Have the run's duration begin with its first start: it includes the waits between its attempts."""
        if self.claim.attempt > 1:
            self._earlier_ms = max(0.0, await self._services.read(_started_ms_ago, self.claim) - ms_since(self._began))

    def _spent(self) -> Body:
        return {"duration_ms": self._earlier_ms + ms_since(self._began)}

    def _is_late(self, error: BaseException) -> bool:
        return isinstance(error, TimeoutError) and time.monotonic() - self._began >= self._limit_s

    async def _in_doubt(self) -> Body:
        """Return the calls that were entered and have not ended, as the end of a run lists them: their effect is
        unknown. A run that ends while it is opened has them from the record."""
        if self._knows_earlier_calls:
            return self._hooks.calls.in_doubt()
        calls = await self._services.do(ToolCall.objects.executing_in, self.claim.run)
        return {"calls": calls} if calls else {}

    async def _cancelled(self) -> Body:
        """Return the `run.cancelled` of a run that a person or its stopping worker ends."""
        why = "asked to stop" if self._requested_stop in ENDING else "the worker stopped before the run ended"
        return {"event": "run.cancelled", "reason": why, **await self._in_doubt()}

    async def _failure(self, error: BaseException, reason: str, text: str) -> Body:
        """Return the `run.failed` of an error; for a run that took too long, with that reason."""
        if self._is_late(error):
            reason, text = "timeout", f"not finished within {self._limit_s:g} s"
        failed: Body = {"event": "run.failed", "reason": reason, "error": text}
        return failed | self._spent() | await self._in_doubt()

    def _requeue_unentered(self) -> bool:
        """Queue the run again, because its worker stops; False if a call of it has begun or ended. Sync."""
        with write_transaction():
            Conversation.objects.locked(key=self.claim.conversation)
            if ToolCall.objects.filter(run=self.claim.run).exclude(status__in=NEVER_ENTERED).exists():
                return False
            claims.requeue(self.claim, "the worker stopped")
        return True

    def _clear_saved_state(self) -> None:
        """Delete the saved state of a run that ends. Sync, with the conversation locked and the fence checked."""
        if self.claim.state is not None:
            Run.objects.filter(id=self.claim.run).update(state=None, state_mac=None)

    async def _run(self) -> None:
        raise NotImplementedError


def _started_ms_ago(claim: Claim) -> float:
    """Return how many ms ago a run first started, by the database's clock. Sync."""
    started = Event.objects.filter(conversation__key=claim.conversation, seq__gt=claim.input_seq, run=claim.run)
    at = started.filter(kind="run.started").order_by("seq").values_list("at", flat=True).first()
    return (database_now() - at) / 1000 if at is not None else 0.0
