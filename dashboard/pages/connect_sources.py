"""The programs that can be connected, and the lines that connect each: one card each on the Connect page."""

import json
import shlex
from collections.abc import Callable
from typing import NamedTuple

CLAUDE_HOOKS = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest",
    "SubagentStart", "SubagentStop", "Stop", "SessionEnd",
)  # fmt: skip
CODEX_HOOKS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop")
# Many instrumentations leave texts out unless they are configured to record them, in spans.
OTEL_WORDS = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only",
    "TRACELOOP_TRACE_CONTENT": "true",
}
DECISION_S = 600  # seconds that a program waits for a decision at most


class Connection(NamedTuple):
    """What the set-up lines are filled with. `url` has no trailing slash."""

    url: str
    secret: str
    agent: str

    @property
    def exports(self) -> list[str]:
        """Return shell lines that export the server's address and the token."""
        return [_export("SWITCHBOARD_URL", self.url), _export("SWITCHBOARD_TOKEN", self.secret)]


class SetupStep(NamedTuple):
    """Lines to copy, with where they go."""

    label: str
    code: str


class ProgramKind(NamedTuple):
    """A kind of program: the role its token needs, a description, and the set-up steps."""

    title: str
    help: str
    role: str
    heading: str
    steps: Callable[[Connection], list[SetupStep]]


def _export(name: str, value: str) -> str:
    return f"export {name}={shlex.quote(value)}"


def _http(to: Connection) -> list[SetupStep]:
    message = {
        "type": "message", "conversation_id": f"hello-{to.agent}", "sender": f"agent:{to.agent}",
        "recipient": f"chat:hello-{to.agent}", "content": f"Hello from {to.agent}.",
    }  # fmt: skip
    body = json.dumps({"topic": f"chat:hello-{to.agent}", "payload": message}, ensure_ascii=False)
    send = 'curl -fsS "$SWITCHBOARD_URL/api/v1/publish" -H "Authorization: Bearer $SWITCHBOARD_TOKEN"'
    lines = [*to.exports, f'{send} -H "Content-Type: application/json" -d {shlex.quote(body)}']
    return [SetupStep(f"Line {number}", line) for number, line in enumerate(lines, 1)]


def _agents_sdk(to: Connection) -> list[SetupStep]:
    return [
        SetupStep("Install, from a copy of this repository", "pip install './switchboard[agents]'"),
        SetupStep(
            "In the shell that runs your program",
            "\n".join([*to.exports, _export("AGENT_NAME", to.agent)]),
        ),
        SetupStep("In your program, once", "import switchboard\nswitchboard.watch_agents()"),
    ]


def _opentelemetry(to: Connection) -> list[SetupStep]:
    lines = [
        _export("OTEL_EXPORTER_OTLP_ENDPOINT", to.url),
        _export("OTEL_EXPORTER_OTLP_HEADERS", f"Authorization=Bearer%20{to.secret}"),
        "export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
        _export("OTEL_SERVICE_NAME", to.agent),
        *(_export(name, value) for name, value in OTEL_WORDS.items()),
    ]
    return [SetupStep("In the shell that runs your program", "\n".join(lines))]


def _beside(to: Connection, provider: str) -> list[SetupStep]:
    """Return the steps that export to Switchboard in addition to the exporter a program already has."""
    lines = [
        "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter",
        "from opentelemetry.sdk.trace.export import BatchSpanProcessor",
        "",
        provider,
    ]
    return [*_opentelemetry(to), SetupStep("In your program, once it has set up its own", "\n".join(lines))]


def _langfuse(to: Connection) -> list[SetupStep]:
    add = "trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))"
    return _beside(to, f"from opentelemetry import trace\n{add}")


def _phoenix(to: Connection) -> list[SetupStep]:
    added = "BatchSpanProcessor(OTLPSpanExporter()), replace_default_processor=False"
    return _beside(to, f"tracer_provider.add_span_processor({added})  # that register() gave you")


def _claude_code(to: Connection) -> list[SetupStep]:
    post = {
        "type": "http", "url": f"{to.url}/api/v1/hooks/claude-code", "timeout": 5,
        "headers": {"Authorization": "Bearer $SWITCHBOARD_TOKEN"}, "allowedEnvVars": ["SWITCHBOARD_TOKEN"],
    }  # fmt: skip
    waiting = post | {"timeout": DECISION_S}
    hooks = {name: [{"hooks": [waiting if name == "PermissionRequest" else post]}] for name in CLAUDE_HOOKS}
    return [
        SetupStep("In the shell that runs claude", to.exports[1]),
        SetupStep("Add to ~/.claude/settings.json", json.dumps({"hooks": hooks}, indent=2)),
    ]


def _codex(to: Connection) -> list[SetupStep]:
    command = (
        f'curl -sf -m {DECISION_S - 10} -H "Authorization: Bearer $SWITCHBOARD_TOKEN" --data-binary @-'
        f" {shlex.quote(f'{to.url}/api/v1/hooks/codex')} || true"
    )
    post = {"hooks": [{"type": "command", "timeout": DECISION_S, "command": command}]}
    return [
        SetupStep("In the shell that runs codex", to.exports[1]),
        SetupStep("In ~/.codex/hooks.json", json.dumps({"hooks": {name: [post] for name in CODEX_HOOKS}}, indent=2)),
    ]


def _ag_ui(to: Connection) -> list[SetupStep]:
    run_input = {
        "threadId": f"hello-{to.agent}", "runId": "run-1", "tools": [], "context": [],
        "messages": [{"id": "message-1", "role": "user", "content": "Hello"}],
    }  # fmt: skip
    post = 'curl -fsSN "$SWITCHBOARD_URL/api/v1/agui/agents/Dialogue" -H "Authorization: Bearer $SWITCHBOARD_TOKEN"'
    front_end = (
        "new HttpAgent({ url: `${process.env.SWITCHBOARD_URL}/api/v1/agui/agents/Dialogue`,\n"
        "  headers: { Authorization: `Bearer ${process.env.SWITCHBOARD_TOKEN}` } })"
    )
    return [
        SetupStep("In the shell that runs your front end's server", "\n".join(to.exports)),
        SetupStep(
            "Try it there", f'{post} -H "Content-Type: application/json" -d {shlex.quote(json.dumps(run_input))}'
        ),
        SetupStep("In the server, with @ag-ui/client or CopilotKit", front_end),
    ]


SOURCES = {
    "http": ProgramKind(
        "Any HTTP client", "Messages, tokens and tool calls as JSON.", "agent",
        "Run these three lines in a shell", _http,
    ),
    "agents-sdk": ProgramKind(
        "OpenAI Agents SDK", "One line in the program; with approve=True its approvals are decided here.", "agent",
        "Add one line to your program", _agents_sdk,
    ),
    "opentelemetry": ProgramKind(
        "OpenTelemetry", "LangGraph, pydantic-ai, the Vercel AI SDK, Google ADK and others that export traces.",
        "telemetry", "Set the exporter’s environment", _opentelemetry,
    ),
    "langfuse": ProgramKind(
        "Langfuse", "Traces from its SDK (Python 3, JS 4) are also sent here; stored traces can be imported as a file.",
        "telemetry", "Export to Switchboard as well", _langfuse,
    ),
    "phoenix": ProgramKind(
        "Phoenix", "OpenInference traces for Phoenix are also sent here; stored traces can be imported as a file.",
        "telemetry", "Export to Switchboard as well", _phoenix,
    ),
    "claude-code": ProgramKind(
        "Claude Code", "Live sessions; permission prompts appear here.", "agent", "Add the hooks", _claude_code,
    ),
    "codex": ProgramKind(
        "Codex", "Live sessions; permission prompts appear here.", "agent", "Add the hooks", _codex,
    ),
    "ag-ui": ProgramKind(
        "AG-UI front end", "CopilotKit and others talk to the agents that run here; approvals become interrupts.",
        "operator", "Point it at an agent", _ag_ui,
    ),
}  # fmt: skip


class RecordingKind(NamedTuple):
    """A program whose recordings can be imported, and how to get such a file."""

    title: str
    help: str
    code: str = ""


RECORDINGS = (
    RecordingKind(
        "Langfuse",
        "A trace with its observations, or the rows of an export.",
        'curl -fsS -u "$LANGFUSE_PUBLIC_KEY:$LANGFUSE_SECRET_KEY" "$LANGFUSE_BASE_URL/api/public/traces/TRACE_ID"'
        " > langfuse.json",
    ),
    RecordingKind(
        "Phoenix",
        "The spans of a project, or its data frame as JSON.",
        'curl -fsS "$PHOENIX_COLLECTOR_ENDPOINT/v1/projects/default/spans?limit=1000" > phoenix.json',
    ),
    RecordingKind("OpenTelemetry", "OTLP in JSON: requests, or the lines of a collector’s file exporter."),
    RecordingKind("LangGraph", "The database of langgraph-checkpoint-sqlite. Nothing is unpickled or run."),
    RecordingKind("Inspect", "Logs, .eval and .json.", "inspect log list"),
    RecordingKind("Google ADK", "A session or an eval set as JSON, or the database of a session service."),
    RecordingKind("AutoGen", "A TaskResult or a saved state as JSON, messages on lines, or a notebook."),
    RecordingKind("Claude Code", "The session’s file.", "ls ~/.claude/projects/*/*.jsonl"),
    RecordingKind("Codex", "The session’s file.", "ls ~/.codex/sessions/*/*/*/rollout-*.jsonl"),
    RecordingKind("pi", "The session’s file.", "ls ~/.pi/agent/sessions/*/*.jsonl"),
)
