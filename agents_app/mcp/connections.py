"""A lasting connection to an MCP server: made when the worker starts, checked, and made again with back-off.

An `McpConnection` is the SDK's `MCPServer` for the tools made from it; each time it connects, it has a new transport.
While the server is down its tools are not offered, and a call that comes nevertheless gets an error: the run continues
without them. A call is never sent twice: if the connection breaks, nobody knows what the call did.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agents import RunContextWrapper, UserError
from agents.mcp import MCPServer
from mcp import MCPError
from mcp.types import CONNECTION_CLOSED, CallToolResult, ContentBlock, GetPromptResult, ListPromptsResult, TextContent
from mcp.types import Tool as McpTool

from agents_app.mcp.limits import StdoutNoise, serving_name, within_list, within_result
from agents_app.mcp.servers import McpServer, Transport, can_be_stored, list_problems
from agents_app.recorded_values import mask, reason_of
from conversations.core.background_loop import cancel_all
from conversations.core.status import OK

logger = logging.getLogger(__name__)
logging.getLogger("mcp.client.stdio").addFilter(StdoutNoise())

POLL_EVERY_S = 5.0  # what the server offers, which shows that it is there
LOOK_S = 5.0  # seconds it may take to answer
BACK_OFF = (0.5, 30.0)  # seconds before the next try: the first, and the longest
MAX_REST = 3600.0  # seconds between two changes of a list that is another one at each look
CLOSE_S = 5.0  # seconds for a connection to end

Changed = Callable[["McpConnection"], Awaitable[None]]


class McpDown(UserError):
    """A call that was not sent, or whose connection broke. The text is for people and models."""


class McpFailed(UserError):
    """An error that a server returned instead of a result: its own text, passed to the model unchanged."""


class McpConnection(MCPServer):
    """The connection to one server of one team. `tools` are those last listed that the team accepts."""

    def __init__(self, spec: McpServer, changed: Changed) -> None:
        super().__init__(failure_error_function=self._error_message)
        self.spec = spec
        self.state = "connecting"
        self.tools: list[McpTool] = []
        self.problems: list[str] = []
        """of the last list, for people"""
        self.first_try = asyncio.Event()
        self._changed = changed
        self._inner: Transport | None = None  # while it is up
        self._transport: Transport | None = None  # the newest
        self._lost = asyncio.Event()
        self._news = asyncio.Event()
        self._closing = asyncio.Event()
        self._running = 0
        self._rest, self._rests_until = 0.0, float("-inf")  # seconds, and monotonic

    @property
    def name(self) -> str:
        """Return the server's name in the team."""
        return self.spec.name

    @property
    def is_up(self) -> bool:
        """Return whether the server answered last time."""
        return self._inner is not None

    async def run(self) -> None:
        """Maintain the connection until `close`, whatever fails: the rows about its tools cannot always be written."""
        wait = BACK_OFF[0]
        while not self._closing.is_set():
            was_up = False
            try:
                was_up = await self._connection()
            except Exception:
                logger.exception("connecting to the MCP server %s failed once", self.name)
            wait = BACK_OFF[0] if was_up else min(wait * 2, BACK_OFF[1])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._closing.wait()

    def close(self) -> None:
        """Close the connection for good."""
        self._closing.set()
        self._news.set()

    async def connect(self) -> None:
        """Do nothing: `run` connects."""

    async def cleanup(self) -> None:
        """Do nothing: `close` ends it."""

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[McpTool]:
        """Return the tools as last listed."""
        return list(self.tools)

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        """Call a tool by its name on the server, once. Raises McpDown if the call cannot be sent or is cut off, and
        McpFailed if the server returns an error."""
        inner, lost = self._inner, self._lost
        if inner is None:
            raise McpDown(f"the MCP server {self.name} is not connected ({self.state}): nothing was called")
        call = asyncio.ensure_future(inner.call_tool(tool_name, arguments, meta))
        broken = asyncio.ensure_future(lost.wait())
        self._running += 1
        try:
            await asyncio.wait({call, broken}, return_when=asyncio.FIRST_COMPLETED)
            error = call.exception() if call.done() else None
            if error is not None:
                self._news.set()  # look at once whether the server is there
            if not call.done() or _is_closed(error):
                raise McpDown(f"the connection to the MCP server {self.name} broke: the call may have taken effect")
            result = call.result()
            content = within_result(_content(result))
            if result.is_error:  # an error in the record, too
                raise McpFailed("\n".join(p.text for p in content if p.type == "text") or "it failed")
            return result.model_copy(update={"content": content})
        finally:
            self._running -= 1
            await cancel_all((call, broken))

    async def list_prompts(self) -> ListPromptsResult:
        """Return no prompts: teams bring their own instructions."""
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> GetPromptResult:
        """Raise: there are no prompts."""
        raise UserError(f"prompts from the MCP server {self.name} are not supported")

    async def _connection(self) -> bool:
        """Make one connection and keep it while it lasts; return whether it was established.

        It has a task of its own: the transport ends by cancelling the task that opened it.
        """
        self._lost = asyncio.Event()
        self._transport = self.spec.transport()
        task = asyncio.create_task(self._hold(self._transport), name=f"mcp {self.name}")
        closing = asyncio.create_task(self._closing.wait())
        await asyncio.wait({task, closing}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            await asyncio.wait({task}, timeout=CLOSE_S)
            task.cancel()
            await asyncio.wait({task}, timeout=CLOSE_S)
        closing.cancel()
        was_up = self.is_up
        reason = "the connection was closed"
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            reason = _error_text(error).removeprefix(f"Failed to connect to MCP server '{self.name}': ").rstrip(".")
            reason += self._status_after(reason)
        await self._down(reason)
        return was_up

    async def _hold(self, inner: Transport) -> None:
        serving_name.set(self.name)
        try:
            async with asyncio.timeout(self.spec.connect_s):
                await inner.connect()  # type: ignore[no-untyped-call]
                listed = await inner.list_tools()
            self._inner = inner
            await self._listed(listed)
            while not self._closing.is_set():
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_EVERY_S):
                        await self._news.wait()
                if not self._closing.is_set():
                    await self._look(inner)
        finally:
            self._lost.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await inner.cleanup()  # type: ignore[no-untyped-call]

    async def _look(self, inner: Transport) -> None:
        """Ask what the server offers. While a call runs, no answer is none the worse: over HTTP requests go one by one,
        and over stdio many servers answer one after the other."""
        if self._running:
            return
        try:
            async with asyncio.timeout(LOOK_S):
                listed = await inner.list_tools()
        except TimeoutError:
            if self._running:  # the call was there first
                return
            raise
        await self._listed(listed)

    async def _listed(self, listed: Sequence[McpTool]) -> None:
        self.problems = list(list_problems(self.spec, [tool.name for tool in listed]))
        tools = within_list([tool for tool in listed if can_be_stored(tool.name) and self.spec.takes(tool.name)])
        is_changed = self._is_due(tools)
        if self.state == OK and not is_changed:
            return
        if self.state != OK:
            logger.info("the MCP server %s is connected: %s tools", self.name, len(tools))
        self.state = OK
        if is_changed:
            self.tools = tools
        await self._changed(self)
        self.first_try.set()

    def _is_due(self, tools: list[McpTool]) -> bool:
        """Return whether to take over a changed list. The record keeps every schema: a list that changes all the time
        is taken over more and more rarely."""
        now = time.monotonic()
        if now < self._rests_until or tools == self.tools:
            if now >= self._rests_until:
                self._rest = 0.0
            return False
        if self.tools:
            self._rest = min(max(POLL_EVERY_S, 2 * self._rest), MAX_REST)
            self._rests_until = now + self._rest
        return True

    async def _down(self, reason: str) -> None:
        was_told = self.state not in (OK, "connecting")
        self._inner, self.state = None, f"down: {reason}"
        self.first_try.set()
        if not (was_told or self._closing.is_set()):
            logger.warning("the MCP server %s is down: %s", self.name, reason)
            await self._changed(self)

    def _error_message(self, context: RunContextWrapper[Any], error: Exception) -> str:
        """Return what the model is told about a failed call."""
        if isinstance(error, McpFailed):
            return str(error)
        if isinstance(error, McpDown):
            return f"{error}. Continue without it."
        text = _error_text(error)
        return f"The MCP server {self.name} could not run the call: {text}{self._status_after(text)}"

    def _status_after(self, text: str) -> str:
        """Return the HTTP status of the newest answer, if it is an error that a text does not name."""
        status = getattr(self._transport, "status", 0)
        return f" (HTTP {status})" if status >= 400 and str(status) not in text else ""


def _content(result: CallToolResult) -> list[ContentBlock]:
    """Return a result's content; if it has only structured content, that as JSON: servers need not send a copy of it
    as text."""
    if result.content or result.structured_content is None:
        return result.content
    return [TextContent(type="text", text=json.dumps(result.structured_content, ensure_ascii=False))]


def _is_closed(error: BaseException | None) -> bool:
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED


def _error_text(error: BaseException) -> str:
    """Return an error on one line; of a group, its first."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not respond in time"
    text = str(error).strip()
    return mask(" ".join(text.split()))[:300] if text else reason_of(error)[:300]
