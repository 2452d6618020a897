"""MCP servers of a team, as its package declares them (stdio or streamable HTTP). `connections` connects them.

    TEAM = Team(..., mcp_servers=[
        McpServer("files", command=["files-server", "--root", "/srv"], prefix="files_", block=["delete"]),
        McpServer("city", url="http://127.0.0.1:9000/mcp", agents=["Triage"], call_s=10),
    ])

What a server says of its tools' effects is not trusted: they are `unsafe` unless the team's `effects` say otherwise,
by the public name (with the prefix). A person is asked where `ask` says so, and by the operators' policy.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp

GRACE_S = 5.0  # seconds beyond a call's limit after which the transport gives up by itself
MAX_TOOL_NAME = 128  # characters (SEP-986)
MAX_NAME_HERE = 64  # characters of a function's name in OpenAI's API, which are letters, digits, _ and -
MAX_PREFIX = 100  # characters
MAX_PAGES = 20  # of a server's list of tools


class HttpServer(MCPServerStreamableHttp):
    """A server over HTTP. `status` is that of the newest answer to a message: the errors of the package lack it."""

    status = 0

    def __init__(self, server: "McpServer") -> None:
        waits = server.call_s + GRACE_S
        super().__init__(
            {
                "url": server.url, "headers": dict(server.headers), "timeout": server.connect_s,
                "sse_read_timeout": waits, "httpx_client_factory": self._client,
            },
            name=server.name, max_retry_attempts=0, max_list_pages=MAX_PAGES, client_session_timeout_seconds=waits,
        )  # fmt: skip

    def _client(
        self, headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:  # fmt: skip
        hooks: dict[str, list[Callable[..., Any]]] = {"request": [self._forget_status], "response": [self._keep_status]}
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, event_hooks=hooks)

    async def _forget_status(self, request: httpx2.Request) -> None:
        if request.method == "POST":
            self.status = 0

    async def _keep_status(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":
            self.status = response.status_code


Transport = MCPServerStdio | HttpServer


@dataclass(frozen=True, slots=True)
class McpServer:
    """One server: either a command to run or a URL. `agents` empty: for every agent of the team."""

    name: str
    command: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    """before the names of its tools here"""
    allow: Sequence[str] | None = None
    """names on the server; None: all that are not blocked"""
    block: Sequence[str] = ()
    ask: Sequence[str] | bool = False
    """names on the server of the tools whose calls wait for a person; True: all"""
    agents: Sequence[str] = ()
    connect_s: float = 10.0
    call_s: float = 60.0

    def takes(self, tool: str) -> bool:
        """Return whether the team wants a tool of the server."""
        return tool not in self.block and (self.allow is None or tool in self.allow)

    def name_here(self, tool: str) -> str:
        """Return a tool's public name: the prefix and its name on the server, as every model's server accepts it."""
        return re.sub(r"[^A-Za-z0-9_-]", "_", f"{self.prefix}{tool}")[:MAX_NAME_HERE]

    def asks(self, tool: str) -> bool:
        """Return whether the team requires approval of a call."""
        return self.ask if isinstance(self.ask, bool) else tool in self.ask

    def serves(self, agent: str) -> bool:
        """Return whether an agent gets its tools."""
        return not self.agents or agent in self.agents

    def transport(self) -> Transport:
        """Return a connection that has not started. It sends nothing twice."""
        if self.command:
            return MCPServerStdio(
                {"command": self.command[0], "args": list(self.command[1:]), "env": dict(self.env)}
                | ({"cwd": self.cwd} if self.cwd else {}),  # type: ignore[arg-type]  # the same keys
                name=self.name, max_retry_attempts=0, max_list_pages=MAX_PAGES,
                client_session_timeout_seconds=self.call_s + GRACE_S,
            )  # fmt: skip
        return HttpServer(self)


def can_be_stored(tool: str) -> bool:
    """Return whether the record can store a tool's name on its server."""
    return 0 < len(tool) <= MAX_TOOL_NAME and tool.isprintable()


def list_problems(server: McpServer, tools: Sequence[str]) -> Iterator[str]:
    """Yield problems with the names that a server lists, and with those that the team expects."""
    for name, expected in _named_tools(server):
        if missing := sorted({*expected} - {*tools}):
            yield f"{name} has names of tools that it does not list: {', '.join(missing)}"
    if unusable := [tool for tool in tools if not can_be_stored(tool) and server.takes(tool)]:
        shown = ", ".join(ascii(tool[:40]) for tool in unusable[:5])
        yield f"not offered, since names must be 1 to {MAX_TOOL_NAME} printable characters: {shown}"


def _named_tools(server: McpServer) -> Iterator[tuple[str, Sequence[str]]]:
    yield "allow", server.allow or ()
    yield "block", server.block
    yield "ask", () if isinstance(server.ask, bool) else server.ask


def problems(servers: Sequence[McpServer], agents: Collection[str]) -> Iterator[str]:
    """Yield problems with a team's servers, one line each."""
    names = [server.name for server in servers]
    yield from (
        f"two of its MCP servers are called {name!r}" for name in sorted({n for n in names if names.count(n) > 1})
    )
    for server in servers:
        where = f"its MCP server {server.name!r}"
        if not server.name.strip() or not server.name.isprintable() or len(server.name) > 100:
            yield f"{where}: name must be 1 to 100 printable characters"
        if len(server.prefix) > MAX_PREFIX or not server.prefix.isprintable():
            yield f"{where}: prefix must be at most {MAX_PREFIX} printable characters"
        if bool(server.command) == bool(server.url):
            yield f"{where}: must have either a command or a url"
        elif server.url and not server.url.startswith(("http://", "https://")):
            yield f"{where}: url must be an http or https address"
        if isinstance(server.command, str):
            yield f"{where}: command must be a list, such as ['server', '--option']"
        for name, tools in _named_tools(server):
            if isinstance(tools, str):
                yield f"{where}: {name} must be a list of names, such as [{tools!r}]"
        if server.connect_s <= 0 or server.call_s <= 0:
            yield f"{where}: connect_s and call_s must be more than 0 seconds"
        yield from (
            f"{where} is for {name!r}, which is not among its agents" for name in server.agents if name not in agents
        )
