"""Run agents inside tool calls and record them under the call that started them. Called by teams' tools.

The worker enters a `RunScope` around each run; `nested_run` and `agent_tool` pass it on to the inner runner. Without a
worker there is no scope, and both behave like the SDK itself: a team can run in a plain test with `agents.Runner`.
"""

from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper, RunHooks, Runner, UserError
from agents.result import RunResult, RunResultStreaming
from agents.tool_context import ToolContext

from agents_app.run_scope import RunScope, current_scope, enter_scope

MAX_TURNS = 10

Inner = RunResult | RunResultStreaming


async def nested_run(
    ctx: RunContextWrapper[Any], agent: Agent[Any], input: str | list[Any], *, max_turns: int = MAX_TURNS
) -> Inner:
    """Run an agent inside a tool call, with the call's shared context, usage and models; return its finished result.

    Raises UserError if the inner run stops for an approval, because it could not be resumed from here. Put tools that
    need approval on the team's own agents or on agents used with `agent_tool`.
    """
    scope = _under(ctx)
    config = (scope and scope.run_config) or getattr(ctx, "run_config", None)
    shared: RunContextWrapper[Any] = RunContextWrapper(context=ctx.context, usage=ctx.usage)
    settings: dict[str, Any] = {"context": shared, "max_turns": max_turns, "run_config": config}
    if scope is None:
        result: Inner = await Runner.run(agent, input, **settings)
    else:
        with enter_scope(scope):
            result = await _run_streamed(agent, input, scope, settings)
    if result.interruptions:
        names = ", ".join(str(item.tool_name) for item in result.interruptions)
        raise UserError(
            f"{agent.name} runs inside a tool but has tools that need approval ({names}): use agent_tool instead"
        )
    return result


def agent_tool(agent: Agent[Any], name: str, description: str, **settings: Any) -> FunctionTool:
    """Return `agent.as_tool(...)` whose inner steps are recorded under the call; `settings` are those of `as_tool`."""
    tool = agent.as_tool(name, description, hooks=_HOOKS, on_stream=_forward, **settings)
    inner = tool.on_invoke_tool

    async def invoke(ctx: ToolContext[Any], arguments: str) -> Any:
        scope = _under(ctx)
        if scope is None:
            return await inner(ctx, arguments)
        with enter_scope(scope):
            return await inner(ctx, arguments)

    tool.on_invoke_tool = invoke
    return tool


async def _run_streamed(agent: Agent[Any], input: str | list[Any], scope: RunScope, settings: dict[str, Any]) -> Inner:
    if scope.on_event is None:
        return await Runner.run(agent, input, hooks=scope.hooks, **settings)
    result = Runner.run_streamed(agent, input, hooks=scope.hooks, **settings)
    async for event in result.stream_events():
        await scope.on_event(event)
    return result


def _under(ctx: RunContextWrapper[Any]) -> RunScope | None:
    """Return the scope for what this tool call starts."""
    scope = current_scope()
    if scope is None or not isinstance(ctx, ToolContext):
        return scope
    return scope.inside(scope.our_call(ctx))


async def _forward(event: Any) -> None:
    scope = current_scope()
    if scope is not None and scope.on_event is not None:
        await scope.on_event(event["event"])


class _ScopedHooks(RunHooks[Any]):
    """The hooks of the run in which an agent tool is called: `as_tool` gets its hooks when the team is declared."""

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
    scope = current_scope()
    if scope is not None and scope.hooks is not None:
        await getattr(scope.hooks, name)(*args, **named)


_HOOKS = _ScopedHooks()
