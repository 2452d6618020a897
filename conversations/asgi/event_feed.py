"""`GET /api/v1/events`: every event that a token may read, as it happens, as server-sent events or as pages of JSON.

A raw ASGI route. A position in the feed is `EPOCH.ROW`, the id of each event; a client that resumes from it misses
nothing. If the position belongs to another history (the database was restored), the feed reports this and continues
from now. Imported events are history: only the feed of their own conversation has them. A client that does not read for
20 s is disconnected and may resume.
"""

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from conversations.access import permissions
from conversations.access.authentication import Caller
from conversations.asgi import long_poll, route
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Busy, Invalid, MethodNotAllowed, SwitchboardError, Unavailable, UnknownPosition
from conversations.core.principals import Principal
from conversations.core.url_converters import whole_number
from conversations.events import commit_listeners
from conversations.events.log import settled_rows
from conversations.events.log.settled_rows import FeedEvent
from conversations.realtime.send_gate import SendGate
from conversations.realtime.server_runtime import ServerRuntime
from conversations.realtime.socket_registry import GuardedRequest

PATH = "/api/v1/events"
STREAM = b"text/event-stream"
MAX_FOLLOWERS, MAX_FOLLOWERS_EACH = 200, 20  # followers of this process, and of one principal
POLL_EVERY_S = 1.0  # heals a lost notification, and sees the server stop
KEEPALIVE_EVERY = 15.0  # seconds
SLOW_AFTER = 20.0  # seconds a send may block
SETTLE_S = 0.2  # seconds that one look waits for transactions to end
START_S = 5.0  # seconds that a request waits for the first row that is settled
MAX_ID_DIGITS = 18  # of the place in an event id


class FeedRequest(NamedTuple):
    """The parameters of a request. `after`: the position as given; None: from now on."""

    after: str | None
    conversation: str
    is_stream: bool


class _Notice(NamedTuple):
    """A message other than an event: `gap` or `end`."""

    name: str
    fields: dict[str, object]


class EventFeedEndpoint:
    """The route. Reads run in a small thread pool; a waiting client holds no thread."""

    def __init__(self, runtime: ServerRuntime, authenticator: TokenAuthenticator) -> None:
        self._runtime, self._authenticator = runtime, authenticator
        self._readers = DatabaseThreads("feed")
        self._rows = settled_rows.SettledRows()
        self._followers: Counter[Principal] = Counter()
        self._news: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Handle one request."""
        try:
            if scope["method"] not in ("GET", "HEAD"):
                raise MethodNotAllowed(("GET", "HEAD"))
            caller = await self._authenticator.caller(scope, "view")
            request = _read_request(scope)
            if not request.is_stream or scope["method"] == "HEAD":
                await route.answer(send, 200, await self._page(caller, request))
                return
            with self._counted(caller.principal), self._authenticator.holding(scope):
                await self._follow(scope, receive, send, caller, request)
        except SwitchboardError as error:
            await route.refuse(send, error)

    async def _page(self, caller: Caller, request: FeedRequest) -> bytes:
        """Return the events after the position at once; the cursor is the position to continue from."""
        upto, given = await self._start(is_from_now=False)
        row, gap = self._row_of(request.after, upto, given) if request.after is not None else (0, None)
        if gap is not None:
            raise UnknownPosition(str(gap.fields["reason"]), field="after")
        events = await self._between(caller, request, row, upto)
        cursor = f"{self._epoch}.{events[-1].row if events else max(row, upto)}"
        return f'{{"items":[{",".join(map(_as_json, events))}],"cursor":{json.dumps(cursor)}}}'.encode()

    async def _follow(
        self, scope: route.Scope, receive: route.Receive, send: route.Send, caller: Caller, request: FeedRequest
    ) -> None:
        gone = asyncio.ensure_future(long_poll.wait_for_disconnect(receive))
        headers = [(b"content-type", STREAM), (b"x-accel-buffering", b"no"), *route.FIXED[1:]]
        try:
            with self._runtime.socket_registry.reading(caller) as reader:
                upto, given = await self._start(is_from_now=request.after is None)
                row, gap = self._row_of(request.after, upto, given)
                await send({"type": "http.response.start", "status": 200, "headers": headers})
                out = _Out(send, reader, self._runtime.socket_registry.send_gate)
                try:
                    end = await self._send_events(scope, out, caller, request, row, gap, gone)
                except SwitchboardError as error:
                    end = _Notice("end", {"code": error.code, "message": error.message})
                await out.last(b"" if end is None else _as_message(end))
        except TimeoutError:
            if (hang_up := (scope.get("extensions") or {}).get("http.hang_up")) is not None:
                hang_up()
        finally:
            gone.cancel()

    async def _send_events(
        self, scope: route.Scope, out: "_Out", caller: Caller, request: FeedRequest, row: int, gap: _Notice | None,
        gone: asyncio.Future[None],
    ) -> _Notice | None:  # fmt: skip
        """Send events until the client leaves (None) or the server stops."""
        stopping = (scope.get("extensions") or {}).get("http.stopping")
        epoch, loop = self._epoch, asyncio.get_running_loop()
        await out.send(f"retry: 1000\nid: {epoch}.{row}\n\n".encode() + (_as_message(gap) if gap else b""))
        with self._listening() as news:
            spoke_at = loop.time()
            while not gone.done():
                if stopping is not None and stopping.is_set():
                    return _Notice("end", {"code": "restarting", "message": "the server stops: connect again"})
                news.clear()
                settled, newest, given = await out.reader.unless_dismissed(self._readers.run(self._rows.look, SETTLE_S))
                upto = settled or 0
                if self._epoch != epoch or given < row:
                    epoch, row = self._epoch, upto
                    await out.send(_as_message(_restored(epoch, row)))
                events = await out.reader.unless_dismissed(self._between(caller, request, row, upto))
                if events:
                    await out.send(b"".join(_as_sse(epoch, fed) for fed in events))
                    row, spoke_at = events[-1].row, loop.time()
                    continue
                row = max(row, upto)
                if loop.time() - spoke_at > KEEPALIVE_EVERY:
                    await out.send(b": keepalive\nid: %b\n\n" % f"{epoch}.{row}".encode())
                    spoke_at = loop.time()
                if upto >= newest:  # else the look has waited
                    await out.reader.unless_dismissed(long_poll.wait_for_change(gone, news, POLL_EVERY_S))
        return None

    @property
    def _epoch(self) -> str:
        return self._runtime.hub.epoch

    def _row_of(self, place: str | None, upto: int, given: int) -> tuple[int, _Notice | None]:
        """Parse a position: return the row to continue after, and the notice to send first if the position is not valid
        any longer."""
        if place is None:
            return upto, None
        epoch, _, digits = place.rpartition(".")
        row = int(digits)
        if (epoch and epoch != self._epoch) or row > given:
            return upto, _restored(self._epoch, upto)
        return row, None

    async def _start(self, *, is_from_now: bool) -> tuple[int, int]:
        """Return the newest row before which nothing can be committed anymore, and the newest there ever was. Raises
        Unavailable if the former is not known within 5 s; `is_from_now`: it is waited for so long, and then an older
        one taken."""
        first = end = await self._readers.run(self._rows.look, SETTLE_S)
        deadline = time.monotonic() + START_S
        while end.settled is None or (is_from_now and end.settled < min(first.newest, end.newest)):
            if time.monotonic() > deadline:
                break
            end = await self._readers.run(self._rows.look, SETTLE_S)
        if end.settled is None:
            raise Unavailable("a long transaction of the database is under way: try again later")
        return end.settled, end.highest_given

    async def _between(self, caller: Caller, request: FeedRequest, row: int, upto: int) -> list[FeedEvent]:
        if upto <= row:
            return []
        return await self._readers.run(_between, caller, request, row, upto)

    @contextlib.contextmanager
    def _counted(self, principal: Principal) -> Iterator[None]:
        if self._followers.total() >= MAX_FOLLOWERS or self._followers[principal] >= MAX_FOLLOWERS_EACH:
            message = f"{principal} may follow {MAX_FOLLOWERS_EACH} times at once, all together {MAX_FOLLOWERS} times"
            raise Busy(message, code="too_many")
        self._followers[principal] += 1
        try:
            yield
        finally:
            self._followers[principal] -= 1
            self._followers += Counter()  # drops those without any

    @contextlib.contextmanager
    def _listening(self) -> Iterator[asyncio.Event]:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            commit_listeners.on_committed(lambda _: self._wake())
            commit_listeners.on_remote_heads(lambda _: self._wake())
        news = asyncio.Event()
        self._news.add(news)
        try:
            yield news
        finally:
            self._news.discard(news)

    def _wake(self) -> None:
        """Wake the clients, in the thread that committed."""
        if self._news and self._loop is not None:
            with contextlib.suppress(RuntimeError):  # a closed loop has nobody who waits
                self._loop.call_soon_threadsafe(self._set_all)

    def _set_all(self) -> None:
        for news in self._news:
            news.set()


class _Out:
    """The output to one client: only while its permissions are being checked (law H), and no faster than it reads."""

    def __init__(self, send: route.Send, reader: GuardedRequest, send_gate: SendGate) -> None:
        self.reader = reader
        self._send, self._send_gate = send, send_gate

    async def send(self, data: bytes) -> None:
        """Send data. Raises the error with which the reader was dismissed, or TimeoutError if it does not read."""
        await self.reader.unless_dismissed(self._send_gate.wait_until_open())
        async with asyncio.timeout(SLOW_AFTER):
            await self.reader.unless_dismissed(
                self._send({"type": "http.response.body", "body": data, "more_body": True})
            )

    async def last(self, data: bytes) -> None:
        """Send the end of the stream."""
        async with asyncio.timeout(SLOW_AFTER):
            await self._send({"type": "http.response.body", "body": data})


def _between(caller: Caller, request: FeedRequest, row: int, upto: int) -> list[FeedEvent]:
    names = permissions.names_of(caller.agent) if caller.agent else ()
    return settled_rows.between(row, upto, conversation=request.conversation, names=names)


def _read_request(scope: route.Scope) -> FeedRequest:
    fields = route.query(scope)
    if unknown := sorted(fields.keys() - {"after", "conversation"}):
        raise Invalid("must be after or conversation", field=unknown[0][:40])
    place = fields.get("after", route.header(scope, b"last-event-id").decode("latin-1") or None)
    if place is not None:
        epoch, _, digits = place.rpartition(".")
        whole_number(digits, "after", 0, 10**MAX_ID_DIGITS)
        if len(epoch) > 64:
            raise Invalid("must be the id of an event of this feed", field="after")
    conversation = fields.get("conversation", "")[:200]
    if "\0" in conversation:  # which PostgreSQL does not even look up
        raise Invalid("must be a conversation's id", field="conversation")
    is_stream = STREAM in route.header(scope, b"accept")
    return FeedRequest(place, conversation, is_stream)


def _restored(epoch: str, row: int) -> _Notice:
    reason = "this place is not in the record: the database was restored from a backup, or it is another one"
    return _Notice("gap", {"reason": reason, "id": f"{epoch}.{row}"})


def _as_json(fed: FeedEvent) -> str:
    event = fed.event
    fields = {
        "id": fed.row,
        "conversation_id": event.conversation,
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        "principal": event.principal,
        "run_id": event.run,
        "event_id": event.event_id,
    }
    return f'{json.dumps(fields)[:-1]}, "body": {event.body}}}'


def _as_sse(epoch: str, fed: FeedEvent) -> bytes:
    """Encode an event; a body with several lines becomes as many `data` lines."""
    lines = _as_json(fed).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return (f"id: {epoch}.{fed.row}\n" + "".join(f"data: {line}\n" for line in lines) + "\n").encode("utf-8", "replace")


def _as_message(notice: _Notice) -> bytes:
    place = f"id: {notice.fields['id']}\n" if "id" in notice.fields else ""
    return f"event: {notice.name}\n{place}data: {json.dumps(notice.fields)}\n\n".encode()
