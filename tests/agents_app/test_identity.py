"""A tool's identity, layer by layer, on the SDK's own helpers, and what a real run of the SDK makes of it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    Handoff,
    RunConfig,
    RunContextWrapper,
    Runner,
    Tool,
    function_tool,
    handoff,
    set_trace_processors,
)
from agents import tool_namespace as put_into
from agents.mcp import MCPServer
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext
from agents.tracing import TracingProcessor
from mcp.types import CallToolResult, GetPromptResult, ListPromptsResult, TextContent
from mcp.types import Tool as McpTool

from agents_app.tools import identity, name_collisions


@function_tool
def look(place: str) -> str:
    """Look."""
    return place


@function_tool(defer_loading=True)
def later(ctx: ToolContext[Any]) -> str:
    """Do it later."""
    return f"called as {ctx.tool_namespace}/{ctx.tool_name}"


@function_tool(name_override="later")
def at_once() -> str:
    """Do it at once."""
    return "done at once"


(in_files,) = put_into(name="fs", description="Files.", tools=[look])
asking = Agent[Any](name="Inner").as_tool("ask_inner", "Ask.")

Layers = tuple[Any, ...]
FUNCTION = ("function", None, None)


LAYERS: dict[str, tuple[FunctionTool, Layers]] = {
    "bare": (look, ("look", None, "look", "bare:look", ("look",), "look", *FUNCTION)),
    "namespaced": (
        in_files,
        ("look", "fs", "fs.look", "namespaced:fs.look", ("fs.look",), "fs.look", *FUNCTION),
    ),
    "agent": (
        asking,
        ("ask_inner", None, "ask_inner", "bare:ask_inner", ("ask_inner",), "ask_inner", "agent_as_tool", None, None),
    ),
}


@pytest.mark.parametrize(("tool", "layers"), LAYERS.values(), ids=LAYERS)
def test_every_layer_of_a_tool_is_told_apart(tool: FunctionTool, layers: Layers) -> None:
    assert identity.identity_of(tool, [tool]) == layers


def test_a_deferred_tool_gets_a_bare_approval_alias_only_without_a_bare_sibling() -> None:
    alone = identity.identity_of(later, [later, look])
    beside = identity.identity_of(later, [later, at_once])

    assert (alone.lookup_key, alone.trace_name) == ("deferred_top_level:later", "later")
    assert alone.approval_keys == ("later", "deferred_top_level:later")
    assert beside.approval_keys == ("deferred_top_level:later",)
    assert identity.identity_of(at_once, [later, at_once]).approval_keys == ("later",)


class Desk(MCPServer):
    """A server in this process that notes what it is asked for."""

    def __init__(self, *names: str, name: str = "city desk") -> None:
        super().__init__()
        self._names, self._name = names, name
        self.tool_names: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[McpTool]:
        return [McpTool(name=name, description="File.", inputSchema={"type": "object"}) for name in self._names]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        self.tool_names.append(tool_name)
        return CallToolResult(content=[TextContent(type="text", text="filed")])

    async def list_prompts(self) -> ListPromptsResult:
        return ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: Any = None) -> GetPromptResult:
        raise NotImplementedError


def offered(agent: Agent[Any]) -> list[Tool]:
    """Return the MCP tools as a model is offered them."""
    return asyncio.run(agent.get_mcp_tools(RunContextWrapper(None)))


def test_an_mcp_prefix_never_renames_the_tool_on_its_server() -> None:
    desk = Desk("incidents/create")
    public = "mcp_city_desk__incidents_create"
    model = ScriptedModel([[function_call(public, {}, call_id="c1")], [assistant_message("done")]])
    agent = Agent[Any](name="A", model=model, mcp_servers=[desk], mcp_config={"include_server_in_tool_names": True})

    (tool,) = offered(agent)
    asyncio.run(Runner.run(agent, "hi", run_config=RunConfig(tracing_disabled=True)))

    identity_ = identity.identity_of(tool)
    assert (identity_.name, identity_.qualified_name, identity_.lookup_key) == (public, public, f"bare:{public}")
    assert (identity_.origin, identity_.mcp_server, identity_.name_there) == ("mcp", "city desk", "incidents/create")
    assert identity.layers(tool)["mcp_server"] == "city desk"  # type: ignore[arg-type]
    assert desk.tool_names == ["incidents/create"]


def test_names_of_handoffs_are_reserved_only_where_prefixes_are_made_and_only_while_enabled() -> None:
    desk, name = Desk("x", name="b"), "mcp_b__x"
    target = Agent[Any](name="B")
    for enabled, is_moved in ((True, True), (False, False)):
        given = handoff(target, tool_name_override=name, is_enabled=enabled)
        prefixed = Agent[Any](
            name="A", mcp_servers=[desk], mcp_config={"include_server_in_tool_names": True}, handoffs=[given]
        )
        plain = Agent[Any](name="A", mcp_servers=[Desk(name, name="b")], handoffs=[given])

        (made,) = offered(prefixed)
        (schema,) = offered(plain)

        assert (made.name != name) is is_moved
        assert schema.name == name
        assert bool(list(name_collisions.collisions([schema], [given]))) is enabled


def test_a_handoffs_name_is_the_one_that_the_sdk_makes() -> None:
    target = Agent[Any](name="Front Desk")

    (problem,) = name_collisions.collisions([FunctionTool("transfer_to_front_desk", "", {}, never)], [target])

    assert Handoff.default_tool_name(target) in problem
    assert "the handoff to 'Front Desk'" in problem


async def never(ctx: Any, arguments: str) -> str:
    raise AssertionError


class Spans(TracingProcessor):
    """Keeps the names of function spans."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_span_end(self, span: Any) -> None:
        exported = span.export() or {}
        if exported.get("span_data", {}).get("type") == "function":
            self.names.append(exported["span_data"]["name"])

    def on_span_start(self, span: Any) -> None: ...

    def on_trace_start(self, trace: Any) -> None: ...

    def on_trace_end(self, trace: Any) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Collect spans instead of sending them anywhere."""
    spans = Spans()
    set_trace_processors([spans])
    yield spans
    set_trace_processors([])


def test_the_synthetic_namespace_of_a_deferred_call_stays_until_the_tool_is_invoked(spans: Spans) -> None:
    gated = function_tool(later_gated, name_override="later", defer_loading=True, needs_approval=True)
    call: Any = function_call("later", {}, call_id="c1", namespace="later")
    agent = Agent[Any](name="A", model=ScriptedModel([[call], [assistant_message("ok")]]), tools=[gated, at_once])

    async def run() -> tuple[Any, Any]:
        first = await Runner.run(agent, "hi")
        state = first.to_state()
        (interruption,) = first.interruptions
        state.approve(interruption)
        return interruption, await Runner.run(agent, state)

    stopped_on, result = asyncio.run(run())

    assert (stopped_on.tool_namespace, stopped_on.raw_item.namespace, stopped_on.tool_lookup_key) == (
        "later", "later", ("deferred_top_level", "later")
    )  # fmt: skip
    assert identity.find(agent.tools, stopped_on) is gated
    assert identity.layers(gated, stopped_on.tool_namespace)["namespace"] == "later"
    assert [item.output for item in result.new_items if item.type == "tool_call_output_item"] == ["as later/later"]
    assert set(spans.names) == {"later"}


def later_gated(ctx: ToolContext[Any]) -> str:
    """Do it later, once approved."""
    return f"as {ctx.tool_namespace}/{ctx.tool_name}"


def test_a_call_finds_its_tool_by_its_lookup_key_never_by_a_name_alone() -> None:
    tools: list[Tool] = [at_once, later, look, in_files]
    calls = {
        ("later", None): at_once,
        ("later", "later"): later,
        ("look", None): look,
        ("look", "fs"): in_files,
        ("look", "other"): None,
        ("gone", None): None,
    }

    for (name, space), tool in calls.items():
        assert identity.find(tools, function_call(name, {}, call_id="c", namespace=space)) is tool
