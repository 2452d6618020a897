"""Runs inside runs: an agent called by a tool is told under the call that caused it. Called by teams' tools.

The worker enters a `RunScope` around each run; `nested_run` and `agent_tool` hand it on to the inner runner. Without a
worker there is no scope, and both are the SDK's own behaviour: a team runs in a plain test with `agents.Runner`.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agents import Agent, FunctionTool, RunConfig, RunContextWrapper, RunHooks, Runner, StreamEvent, UserError
from agents.result import RunResult, RunResultStreaming
from agents.tool_context import ToolContext

from agents_app.restriction import UNRESTRICTED, Restriction

if TYPE_CHECKING:
    from agents_app.gate import Keeper

MAX_TURNS = 10

Inner = RunResult | RunResultStreaming


def _as_it_is(call_id: str) -> str:
    return call_id


@dataclass(frozen=True, slots=True)
class RunScope:
    """What a run hands on to the runs inside it. Made by the worker, read by hooks with `current()`."""

    conversation: str
    run: str
    hooks: RunHooks[Any] | None = None
    """told of every agent, model turn and tool call inside as well; `current().parent_call` says under which call"""
    run_config: RunConfig | None = None
    """models and limits; without it the inner run takes those of the call's own run"""
    on_event: Callable[[StreamEvent], Awaitable[None]] | None = None
    """gets what inner agents stream; without it they do not stream"""
    tell: Callable[[dict[str, Any]], None] | None = None
    """puts an event of the team's own kind (`town_hall.stage`) in the record; it may be called from any thread"""
    our_call: Callable[[str], str] = _as_it_is
    """our id of the tool call that runs now under this provider's call id"""
    parent_call: str | None = None
    """our id of the tool call that this run is inside; None in the run itself"""
    answers: Mapping[str, Any] = field(default_factory=dict)
    """metadata of the message that the run answers: `chat_send` counts its hop on"""
    response_id: str = ""
    """the response that the run answers; empty for any other run"""
    restriction: Restriction = UNRESTRICTED
    """what the run's own agents may call at all; the gate heeds it"""
    is_resumed: bool = False
    """it goes on from where it waited: the tools that it waited for are offered in any case"""
    keeper: "Keeper | None" = None
    """answers the operators' rules to the gate, and records what it refuses"""
    key: str = ""
    """of a replay, the call under whose key its own call goes; empty for any other run"""


_scope: ContextVar[RunScope | None] = ContextVar("run_scope", default=None)


def current() -> RunScope | None:
    """Answer the scope of the run that this code runs in; None outside of a worker."""
    return _scope.get()


@contextmanager
def entered(scope: RunScope) -> Iterator[RunScope]:
    """Make it the current scope; tasks and threads begun inside inherit it."""
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


def idempotency_key(ctx: RunContextWrapper[Any]) -> str:
    """Answer the key under which an idempotent tool knows a call that it has done before: our id of the call; in a
    replay with the recorded arguments that of the first call. Empty outside of a worker."""
    scope, call_id = current(), getattr(ctx, "tool_call_id", None)
    if scope is None or call_id is None:
        return ""
    return scope.key if scope.key and scope.parent_call is None else scope.our_call(call_id)


def tell(event: dict[str, Any]) -> None:
    """Put an event of the team's own kind in the record; outside of a worker there is none, and nothing happens."""
    scope = current()
    if scope is not None and scope.tell is not None:
        scope.tell(event)


async def nested_run(
    ctx: RunContextWrapper[Any], agent: Agent[Any], input: str | list[Any], *, max_turns: int = MAX_TURNS
) -> Inner:
    """Run an agent inside a tool call, with the call's shared context, usage and models; answer its finished result.

    Raises UserError when the inner run stops for an approval: it could not be resumed from here. Put tools that need
    one on the team's own agents or on agents used by `agent_tool`.
    """
    scope = _under(ctx)
    config = (scope and scope.run_config) or getattr(ctx, "run_config", None)
    shared: RunContextWrapper[Any] = RunContextWrapper(context=ctx.context, usage=ctx.usage)
    settings: dict[str, Any] = {"context": shared, "max_turns": max_turns, "run_config": config}
    if scope is None:
        result: Inner = await Runner.run(agent, input, **settings)
    else:
        with entered(scope):
            result = await _told(agent, input, scope, settings)
    if result.interruptions:
        names = ", ".join(str(item.tool_name) for item in result.interruptions)
        raise UserError(f"{agent.name}, run inside a tool, asks for an approval ({names}): use agent_tool instead")
    return result


def agent_tool(agent: Agent[Any], name: str, description: str, **settings: Any) -> FunctionTool:
    """Make `agent.as_tool(...)` whose inner steps are told under the call; `settings` are those of `as_tool`."""
    tool = agent.as_tool(name, description, hooks=_HOOKS, on_stream=_forward, **settings)
    inner = tool.on_invoke_tool

    async def invoke(ctx: ToolContext[Any], arguments: str) -> Any:
        scope = _under(ctx)
        if scope is None:
            return await inner(ctx, arguments)
        with entered(scope):
            return await inner(ctx, arguments)

    tool.on_invoke_tool = invoke
    return tool


async def _told(agent: Agent[Any], input: str | list[Any], scope: RunScope, settings: dict[str, Any]) -> Inner:
    if scope.on_event is None:
        return await Runner.run(agent, input, hooks=scope.hooks, **settings)
    result = Runner.run_streamed(agent, input, hooks=scope.hooks, **settings)
    async for event in result.stream_events():
        await scope.on_event(event)
    return result


def _under(ctx: RunContextWrapper[Any]) -> RunScope | None:
    """Answer the scope of what this tool call causes."""
    scope, call_id = current(), getattr(ctx, "tool_call_id", None)
    if scope is None or call_id is None:
        return scope
    return replace(scope, parent_call=scope.our_call(call_id))


async def _forward(event: Any) -> None:
    scope = current()
    if scope is not None and scope.on_event is not None:
        await scope.on_event(event["event"])


class _ScopedHooks(RunHooks[Any]):
    """The hooks of whichever run an agent tool is called in: `as_tool` takes its hooks when the team is declared."""

    async def on_agent_start(self, *args: Any) -> None:
        await _hook("on_agent_start", *args)

    async def on_agent_end(self, *args: Any) -> None:
        await _hook("on_agent_end", *args)

    async def on_llm_start(self, *args: Any) -> None:
        await _hook("on_llm_start", *args)

    async def on_llm_end(self, *args: Any) -> None:
        await _hook("on_llm_end", *args)

    async def on_handoff(self, *args: Any, **named: Any) -> None:
        await _hook("on_handoff", *args, **named)

    async def on_tool_start(self, *args: Any) -> None:
        await _hook("on_tool_start", *args)

    async def on_tool_end(self, *args: Any) -> None:
        await _hook("on_tool_end", *args)


async def _hook(name: str, *args: Any, **named: Any) -> None:
    scope = current()
    if scope is not None and scope.hooks is not None:
        await getattr(scope.hooks, name)(*args, **named)


_HOOKS = _ScopedHooks()
