"""The worker: claims queued runs and executes many of them in one loop, each as an `AgentRun` or a `ReplayRun` (law F,
§3.4). Run by `runagents` and in `serve`.

    worker = Worker(writer, teams.load())
    await worker.run()      # returns after worker.stop(), called from any thread

Leases are renewed every 5 s, and people's requests take effect within a second. Runs of dead workers are marked as
interrupted; approval requests that match an auto-approval rule are approved, and expired ones are handled.
"""

import asyncio
import logging
import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from django.conf import settings

import switchboard
from agents_app.mcp.tools import McpTools
from agents_app.model_providers.providers import ModelConfig, Provider, configured
from agents_app.open_responses import plain_model_team
from agents_app.open_responses.request_tools import hosted_by
from agents_app.teams import agent_registry
from agents_app.teams.definition import PLAIN_TEAM, Team
from agents_app.teams.served_team import ServedTeam
from agents_app.worker import blocked_runs
from agents_app.worker.agent_run import AgentRun
from agents_app.worker.claimed_run import WorkerServices
from agents_app.worker.replay_run import ReplayRun
from agents_app.worker.run_bus import RunBus
from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Unavailable
from conversations.core.failpoints import failpoint
from conversations.core.gathered_reads import GatheredReads
from conversations.core.node_heartbeat import BEAT_EVERY, Heartbeat, worker_node
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.core.status import OK
from conversations.events import commit_listeners, log, registry
from conversations.events.log.records import Stored
from conversations.models import Run
from conversations.runs import claims, edit_remote_agents, leases
from conversations.runs.approvals import auto_approval, overdue_requests
from conversations.runs.claims import Claim
from conversations.runs.unfinished_work import unfinished_work

logger = logging.getLogger(__name__)

RENEW_EVERY_S = leases.RUN_LEASE_S / 3
LISTEN_EVERY = 0.5  # seconds between looks at what people ask of runs
POLL_EVERY_S = 0.5  # the queue; news in this process wakes it at once
POLL_EVERY_ALONE_S = 5.0  # the same where this process alone writes
AT_A_TIME = 50  # runs claimed in one go
TOOL_THREADS = 32  # a tool that never returns keeps its thread; those that ask PostgreSQL share connections
WAKING = registry.names_with("wakes_worker")


class ToolThreads(DatabaseThreads):
    """Threads for what a worker's loop runs in its default executor: synchronous tools, and looking up host names. A
    loop that ends does not wait for those that are still in a tool."""

    def __init__(self, runs: int) -> None:
        super().__init__("tools", threads=max(TOOL_THREADS, runs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle threads. A busy one ends with its tool: nobody waits for its result anymore."""
        super().shutdown(wait=False, cancel_futures=True)


class Worker:
    """Serves teams. `writer` is the process's own and must be running; it outlives the worker."""

    def __init__(
        self, writer: log.WriterThreads, teams: Sequence[Team], *, config: ModelConfig | None = None,
        per_team: int | None = None, limit_s: float | None = None, stop_s: float | None = None,
    ) -> None:  # fmt: skip
        defaults = settings.CONFIG
        self.name = f"{socket.gethostname()}:{os.getpid()}:{time.time_ns() // 1_000_000 % 10**9}"[:100]
        self._per_team = per_team or defaults.runs_per_team
        self._limit_s = limit_s or defaults.run_s
        self._stop_s = defaults.stop_s if stop_s is None else stop_s
        self._provider = Provider(config or configured())
        hosted = hosted_by(teams)
        self.served_teams = [ServedTeam(team, self._provider) for team in (*teams, plain_model_team.team_of(hosted))]
        self._remote_agents: list[RemoteAgent] = []  # that admins registered, as far as it is served here
        self._threads = DatabaseThreads("runs")
        self._lease_thread = DatabaseThreads("leases")  # waits for nothing that runs do
        self._renewed = asyncio.Event()
        self._mcp = McpTools(self.served_teams, self._do)
        self._bus = RunBus(DatabaseThreads("posts"))
        self._services = WorkerServices(
            writer, self._do, GatheredReads(self._threads).run, self._bus, hosted, self._mcp.away
        )
        self._active_runs: dict[str, tuple[AgentRun | ReplayRun, ServedTeam, asyncio.Task[None]]] = {}
        self._pulse = Heartbeat("worker", self.facts)
        self._pulse.name = worker_node(self.name)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._stopped = asyncio.Event()
        self._is_stopping = False
        self._claiming = asyncio.Lock()
        self.finished_runs = 0
        self.registered = threading.Event()  # the record knows what is served here
        self.is_serving = False

    async def run(self) -> None:
        """Serve until stopped; active runs end, or at the deadline are returned to the queue or ended with the actual
        reason."""
        self._loop = asyncio.get_running_loop()
        if self._is_stopping:  # asked between the making of the worker and this
            return
        self._loop.set_default_executor(ToolThreads(self._per_team * len(self.served_teams)))
        await self._do(agent_registry.register, self.served_teams)
        self.registered.set()
        await self._mcp.start(self._stopped)
        switchboard.set_bus(self._bus)
        self.is_serving = True
        forget = commit_listeners.on_committed(self._on_committed)
        rounds: dict[str, Callable[[], Any]] = {
            "renewing leases": self._renew, "checking for requested stops": self._listen,
            "claiming runs": self._claim_round, "sending the heartbeat": self._beat,
            "looking after runs": self._look_after_runs,
        }  # fmt: skip
        tasks = {name: asyncio.create_task(run_forever(each, what=name), name=name) for name, each in rounds.items()}
        try:
            await self._stopped.wait()
            async with self._claiming:  # what was claimed is begun
                tasks["claiming runs"].cancel()  # nothing more is claimed
            await self._finish()
        finally:
            forget()
            await cancel_all(tasks.values())
            await self._end()

    def stop(self) -> None:
        """End `run`, even if it has not started yet; from any thread."""
        self._is_stopping = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopped.set)

    def facts(self) -> dict[str, Any]:
        """Return the worker's figures for the operations page; its MCP servers are also on the Agents page."""
        teams = Counter(served.team.name for _, served, _ in list(self._active_runs.values()))
        return {
            "running": sum(teams.values()),
            "teams": {r.team.name: teams[r.team.name] for r in self.served_teams},
            "done": self.finished_runs,
            "mcp": self._mcp.states(),
            "warnings": self._mcp_troubles(),
        }

    def trouble(self) -> str:
        """Return which MCP servers are not connected; empty if all are."""
        return "; ".join(self._mcp_troubles())

    def _mcp_troubles(self) -> list[str]:
        states = [
            (team, name, state) for team, servers in self._mcp.states().items() for name, state in servers.items()
        ]
        return [f"MCP server {name} of {team}: {state}" for team, name, state in states if state != OK]

    async def _do(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run database work in a thread."""
        return await self._threads.run(work, *arguments)

    async def _claim_round(self) -> None:
        """Claim the runs that may start now."""
        self._news.clear()
        async with self._claiming:
            for served, room in self._free():
                await self._claim(served, min(room, AT_A_TIME))
        try:
            async with asyncio.timeout(
                POLL_EVERY_S if settings.CONFIG.database_url else POLL_EVERY_ALONE_S
            ):  # `wait_for` may lose the cancellation at the end
                await self._news.wait()
        except TimeoutError:
            return

    async def _claim(self, served: ServedTeam, at_most: int) -> None:
        team = served.team
        # Also of teams that host nothing anymore: a run that names such a team would wait for ever.
        hosts = {other.team.name for other in self.served_teams if team.name == PLAIN_TEAM} - {team.name}
        agents = claims.ServedAgents(team.name, [agent.name for agent in team.agents], team.entry, hosts)
        claimed = await self._do(partial(claims.claim, self.name, agents, at_most=at_most))
        for claim in claimed:
            failpoint("after-lease")
            self._start(claim, served)
        if len(claimed) == at_most:  # there may be more, of which nobody tells
            self._news.set()

    def _free(self) -> list[tuple[ServedTeam, int]]:
        busy = Counter(id(served) for _, served, _ in self._active_runs.values())
        return [(r, self._per_team - busy[id(r)]) for r in self.served_teams if busy[id(r)] < self._per_team]

    def _start(self, claim: Claim, served: ServedTeam) -> None:
        run_class = ReplayRun if claim.kind == "replay" else AgentRun
        active_run: AgentRun | ReplayRun = run_class(claim, served, self._services, limit_s=self._limit_s)
        task = asyncio.create_task(active_run.run(), name=f"run {claim.run}")
        self._active_runs[claim.run] = active_run, served, task
        task.add_done_callback(partial(self._over, claim.run))

    def _over(self, run: str, task: asyncio.Task[None]) -> None:
        if (entry := self._active_runs.get(run)) is not None and entry[-1] is task:
            del self._active_runs[run]  # else the run goes on here already, in its next attempt
        self.finished_runs += 1
        self._news.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a run was abandoned: its lease ends soon", exc_info=error, extra={"run": run})

    async def _renew(self) -> None:
        """Renew the leases of active runs, and end those that were taken over."""
        held = [active_run for active_run, _, _ in self._active_runs.values()]
        renewed = await self._lease_thread.run(claims.renew, [active_run.claim for active_run in held])
        for active_run in held:
            if active_run.claim.run not in renewed and not active_run.has_ended:
                active_run.lose()
        self._renewed.set()
        await asyncio.sleep(RENEW_EVERY_S)

    async def _look_after_runs(self) -> None:
        """Look after dead workers' and waiting runs, after a renewal: if the machine was asleep, this worker's own
        leases have expired, too."""
        await self._renewed.wait()
        self._renewed.clear()
        served_here = {served.team.name: [agent.name for agent in served.team.agents] for served in self.served_teams}
        await self._do(_look_after, served_here, self._holds)
        if servers := self._mcp.connected():
            await self._do(blocked_runs.requeue_runs_with_server, servers)

    def _holds(self, run: Run) -> bool:
        """Return whether a running run is one of this worker's own; from any thread."""
        return run.worker == self.name and run.id in self._active_runs

    async def _listen(self) -> None:
        """Check what people request for the active runs."""
        await asyncio.sleep(LISTEN_EVERY)
        if self._active_runs:
            for run, level in await self._do(_stop_requests, self.name):
                if entry := self._active_runs.get(run):
                    entry[0].request_stop(level)

    async def _serve_remote_agents(self) -> None:
        """Serve the remote agents that admins have registered. A run that has already started is not affected."""
        others = [served for served in self.served_teams if served.team.name != edit_remote_agents.TEAM]
        names = {agent.name for served in others for agent in served.team.agents}
        remotes = [remote for remote in await self._do(edit_remote_agents.registered_now) if remote.name not in names]
        if remotes != self._remote_agents:
            registered = await self._do(self._register_remote_agents, remotes)
            self.served_teams, self._remote_agents = [*others, *registered], remotes
            self._news.set()

    def _register_remote_agents(self, remotes: Sequence[RemoteAgent]) -> list[ServedTeam]:
        """Create their team and write its rows. Sync: the protocol's package is imported with the first one."""
        edit_remote_agents.delete_rows_of_removed()
        if not remotes:
            return []
        from agents_app.agui.remote_team import configured_team

        served_teams = [ServedTeam(configured_team(remotes, edit_remote_agents.TEAM), self._provider)]
        agent_registry.register(served_teams)
        return served_teams

    async def _beat(self) -> None:
        await self._serve_remote_agents()
        await self._do(self._pulse.beat)
        await self._do(agent_registry.renew, self.served_teams)
        await asyncio.sleep(BEAT_EVERY)

    async def _finish(self) -> None:
        """Let active runs end; request a stop at the end of a turn; end them at the deadline."""
        tasks = {task for _, _, task in self._active_runs.values()}
        if tasks:
            await asyncio.wait(tasks, timeout=self._stop_s / 2)
        for level in ("park", "abort"):
            for active_run, _, _ in list(self._active_runs.values()):
                active_run.request_stop(level) if level == "park" else active_run.abort()
            if left := {task for _, _, task in self._active_runs.values()}:
                await asyncio.wait(left, timeout=max(1.0, self._stop_s / 2))

    async def _end(self) -> None:
        """Clean up, as far as the database is available."""
        switchboard.set_bus(None)
        await self._mcp.close()
        await self._provider.aclose()
        for last in (self._pulse.stop, partial(agent_registry.unregister, self.served_teams)):
            try:
                await self._do(last)
            except Unavailable as error:
                logger.warning("worker: %s", error)
        self._threads.shutdown()
        self._lease_thread.shutdown()

    def _on_committed(self, stored: Sequence[Stored]) -> None:
        if self._loop is not None and any(event.kind in WAKING for event in stored):
            try:
                self._loop.call_soon_threadsafe(self._news.set)
            except RuntimeError:  # the loop is closed: nobody claims anymore
                return


def _stop_requests(worker: str) -> list[tuple[str, str]]:
    return list(Run.objects.filter(status="running", worker=worker).exclude(stop="").values_list("id", "stop"))


def _look_after(served_here: Mapping[str, Collection[str]], is_held: Callable[[Run], bool]) -> None:
    """Interrupt dead workers' runs, and look after waiting ones."""
    there_are = unfinished_work()
    if there_are.running:
        leases.interrupt_expired(is_held)
    if there_are.open_requests:
        auto_approval.approve_waiting()
        overdue_requests.handle_due()
    if there_are.queued:
        registered = [
            remote.name for remote in edit_remote_agents.registered_now()
        ]  # by any worker, and there may be none
        blocked_runs.end_orphaned_runs({**served_here, edit_remote_agents.TEAM: registered})
