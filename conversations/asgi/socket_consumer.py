"""The WebSocket: one connection that subscribes to many topics, read-only (§3.5). A Channels consumer without a group:
live frames are written by the topic's `Feed` (`realtime/feed.py`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from typing import Any

from asgiref.sync import sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.http import parse_cookie

from conversations.access import authentication, origin_check, permissions
from conversations.access.audit import refusal_counter
from conversations.access.authentication import NOT_ALLOWED, RECONNECT, SIGNED_OUT, Caller
from conversations.asgi import route
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.errors import Invalid, NotAllowed, SwitchboardError, Unavailable
from conversations.events import log
from conversations.events.payload import MAX_KEY, clean_text
from conversations.realtime import frames
from conversations.realtime.catch_up_subscription import NEWEST, CatchUpSubscription
from conversations.realtime.presence import Viewer
from conversations.realtime.server_runtime import ServerRuntime
from conversations.realtime.socket_writer import SocketWriter, TooSlow
from conversations.realtime.state_topics import STATE_TOPICS, StateSubscription
from conversations.redaction import erase_id

logger = logging.getLogger(__name__)

MAX_FRAME = 64 * 1024  # bytes in
MAX_TOPICS = 200  # of one socket
TOO_SLOW, TOO_BIG, TOO_MANY, OTHER_PERSON = 4408, 1009, 4429, 4409


class EventsConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels is untyped
    """Subscribes and unsubscribes; the subscriptions send the frames."""

    channel_layer_alias = "none"  # no channel: the hub is notified of commits

    def __init__(self, *, runtime: ServerRuntime, authenticator: TokenAuthenticator) -> None:
        super().__init__()
        self.runtime, self.authenticator = runtime, authenticator
        self.topics: dict[str, CatchUpSubscription | StateSubscription] = {}
        self.viewers: dict[str, Viewer] = {}
        self.is_dismissed = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # Any: channels is untyped
        """Serve the socket and clean up in any case: after an error, `disconnect` is not called."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._end()

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler without Channels' thread hop for database connections: nothing here uses one."""
        await getattr(self, message["type"].replace(".", "_"))(message)

    async def connect(self) -> None:
        """Accept the session's or token's principal; otherwise give the reason with a close code."""
        bearer = route.bearer(self.scope)
        if not bearer and not origin_check.is_ours(self.scope, settings.ALLOWED_HOSTS, settings.CONFIG.allowed_origins):
            await self._count_refusal("foreign origin")
            await self.close()  # before accept: HTTP 403
            return
        self.extensions = self.scope.get("extensions") or {}
        write, room = self.extensions.get("frame.write"), self.extensions.get("frame.room")
        self.writer = SocketWriter(self.base_send, write, self.runtime.socket_registry.send_gate, room)
        try:
            caller = await (self.authenticator.look_up(bearer) if bearer else self._person())
        except Unavailable:
            if bearer:  # a program takes HTTP 403 for a refusal for good; a page takes an open socket for a live one
                await self.accept()
                self.dismiss(RECONNECT)
            else:
                await self.close()
            return
        await self.accept()
        if caller is None or not (caller.agent or permissions.has_permission(caller.roles, "view")):
            self.dismiss(SIGNED_OUT if caller is None else NOT_ALLOWED)
            await self._count_refusal("not signed in" if caller is None else f"{caller.principal} may not view")
            return
        self.caller = caller
        if not self.runtime.socket_registry.admit(self, most=settings.CONFIG.sockets_per_principal):
            self.dismiss(TOO_MANY)
            await self._count_refusal(
                f"{caller.principal} already has {settings.CONFIG.sockets_per_principal:,} open sockets"
            )

    async def _person(self) -> Caller | None:
        """Return the person of the session in the cookie."""
        cookies = parse_cookie(route.header(self.scope, b"cookie").decode("latin-1"))
        session_key = cookies.get(settings.SESSION_COOKIE_NAME, "")
        return await sync_to_async(authentication.caller_from_session, thread_sensitive=False)(session_key)

    async def _count_refusal(self, reason: str) -> None:
        count = sync_to_async(refusal_counter.record_refusal, thread_sensitive=False)
        with contextlib.suppress(Unavailable):
            await count(origin_check.address_of(self.scope), "open_socket", "socket", reason=reason)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle a frame; answer an invalid one with an error frame. While the database is away, the client reconnects:
        its earlier subscription to the topic has ended."""
        if self.is_dismissed:
            return
        if text_data is None or len(text_data) > MAX_FRAME:
            self.dismiss(TOO_BIG)
            return
        topic: dict[str, str] = {}
        try:
            request = _parse(text_data)
            topic = {"topic": request["topic"]}
            await self._handle_command(request)
        except Unavailable:
            self.dismiss(RECONNECT)
        except SwitchboardError as error:
            await self._send(frames.control("error", **topic, **error.as_dict()))

    async def _send(self, text: str) -> None:
        try:
            await self.writer.text(text)
        except (OSError, TooSlow) as error:
            self._failed(error)

    async def _handle_command(self, request: dict[str, Any]) -> None:
        topic = request["topic"]
        if self.caller.user_id is not None and request.get("person") not in (None, self.caller.principal.name):
            self.dismiss(OTHER_PERSON)
            return
        if (old := self.topics.pop(topic, None)) is not None:
            old.close()
            self.runtime.socket_registry.release_topics(self.caller.principal, 1)
            self._look_away(topic)
        if request["op"] == "unsubscribe":
            return
        if len(self.topics) >= MAX_TOPICS:
            raise Invalid(f"a socket can follow at most {MAX_TOPICS} topics", code="too_many", field="topic")
        if self.runtime.socket_registry.topics[self.caller.principal] >= (most := settings.CONFIG.topics_per_principal):
            message = f"{self.caller.principal} already follows {most:,} topics, the maximum: unsubscribe first"
            raise Invalid(message, code="too_many", field="topic")
        if (state := self.runtime.state_topics.get(topic)) is not None:
            if self.caller.agent:
                self.dismiss(NOT_ALLOWED)
                return
            if not permissions.has_permission(self.caller.roles, state.right):
                raise NotAllowed(f"{self.caller.principal} may not view this topic", field="topic")
            is_drawn = request.get("render") == "html"
            self._keep(topic, StateSubscription(state, self.writer, failed=self._failed, drawn=is_drawn))
        else:
            await self._follow(topic, request)

    async def _follow(self, topic: str, request: dict[str, Any]) -> None:
        hub, key = self.runtime.hub, topic.removeprefix("stream:")
        read = hub.readers.run
        if self.caller.agent and not await read(permissions.may_follow, self.caller.agent, topic):
            raise NotAllowed(f"{self.caller.principal} may not view this topic", field="topic")
        new_id = request.get("erased_id") or ""
        if new_id not in ("", key) and not self.caller.agent and await read(erase_id.is_erased, new_id):
            await self._send(frames.control("moved", topic=topic, to=new_id))  # the old id may be in use again
            return
        head = await read(log.head, key)
        after, epoch = request.get("after"), request.get("epoch")
        if after is not None and (epoch not in (None, hub.epoch) or after > head):
            # A missing conversation proves no restore; only an admin's claim starts a new epoch.
            may_change = permissions.has_permission(self.caller.roles, "metrics")
            is_old = epoch in (None, hub.epoch) and head and may_change
            if is_old and await self.runtime.change_epoch(hub.epoch, spared=self) and self.topics:
                self.dismiss(RECONNECT)  # its other topics are of the epoch before, too
            if self.is_dismissed:
                return
            await self._send(frames.control("reset", topic=topic, epoch=hub.epoch))
            after = None
        if self.is_dismissed:  # meanwhile
            return
        last = after if after is not None else max(0, head - NEWEST)
        mode = request["render"] if request.get("render") in ("html", "lanes") else "data"
        self._keep(topic, CatchUpSubscription(hub, self.writer, key, mode, last=last, failed=self._failed))  # type: ignore[arg-type]
        if not self.caller.agent:
            name = self.caller.principal.name if self.caller.user_id is not None else ""
            self.viewers[topic] = self.runtime.presence.look(key, name, self.writer)

    def _look_away(self, topic: str) -> None:
        if (viewer := self.viewers.pop(topic, None)) is not None:
            self.runtime.presence.leave(viewer)

    def _keep(self, topic: str, subscription: CatchUpSubscription | StateSubscription) -> None:
        self.topics[topic] = subscription
        self.runtime.socket_registry.topics[self.caller.principal] += 1

    def send_heads(self) -> None:
        """Send the head of each topic."""
        for subscription in self.topics.values():
            subscription.send_head()

    def dismiss(self, code: int) -> None:
        """Send nothing more and close, now."""
        if not self.is_dismissed:
            self.runtime.socket_registry.drops[code] += 1
        self.is_dismissed = True
        self._end()
        if hang_up := self.extensions.get("frame.hang_up"):
            hang_up(code)
        else:
            self._closing = asyncio.ensure_future(self.close(code))

    def _failed(self, error: BaseException) -> None:
        if self.is_dismissed or isinstance(error, OSError):  # the client left: `disconnect` follows
            return
        if not isinstance(error, TooSlow):
            logger.error("a subscription ended", exc_info=error)
        self.dismiss(TOO_SLOW if isinstance(error, TooSlow) else 1011)

    async def disconnect(self, code: int) -> None:
        """Clean up."""
        self._end()

    def _end(self) -> None:
        self.runtime.socket_registry.forget(self)
        for topic in list(self.viewers):
            self._look_away(topic)
        for subscription in self.topics.values():
            subscription.close()
        if self.topics:
            self.runtime.socket_registry.release_topics(self.caller.principal, len(self.topics))
        self.topics.clear()


def _parse(text: str) -> dict[str, Any]:
    """Parse a client's frame. Raises Invalid with what was expected."""
    try:
        request = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the frame must be JSON: {error}") from None
    if not isinstance(request, dict) or request.get("op") not in ("subscribe", "unsubscribe"):
        raise Invalid('the frame must be {"op": "subscribe" | "unsubscribe", "topic": …}', field="op")
    topic = request.get("topic")
    is_stream = (
        isinstance(topic, str)
        and topic.startswith("stream:")
        and 1 <= len(topic) - 7 <= MAX_KEY
        and clean_text(topic) == topic
    )
    if not is_stream and topic not in STATE_TOPICS:
        raise Invalid("must be stream:{conversation}, fleet, approvals or audit", code="unknown_topic", field="topic")
    after = request.get("after")
    if after is not None and (type(after) is not int or not 0 <= after < 1 << 53):
        raise Invalid("must be a seq: a whole number, 0 or more", field="after")
    for name in ("epoch", "erased_id", "person"):
        if request.get(name) is not None and not isinstance(request[name], str):
            raise Invalid("must be a string", field=name)
    return request
