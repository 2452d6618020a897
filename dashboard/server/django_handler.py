"""Serve Django's pages under ASGI with a single switch into a thread. `asgi` routes here what no other endpoint takes.

Django's own handler switches threads for every synchronous middleware, the view and the signals (8 times for one of our
pages), and opens a database connection per request, since each gets a new thread. Here the whole chain is synchronous
and a few threads keep their connections, which halves the time.
"""

import asyncio
import contextlib
import io
import json
import logging
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from django.core import signals
from django.core.exceptions import RequestAborted, RequestDataTooBig
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from conversations.access.authentication import Caller
from conversations.access.origin_check import address_of
from conversations.asgi import route
from conversations.core import log_format
from conversations.core.client_network import client_network
from conversations.core.db_threads import POOL_SIZE
from conversations.core.errors import Busy, SwitchboardError, TooLarge
from conversations.core.held_bodies import held_bodies
from conversations.core.url_converters import with_slashes
from conversations.events import log
from conversations.realtime.socket_registry import SocketRegistry

logger = logging.getLogger(__name__)

MAX_BODY = 4 << 20  # bytes, before anything looks at them; settings limit what forms may hold


class PageHandler(ASGIHandler):
    """Answers HTTP requests with views. Views are plain functions; a streaming response has an asynchronous
    iterator."""

    def __init__(self, socket_registry: SocketRegistry) -> None:
        BaseHandler.__init__(self)
        self._socket_registry = socket_registry
        self.load_middleware(is_async=False)
        self._pool = ThreadPoolExecutor(POOL_SIZE["pages"], thread_name_prefix="pages")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # Any: ASGI's own types
        """Read the request, answer it in a thread, and send the response."""
        scope = with_slashes(scope)
        try:
            body = await self.read_body(receive, address_of(scope))
        except RequestAborted:
            return
        except RequestDataTooBig:
            await self.send_response(_refusal(scope, TooLarge("the request is too large")), send)
            return
        except Busy as error:
            await self.send_response(_refusal(scope, error), send)
            return
        loop = asyncio.get_running_loop()
        response = await loop.run_in_executor(self._pool, self._answer_known, scope, body, time.monotonic())
        if not response.streaming:
            await self.send_response(response, send)
            return
        try:
            await self._stream(response, receive, send)
        except SwitchboardError as error:  # what came is not all of it: the connection ends with nothing more said
            logger.warning("%s was cut off: %s", scope["path"], error.message)
            (scope.get("extensions") or {}).get("http.hang_up", lambda: None)()
        finally:
            await loop.run_in_executor(self._pool, response.close)

    async def _stream(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Send a streaming response while its reader is connected and still permitted (law H). Raises NotSignedIn once
        the reader is not."""
        caller: Caller | None = getattr(response, "_caller", None)  # noted by `middleware.signed_in`
        sending = _while_there(receive, self.send_response(response, send))
        if caller is None:
            await sending
            return
        with self._socket_registry.reading(caller) as reader:
            await reader.unless_dismissed(sending)

    async def read_body(self, receive: Any, sender: str = "unknown") -> IO[bytes]:
        """Read the body into memory. Raises RequestDataTooBig beyond `MAX_BODY` bytes, Busy while too much is being
        received."""
        body, more = io.BytesIO(), True
        with held_bodies.counting(client_network(sender)) as resize:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RequestAborted
                chunk, more = message.get("body", b""), message.get("more_body", False)
                if body.tell() + len(chunk) > MAX_BODY:
                    raise RequestDataTooBig
                body.write(chunk)
                resize(body.tell())
        body.seek(0)
        return body

    def _answer_known(self, scope: Any, body: IO[bytes], arrived_at: float) -> HttpResponseBase:
        request = scope.get("request_id", "")  # for what Django itself logs in this thread
        with log_format.log_context(request=request), log.asked_at(arrived_at):
            return self._answer(scope, body)

    def _answer(self, scope: Any, body: IO[bytes]) -> HttpResponseBase:
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)  # drops a database connection that broke
        request, wrong = self.create_request(scope, body)
        response: HttpResponseBase = (
            self._respond(request) if request is not None else wrong or HttpResponse(status=400)
        )
        if not response.streaming:
            response.close()  # ends the request in the thread that holds its connection
        return response

    def _respond(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response._handler_class = self.__class__  # type: ignore[attr-defined]  # its close() signals with it
        return response


async def _while_there(receive: Any, sending: Coroutine[Any, Any, None]) -> None:
    """Send while the client is connected: after the body, all that `receive` can report is a disconnect."""
    task, leaving = asyncio.create_task(sending), asyncio.ensure_future(receive())
    try:
        await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not task.done():
            task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _refusal(scope: Any, error: SwitchboardError) -> HttpResponse:
    """Return the response to a body that is not read, which passes no middleware: JSON to the API's clients and to
    scripts of pages (`dashboard.pages.errors.wants_json`), else text."""
    headers = {
        "Content-Security-Policy": route.NO_PAGE_POLICY,
        "X-Content-Type-Options": "nosniff",
    }
    headers |= {name.decode(): value.decode() for name, value in route.headers_of(error)}
    is_json = scope["path"].startswith("/api/") or route.header(scope, b"x-requested-with") == b"fetch"
    content = json.dumps({"error": error.as_dict()}) if is_json else error.sentence
    kind = "application/json" if is_json else "text/plain"
    return HttpResponse(content, status=error.status, content_type=kind, headers=headers)
