"""The run that code runs in: entered by the worker, read by tools, hooks and the gate."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agents import Agent, FunctionTool, RunConfig, RunContextWrapper, RunHooks, StreamEvent
from agents.tool_context import ToolContext

from agents_app.call_decisions import Decision, Refusal

if TYPE_CHECKING:
    from conversations.runs.policy.evaluate import Rows


@dataclass(frozen=True)
class Restriction:
    """The calls that a run's own agents may make, besides what its team and the operators say: `tool_choice` and
    `allowed_tools` of `/v1/responses`. What happens inside a call that was let through is part of it."""

    allowed: frozenset[str] | None = None
    """qualified names of the tools that may be called; None, and an empty set, restrict nothing"""
    none: bool = False
    """no tool at all may be called (`tool_choice: "none"`)"""


UNRESTRICTED = Restriction()


class RunnerId(NamedTuple):
    """One runner of an attempt: the run itself, or a run inside one of its tool calls, of which a call may have several
    at once."""

    parent_call: str | None = None
    """our id of the tool call that the runner is inside; None in the run itself"""
    number: int = 0
    """another one for each runner inside a call"""


OWN_RUNNER = RunnerId()  # the run itself
_numbers = count(1)


class RunScopeHooks(RunHooks[Any], ABC):
    """The hooks of a run, and what they know of its calls; the worker's are `RecordingHooks`."""

    @abstractmethod
    def our_call(self, context: ToolContext[Any]) -> str:
        """Return our id of a call that is running."""

    @abstractmethod
    def decision_of_running(self, context: ToolContext[Any]) -> Decision | None:
        """Return a person's decision about a call that is being invoked."""

    @abstractmethod
    def record_replaced_output(self, call_id: str, replacement: Any, output: Any) -> None:
        """Record that a model gets `replacement` instead of a tool's `output`: the record keeps the output."""

    @abstractmethod
    def failed(self, call_id: str, error: BaseException) -> None:
        """Record the actual exception of a running call."""


class Gatekeeper(Protocol):
    """What the gate asks before a call starts; the worker's is `RunGatekeeper`."""

    async def rules(self) -> "Rows":
        """Return the operators' rules."""

    def decision_before_start(self, context: ToolContext[Any], tool: FunctionTool) -> Decision | None:
        """Return what a person decided about a tool's call that the gate is about to check."""

    def mark_needs_approval(self, call_id: str) -> None:
        """Mark a call that needs a person's approval unless a rule approves it."""

    async def apply_auto_approval(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> bool:
        """Have an auto-approval rule approve a call that has to wait; record that it did, and which."""

    async def refuse(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, refusal: Refusal) -> None:
        """Commit that a call was refused; only then is the model told."""


@dataclass(frozen=True, slots=True)
class RunScope:
    """What a run hands on to the runs inside it. Made by the worker, read by hooks with `current_scope()`."""

    conversation: str
    run: str
    hooks: RunScopeHooks | None = None
    """called for every agent, model turn and tool call inside as well; `current_parent_call()` says under which call"""
    run_config: RunConfig | None = None
    """models and limits; without it the inner run takes those of the call's own run"""
    on_event: Callable[[StreamEvent], Awaitable[None]] | None = None
    """gets what inner agents stream; without it they do not stream"""
    emit: Callable[[dict[str, Any]], None] | None = None
    """puts an event of the team's own kind (`town_hall.stage`) in the record; it may be called from any thread"""
    runner: RunnerId = OWN_RUNNER
    message_metadata: Mapping[str, Any] = field(default_factory=dict)
    """metadata of the message that the run answers: `chat_send` counts its hop on"""
    response_id: str = ""
    """the response that the run answers; empty for any other run"""
    restriction: Restriction = UNRESTRICTED
    """what the run's own agents may call at all; the gate heeds it"""
    is_resumed: bool = False
    """it goes on from where it waited: the tools that it waited for are offered in any case"""
    gatekeeper: Gatekeeper | None = None
    """answers the operators' rules to the gate, and records what it refuses"""
    idempotency_key: str = ""
    """of a replay, the call under whose key its own call goes; empty for any other run"""

    @property
    def parent_call(self) -> str | None:
        """Our id of the tool call that this run is inside; None in the run itself."""
        return self.runner.parent_call

    def our_call(self, context: ToolContext[Any]) -> str:
        """Return our id of the tool call that runs now, of which this is the context."""
        return self.hooks.our_call(context) if self.hooks is not None else context.tool_call_id

    def inside(self, call: str) -> "RunScope":
        """Return the scope of a new runner inside a tool call."""
        return replace(self, runner=RunnerId(call, next(_numbers)))


_scope: ContextVar[RunScope | None] = ContextVar("run_scope", default=None)


def current_scope() -> RunScope | None:
    """Return the scope of the run that this code runs in; None outside a worker."""
    return _scope.get()


def current_runner() -> RunnerId:
    """Return the runner that this code runs in."""
    scope = _scope.get()
    return scope.runner if scope else OWN_RUNNER


def current_parent_call() -> str | None:
    """Return our id of the tool call that this code runs inside; None in the run itself and outside a worker."""
    return current_runner().parent_call


@contextmanager
def enter_scope(scope: RunScope) -> Iterator[RunScope]:
    """Make it the current scope; tasks and threads begun inside inherit it."""
    token = _scope.set(scope)
    try:
        yield scope
    finally:
        _scope.reset(token)


def idempotency_key(ctx: RunContextWrapper[Any]) -> str:
    """Return the key under which an idempotent tool knows a call that it has done before: our id of the call; in a
    replay with the same arguments that of the replayed call. Empty outside a worker."""
    scope = current_scope()
    if scope is None or not isinstance(ctx, ToolContext):
        return ""
    return scope.idempotency_key if scope.idempotency_key and scope.parent_call is None else scope.our_call(ctx)


def tell(event: dict[str, Any]) -> None:
    """Put an event of the team's own kind in the record; outside a worker there is none, and nothing happens."""
    scope = current_scope()
    if scope is not None and scope.emit is not None:
        scope.emit(event)
