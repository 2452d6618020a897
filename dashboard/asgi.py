"""The process: raw endpoints and the socket beside Django, and the server runtime in the lifespan. It alone knows them
all."""

import asyncio
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

import django

django.setup(set_prefix=False)

from django.conf import settings
from django.urls import get_resolver
from django.utils.module_loading import import_string
from servestatic import ServeStaticASGI

from conversations.access.audit import refusal_counter
from conversations.alerts.dispatcher import Dispatcher
from conversations.asgi import route
from conversations.asgi.agui.routes import PREFIX as AGUI
from conversations.asgi.agui.routes import AguiRoutes
from conversations.asgi.checkpoint import PATHS as CHECKPOINTS
from conversations.asgi.checkpoint import CheckpointEndpoint
from conversations.asgi.coding_agent_hooks import PREFIX as HOOKS
from conversations.asgi.coding_agent_hooks import HooksEndpoint
from conversations.asgi.event_feed import PATH as FEED
from conversations.asgi.event_feed import EventFeedEndpoint
from conversations.asgi.external_approvals_endpoint import PATH as APPROVAL_REQUESTS
from conversations.asgi.external_approvals_endpoint import ApprovalRequestEndpoint
from conversations.asgi.health import HealthEndpoint
from conversations.asgi.import_upload import ImportEndpoint
from conversations.asgi.local_door import LocalDoorEndpoint
from conversations.asgi.metrics import MetricsEndpoint
from conversations.asgi.publish import PublishEndpoint, ReportEndpoint
from conversations.asgi.responses.routes import PREFIX as OPEN
from conversations.asgi.responses.routes import ResponsesRoutes
from conversations.asgi.responses.shared import ResponsesContext
from conversations.asgi.responses.shared import refuse as refuse_openly
from conversations.asgi.responses.websocket import ResponsesSocket
from conversations.asgi.route import Endpoint, Receive, Scope, Send, refuse
from conversations.asgi.socket_consumer import EventsConsumer
from conversations.asgi.telemetry import LOGS, TRACES, TelemetryEndpoint
from conversations.asgi.telemetry import refuse as refuse_telemetry
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.asgi.topics import PREFIX as TOPICS
from conversations.asgi.topics import TopicEndpoint
from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.errors import Unavailable
from conversations.events.log import commit_batch, discard_staged
from conversations.evidence.checkpointer import Checkpointer
from conversations.realtime.server_runtime import ServerRuntime
from conversations.redaction.retention_job import RetentionJob
from conversations.runs.approvals import external_approvals, overdue_requests
from conversations.search import Indexer
from dashboard.cli import COLLECT
from dashboard.demo import Demo
from dashboard.server import memory_allocator, starting_page
from dashboard.server.django_handler import PageHandler
from dashboard.server.request_ids import with_request_id
from dashboard.server.request_scheme import https_hosts, with_browser_scheme
from dashboard.server.trusted_proxies import apply_forwarded_for

logger = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.0001  # seconds: the loop and the writer get their turn beside busy threads
REQUESTS_EVERY = 5.0  # seconds between looks for approval requests that are over
STAGED_EVERY = 3600.0  # seconds between looks for what abandoned imports have staged
REFUSALS_EVERY = 20.0  # seconds between looks at what was counted
ALWAYS = ("/healthz", "/readyz")  # answered before the start is over, too
TEAMS, LOADING = "teams", "loading its agents"  # a part that is not ready until they are imported
PUBLISH = "/api/v1/publish"
RESPONSES = "/v1/responses"
PROXIES = settings.CONFIG.trusted_proxies
SECURE_HOSTS = https_hosts(settings.CONFIG.allowed_origins)


class ProcessPart(Protocol):
    """A thread of this process that is started once."""

    @property
    def state(self) -> str:
        """`ok`, or what is wrong with it."""

    def start(self) -> None:
        """Begin its work."""

    def close(self) -> None:
        """End it, and wait for its end."""


class Application:
    """Routes by path; owns the runtime's life."""

    start_failure: Exception | None = None  # why it could not start, for `serve` to say
    end: Callable[[], object] = staticmethod(lambda: None)  # set by `serve`: ends the process in order
    _checkpoint = CheckpointEndpoint()

    def __init__(self) -> None:
        self.runtime = ServerRuntime()
        self.authenticator = TokenAuthenticator()
        self.local_door = LocalDoorEndpoint(settings.DATA_DIR, self.authenticator)
        self.demo = Demo(self.runtime)
        self.url = ""  # set by `serve` when it holds the data directory: its address
        self.is_web_only = False  # waits for a database that others bring up to date
        self.with_demo = False
        self.agents_settled = asyncio.Event()  # they are loaded, or will not be
        context = ResponsesContext(self.runtime, self.authenticator)
        responses = ResponsesRoutes(context)
        telemetry = TelemetryEndpoint(self.runtime, self.authenticator)
        hooks = HooksEndpoint(self.runtime, self.authenticator)
        self._endpoints: dict[str, Endpoint] = {
            PUBLISH: PublishEndpoint(self.runtime, self.authenticator),
            "/api/v1/report": ReportEndpoint(self.runtime, self.authenticator),
            **dict.fromkeys((f"{HOOKS}claude-code", f"{HOOKS}codex"), hooks),
            FEED: EventFeedEndpoint(self.runtime, self.authenticator),
            APPROVAL_REQUESTS: ApprovalRequestEndpoint(self.runtime, self.authenticator),
            "/api/v1/import": ImportEndpoint(self.authenticator, self.runtime.socket_registry),
            "/api/v1/door": self.local_door,
            TRACES: telemetry,
            LOGS: telemetry,
            OPEN.rstrip("/"): responses,
            **dict.fromkeys(ALWAYS, HealthEndpoint(self.runtime)),
            "/metrics": MetricsEndpoint(self.runtime),
        }
        topics = TopicEndpoint(self.authenticator, self.runtime.socket_registry)
        self._endpoints_below: dict[str, Endpoint] = {TOPICS: topics, OPEN: responses, AGUI: AguiRoutes(context)}
        self._sockets: dict[str, Endpoint] = {
            "/ws/": EventsConsumer.as_asgi(runtime=self.runtime, authenticator=self.authenticator),
            RESPONSES: ResponsesSocket(context),
        }
        self._pages = PageHandler(self.runtime.socket_registry)
        self._tasks: list[asyncio.Task[None]] = []
        self._has_started = False
        self._parts = contextlib.AsyncExitStack()  # closes what was started here, the newest first
        self._worker: Any = None  # agents_app's, known by its dotted name alone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        scope = apply_forwarded_for(with_browser_scheme(scope, SECURE_HOSTS, PROXIES), PROXIES)
        if scope["type"] == "websocket":
            endpoint = self._sockets.get(scope["path"]) if self._has_started else None
            await self._until_agents_are_known(scope)
            await (endpoint or _no_such_socket)(scope, receive, send)
        else:
            await with_request_id(self._answer, scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        await self._until_agents_are_known(scope)
        if path not in ALWAYS and not self._has_started:
            starting = Unavailable(f"this server is {self.runtime.state}")
            if path == PUBLISH:
                self.runtime.publishes[starting.status] += 1
            if path in (TRACES, LOGS):
                await refuse_telemetry(scope, send, starting)
            elif starting_page.is_for_browser(scope):
                await starting_page.send_page(scope, send, self.runtime.state)
            else:
                await (refuse_openly if path.startswith(OPEN) else refuse)(send, starting)
            return
        await self._endpoint(path)(scope, receive, send)

    async def _until_agents_are_known(self, scope: Scope) -> None:
        """Let what changes anything or names an agent wait until agents are loaded: a message to one that nobody knows
        yet would start no run."""
        is_read = scope.get("method", "GET") in ("GET", "HEAD") and not scope["path"].startswith(OPEN)
        if self._has_started and not is_read:
            await self.agents_settled.wait()

    def _endpoint(self, path: str) -> Endpoint:
        if endpoint := self._endpoints.get(path):
            return endpoint
        if path in CHECKPOINTS:
            return self._checkpoint
        return next(
            (endpoint for prefix, endpoint in self._endpoints_below.items() if path.startswith(prefix)), self._pages
        )

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self._start()
                except Unavailable as error:
                    self.start_failure = error
                    await send({"type": "lifespan.startup.failed", "message": error.message})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _start(self) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL)
        if self.is_web_only:
            self._keep(self._begin(), "start")
        else:
            await self._begin()

    async def _begin(self) -> None:
        memory_allocator.give_back_freed()
        self.runtime.url = self.runtime.url or self.url
        await self.runtime.start(waits=self.is_web_only)
        self._index()
        self._start_part(Dispatcher(self.runtime.url), "alerts")
        self._start_part(RetentionJob(), "retention")
        await asyncio.to_thread(self._export)
        self._sign()
        if self.url:
            self.local_door.open(self.url)
        self._keep(run_forever(_write_refusals, what="counting refusals"), "refusals")
        self._keep(run_forever(_end_requests, what="ending approval requests"), "approval requests")
        if settings.CONFIG.database_url:  # a file's is removed before it is served: all the rest is of live imports
            self._keep(run_forever(_discard_staged, what="removing abandoned imports"), "abandoned imports")
        self._has_started = True
        gc.set_threshold(*COLLECT)
        if self.url:
            self.runtime.further_parts[TEAMS] = lambda: LOADING
        self._keep(self._begin_agents(), "agents")

    async def _begin_agents(self) -> None:
        """Import pages, then the agents' SDK and the teams, which is most of a start; pages are served meanwhile."""
        try:
            await asyncio.to_thread(_import_pages)
            if self.url:
                await asyncio.to_thread(self.load_agents)
                await self._work()
                self._record()
        except Exception as error:
            self.start_failure = error
            self.end()
        else:
            self.runtime.further_parts.pop(TEAMS, None)
            if self.with_demo:
                self._keep(self.demo.run(), "demo")
            gc.freeze()  # without a collection before: it takes 0.2 s and frees some 60 objects
        finally:
            self.agents_settled.set()

    def _record(self) -> None:
        """Record Redis in this process, where it is the only one: with PostgreSQL `record` does."""
        if not settings.CONFIG.redis_url or settings.CONFIG.database_url:
            return
        from conversations.transport.recorder import EmbeddedRecorder

        recorder = EmbeddedRecorder(settings.CONFIG.redis_url)
        self._start_part(recorder, "recorder")
        self.runtime.further_parts["redis"] = lambda: recorder.service.redis

    def _index(self) -> None:
        """Keep the search index in this process: of several on PostgreSQL one does, the others stand by."""
        self.runtime.indexer = Indexer()
        self._start_part(self.runtime.indexer, "search")

    def _export(self) -> None:
        """Send traces of runs to a collector, where one is set: of several processes one does, the others stand by."""
        if not settings.CONFIG.otlp_endpoint:
            return
        from conversations.telemetry_export.exporter import Exporter

        self._start_part(Exporter(), "export")

    def _sign(self) -> None:
        """Sign the record each minute, and show that to witnesses: of several processes the one that has the keys."""
        config = settings.CONFIG
        whom, keys = config.witness_list, config.witness_key_list
        path, allowed = config.signing_key_path, config.alert_allow_list
        self._start_part(Checkpointer(path, config.record_name, whom, keys, allowed), "signing")

    def _start_part(self, part: ProcessPart, name: str) -> None:
        """Start a part of this process and show its state by this name; it is closed when the process stops."""
        part.start()
        self._parts.push_async_callback(asyncio.to_thread, part.close)
        self.runtime.further_parts[name] = lambda: part.state

    def load_agents(self) -> None:
        """Import the agents' SDK and the teams. Raises Unavailable for a wrong team."""
        if settings.WORKER:
            self._worker = import_string(settings.WORKER)(self.runtime.writer)

    async def _work(self) -> None:
        """Run agents in this process, in a thread of their own; go on when the record knows them."""
        if (worker := self._worker) is not None and self.runtime.is_ready:  # else it ends already
            worker.start()
            self.runtime.further_parts["agents"] = lambda: worker.state
            await asyncio.to_thread(worker.wait_until_registered)

    async def drain(self) -> None:
        """End the agents' runs while there is somebody to write it; then take nothing more and write what is queued."""
        self.runtime.state = "stopping"
        if self._worker is not None:
            await asyncio.to_thread(self._worker.close)
        await self.runtime.drain()

    def _keep(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_log_failure)
        self._tasks.append(task)

    async def _stop(self) -> None:
        await cancel_all(self._tasks)
        await self._parts.aclose()
        await asyncio.to_thread(_end_imports)
        with contextlib.suppress(Unavailable):  # the database is gone: nothing can be written
            await asyncio.to_thread(refusal_counter.flush, everything=True)
        await self.runtime.stop()
        if self.url:
            with contextlib.suppress(Unavailable):  # the disk is full: the next start reads the log
                await asyncio.to_thread(commit_batch.empty_wal)


def _end_imports() -> None:
    """End what is being imported from a browser: its thread would keep the process."""
    from dashboard.browser_import import jobs  # late: with the pages

    jobs.stop()


def _import_pages() -> None:
    """Have them there when the first one is asked for: whoever asked would wait half a second."""
    get_resolver().url_patterns  # noqa: B018  # read once, kept


async def _write_refusals() -> None:
    await asyncio.sleep(REFUSALS_EVERY)
    await asyncio.to_thread(refusal_counter.flush)


async def _discard_staged() -> None:
    await asyncio.to_thread(discard_staged)
    await asyncio.sleep(STAGED_EVERY)


async def _end_requests() -> None:
    """End approval requests whose client is gone or whose deadline has passed. Workers do the latter, too, but external
    agents are watched without any."""
    await asyncio.to_thread(external_approvals.withdraw_abandoned)
    await asyncio.to_thread(overdue_requests.handle_due)
    await asyncio.sleep(REQUESTS_EVERY)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("task %s ended", task.get_name(), exc_info=task.exception())


async def _no_such_socket(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close", "code": 1000})


application = Application()


def with_static(app: Endpoint) -> Any:
    """Serve collected static files in front, hashed names for a year."""
    return ServeStaticASGI(
        app, root=settings.STATIC_ROOT, prefix="static", allow_all_origins=False, add_headers_function=_guard_file
    )


def _guard_file(headers: Any, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Content-Security-Policy"] = route.NO_PAGE_POLICY
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
