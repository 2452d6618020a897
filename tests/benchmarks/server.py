"""A server process for benchmarks: our whole application, plus a control route that makes events inside the process.

`python -m tests.benchmarks.server PORT ours|raw|group`: ours under `serve`'s own uvicorn settings; `raw` is a picows
server that only sends ready frames; `group` is a stock Channels consumer behind `group_send` in memory.
"""

import asyncio
import json
import os
import sqlite3
import sys
import threading
import time
from contextlib import closing
from typing import Any
from urllib.parse import parse_qsl

EVENT = '{"event":"log","conversation_id":"f","sender":"a","ts":%.6f,"text":" token","i":0}'


def frame(n: int, seq: int) -> str:
    """Return an events frame as ours look, with the time of sending in each event."""
    items = ",".join(
        f'{{"seq":{seq + i},"kind":"log","at":1766000000000000,"body":{EVENT % time.monotonic()}}}' for i in range(n)
    )
    return f'{{"t":"events","topic":"stream:f","epoch":"0123456789abcdef","events":[{items}]}}'


async def paced(n: int, rate: float, batch: int, emit: Any) -> None:
    """Call `emit(batch)` until n events are out, at `rate` events a second."""
    start = time.monotonic()
    for i in range(0, n, batch):
        wait = start + i / rate - time.monotonic()
        if wait > 0:
            await asyncio.sleep(wait)
        await emit(batch)


def serve(port: int, app: Any) -> None:
    """Run an ASGI app as `manage.py serve` does."""
    import uvicorn

    from dashboard.server.draining_server import config

    uvicorn.Server(config(app, "127.0.0.1", port)).run()


def ours(port: int) -> None:
    """Our application, with `/bench/` in front."""
    from tests.benchmarks import common

    common.set_up()
    from conversations.core import principals
    from conversations.events import log
    from conversations.events.payload import parse
    from conversations.models import Token
    from dashboard.asgi import application

    Token.objects.create(name="bench", role="admin", digest=_digest("bench"), created_by="system")
    robot = principals.token_principal("bench")
    loads: dict[str, Any] = {}

    async def emit(batch: int) -> None:
        bodies = [EVENT % time.monotonic() for _ in range(batch)]
        events = [log.from_bus("stream:f", None, b, parse(b.encode()), robot) for b in bodies]
        await application.runtime.writer.store(events)

    async def control(scope: Any, receive: Any, send: Any) -> None:
        parameters = dict(parse_qsl(scope["query_string"].decode()))
        if "n" in parameters:
            await paced(int(parameters["n"]), float(parameters["rate"]), int(parameters["batch"]), emit)
        if "fill" in parameters:
            big = log.from_internal("g", {"event": "log", "text": "x" * 200_000}, robot)
            for _ in range(int(parameters["fill"])):
                await application.runtime.writer.store([big])
        if "load" in parameters:
            work = _stream_runs if parameters["load"] == "runs" else _load
            await asyncio.to_thread(work, loads, parameters["load"], parameters["on"] == "1")
        await _answer(send, {"cpu": time.thread_time(), "head": await asyncio.to_thread(log.head, "f")})

    view = _view(application.runtime)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        chosen = {"/bench/": control, "/bench/view": view}.get(scope.get("path", ""), application)
        await chosen(scope, receive, send)

    serve(port, app)


def _view(engine: Any) -> Any:
    """The publish door as a stock Django async view: the same reading, rights, log and answer."""
    from types import ModuleType

    from django.core.asgi import get_asgi_application
    from django.http import JsonResponse
    from django.test import override_settings
    from django.urls import path
    from django.utils.decorators import async_only_middleware
    from django.views.decorators.csrf import csrf_exempt

    from conversations.access import authentication
    from conversations.events import log
    from conversations.events.payload import parse

    @csrf_exempt
    async def publish(request: Any) -> Any:
        caller = await asyncio.to_thread(
            authentication.caller_from_token, request.headers["authorization"].removeprefix("Bearer ")
        )
        request_body = json.loads(request.body)
        body = json.dumps(request_body["payload"])
        parsed = parse(body.encode())
        event = log.from_bus(request_body["topic"], None, body, parsed, caller.principal)
        (stored,) = await engine.writer.store([event])
        return JsonResponse({"id": event.bus_id, "conversation_id": event.conversation, "seq": stored.seq}, status=201)

    @async_only_middleware
    def here(get_response: Any) -> Any:
        async def answer(request: Any) -> Any:
            request.urlconf = "bench_urls"
            return await get_response(request)

        return answer

    urls = ModuleType("bench_urls")
    urls.urlpatterns = [path("bench/view", publish)]  # type: ignore[attr-defined]  # made here
    urls.here = here  # type: ignore[attr-defined]
    sys.modules["bench_urls"] = urls
    with override_settings(MIDDLEWARE=["bench_urls.here", "django.middleware.common.CommonMiddleware"]):
        return get_asgi_application()


def group(port: int) -> None:
    """The stock way: a consumer in a group of the in-memory layer."""
    from tests.benchmarks import common

    common.set_up()
    from channels.generic.websocket import AsyncWebsocketConsumer
    from channels.layers import InMemoryChannelLayer, channel_layers

    layer = InMemoryChannelLayer(capacity=1_000_000)
    channel_layers.set("default", layer)

    class Stock(AsyncWebsocketConsumer):  # type: ignore[misc]
        async def connect(self) -> None:
            await self.accept()
            await self.channel_layer.group_add("f", self.channel_name)
            await self.send(text_data='{"t":"caught_up"}')

        async def batch(self, message: Any) -> None:
            await self.send(text_data=message["text"])

    stock = Stock.as_asgi()
    seq = [0]

    async def emit(batch: int) -> None:
        await layer.group_send("f", {"type": "batch", "text": frame(batch, seq[0])})
        seq[0] += batch

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
        elif scope["type"] == "websocket":
            await stock(scope, receive, send)
        else:
            parameters = dict(parse_qsl(scope["query_string"].decode()))
            if "n" in parameters:
                await paced(int(parameters["n"]), float(parameters["rate"]), int(parameters["batch"]), emit)
            await _answer(send, {"cpu": time.thread_time(), "head": seq[0]})

    serve(port, app)


def raw(port: int) -> None:
    """picows: the least a server can do for a frame. Its control socket is `/bench/`."""
    import uvloop
    from picows import WSListener, WSMsgType, ws_create_server

    readers: set[Any] = set()
    loads: dict[str, Any] = {}
    seq = [0]

    class Listener(WSListener):  # type: ignore[misc]
        def __init__(self, is_control: bool) -> None:
            self.is_control = is_control

        def on_ws_connected(self, transport: Any) -> None:
            if not self.is_control:
                readers.add(transport)
                transport.send(WSMsgType.TEXT, b'{"t":"caught_up"}')

        def on_ws_disconnected(self, transport: Any) -> None:
            readers.discard(transport)

        def on_ws_frame(self, transport: Any, message: Any) -> None:
            if message.msg_type == WSMsgType.CLOSE:
                transport.disconnect()
            elif self.is_control:
                body = json.loads(message.get_payload_as_bytes())
                self.task = asyncio.ensure_future(self.go(transport, body))

        async def go(self, transport: Any, request: Any) -> None:
            async def emit(batch: int) -> None:
                text = frame(batch, seq[0]).encode()
                seq[0] += batch
                for reader in readers:
                    reader.send(WSMsgType.TEXT, text)

            if "n" in request:
                await paced(request["n"], request["rate"], request["batch"], emit)
            if "load" in request:
                _load(loads, request["load"], bool(request["on"]))
            transport.send(WSMsgType.TEXT, json.dumps({"cpu": time.thread_time(), "head": seq[0]}).encode())

    async def main() -> None:
        server = await ws_create_server(lambda r: Listener(b"bench" in r.path), "127.0.0.1", port, backlog=4096)
        await server.serve_forever()

    uvloop.run(main())


def _load(loads: dict[str, Any], name: str, on: bool) -> None:
    """Start or stop a neighbour in the process: query (100 ms of SQL), pages (two renderers), busy (a thread)."""
    if not on:
        loads.pop(name).set()
        return
    done = loads[name] = threading.Event()
    work = {"query": _query, "pages": _pages, "busy": _burn}[name]
    for _ in range(2 if name == "pages" else 1):
        threading.Thread(target=lambda: _repeat(work, done), daemon=True).start()


def _stream_runs(loads: dict[str, Any], name: str, on: bool) -> None:
    """Start or stop a worker whose runs stream all the time."""
    from dashboard.asgi import application
    from tests.benchmarks.streaming_runs import RUNS, StreamingRuns

    if not on:
        loads.pop(name).close()
        return
    runs = loads[name] = StreamingRuns(application.runtime.writer)
    runs.start()
    while runs.streaming < RUNS:
        time.sleep(0.05)


def _repeat(work: Any, done: threading.Event) -> None:
    while not done.is_set():
        work()


def _query() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<1000000) SELECT count(*) FROM n"
        ).fetchall()
    time.sleep(0.1)


def _pages() -> None:
    from conversations.events import log
    from conversations.realtime.live_renderer import LiveRenderer

    page = log.newest_page("f", 200)
    LiveRenderer("f").draw(page.events)


def _burn() -> None:
    sum(i * i for i in range(20_000))


def _digest(secret: str) -> str:
    import hashlib

    return hashlib.sha256(secret.encode()).hexdigest()


async def _answer(send: Any, body: Any) -> None:
    payload = json.dumps(body).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(payload))]})
    await send({"type": "http.response.body", "body": payload})


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    {"ours": ours, "raw": raw, "group": group}[sys.argv[2]](int(sys.argv[1]))
