"""Read what a run starts or resumes with: the message to answer, the agents' memory, the team's context, earlier calls,
decisions, and the SDK's state as it was saved. Called by `AgentRun`.

If a saved state no longer fits the team, `Incompatible` is raised and the run ends. If an MCP server that the run needs
is not connected, `ServerAway` is raised: the run keeps its saved state and waits, and is queued again when a worker has
connected to that server (`blocked_runs`). So a run outlives a restart of the server.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from agents import RunState
from django.conf import settings
from django.db import connection
from pydantic import BaseModel

from agents_app.approval_gate import stored_decisions
from agents_app.call_decisions import Decision
from agents_app.memory import fork_memory, interjections, session, team_context
from agents_app.memory.interjections import NOTHING, MissedMessages
from agents_app.memory.session import DjangoSession
from agents_app.open_responses.request import KIND, RunRequest
from agents_app.open_responses.request import read as read_request
from agents_app.recorded_values import reason_of
from agents_app.teams.definition import Team
from agents_app.worker import saved_state
from agents_app.worker.call_ids import EarlierCall
from agents_app.worker.saved_state import Incompatible, SavedState
from conversations.events import log, payload
from conversations.events.log import sql
from conversations.events.redacted_events import REDACTED, is_redacted
from conversations.models import Conversation, Event, ToolCall
from conversations.runs.budgets.evaluate import ORIGIN
from conversations.runs.claims import Claim

Away = Callable[[str], Mapping[str, str]]  # team → its MCP servers that are not connected, and what is wrong with each

MAKES_THE_CALL = ("approve", "edit")
INPUT_SQL = f"""SELECT c.id, c.handler, c.copied_seq, ({interjections.ANSWERED}),
 e.kind, e.principal, e.body, e.erased_by
 FROM conversations_conversation c JOIN conversations_event e ON e.conversation_id=c.id WHERE c.key=%s AND e.seq=%s"""


class ServerAway(Exception):
    """A decided call needs an MCP server that is not connected now. `why` is a text for people."""

    def __init__(self, server: str, why: str) -> None:
        super().__init__(f"{server}: {why}")
        self.server, self.why = server, why


class RunInput(NamedTuple):
    """The input, read once before the SDK starts."""

    words: str | list[Any]
    """to answer; none where the agents' memory has it: in a fork, and where a run is run again"""
    metadata: Mapping[str, Any]
    memory: DjangoSession
    context: BaseModel
    calls: list[EarlierCall]
    decided: dict[str, Decision]
    turns: int
    handler: str
    request: RunRequest | None = None  # of a client of the responses API
    missed: MissedMessages = NOTHING

    @property
    def sdk_input(self) -> str | list[Any]:
        """The SDK's input for a run that starts: the message to answer, and later messages."""
        if not self.missed.after:
            return self.words
        items = [{"role": "user", "content": self.words}] if isinstance(self.words, str) else self.words
        return [*items, *self.missed.after]


def load_run_input(claim: Claim, team: Team) -> RunInput:
    """Read what a claimed run needs. Sync. Raises ContextRefused if the saved context does not match the team,
    Incompatible if its message was redacted before it began."""
    with connection.cursor() as cursor:
        ((id_, handler, copied, answered, kind, principal, body, erased_by),) = sql.rows_of(
            cursor, INPUT_SQL, [claim.conversation, claim.input_seq]
        )
    fork = Conversation.objects.get(id=id_) if copied else None
    if claim.state is None and is_redacted(body, erased_by, principal):
        raise Incompatible(REDACTED.format(claim.input_seq))
    is_remembered = claim.input_seq <= copied
    request = read_request(body, principal) if kind == KIND and not is_remembered else None
    handler = handler.removeprefix("agent:")
    memory, saved_context = _memory(claim, fork, team.name)
    missed = NOTHING
    if request is None:
        since = max(memory.last_heard_seq, copied, answered)
        missed = interjections.missed_messages(claim, since, memory.delivered)
    words = log.spoken_text(body)
    text: str | list[Any] = [] if is_remembered or memory.holds_unanswered(claim.input_seq, words) else words
    memory.hear(missed, answers=claim.input_seq, is_resumed=claim.state is not None)
    context = team_context.read(team.context, saved_context, claim.conversation)
    if claim.attempt == 1:
        return RunInput(text, metadata_of(body), memory, context, [], {}, 0, handler, request, missed)
    earlier_calls = known_calls(claim)
    turns = Event.objects.filter(conversation__key=claim.conversation, run=claim.run).exclude(kind="token")
    last = turns.order_by("-turn").values_list("turn", flat=True).exclude(turn=None).first()
    remaining = (earlier_calls, stored_decisions.decisions(claim.run), last or 0, handler, request, missed)
    return RunInput(text, metadata_of(body), memory, context, *remaining)


def _memory(claim: Claim, fork: Conversation | None, team: str) -> tuple[DjangoSession, str | None]:
    """Read a conversation's memory, which for a fork is first made from the copied history, and a team's context."""
    config = settings.CONFIG
    memory = session.load(claim.conversation, newest=config.session_items, days=config.session_days)
    if fork is None:
        return memory, memory.context.get(team)
    if fork_memory.needs_memory(fork):
        memory.recall(fork_memory.build_fork_memory(fork, claim.input_seq, newest=config.session_items))
    return memory, fork_memory.saved_context(fork, memory, team)


def known_calls(claim: Claim) -> list[EarlierCall]:
    """Read the calls of earlier attempts and the one that a replay requests, each with its parent call and the whole of
    a long call id, which only its event contains."""
    rows = ToolCall.objects.filter(run=claim.run).exclude(origin=ORIGIN).order_by("called_seq")
    calls = list(rows.values_list("id", "call_id", "status", "arguments_digest", "name", "called_seq"))
    events = Event.objects.filter(conversation__key=claim.conversation, seq__in=[seq for *_, seq in calls])
    bodies = {seq: json.loads(body) for seq, body in events.values_list("seq", "body")}
    earlier_calls = []
    for id_, call_id, status, digest, name, seq in calls:
        fields = bodies.get(seq, {})
        call_id = fields.get("tool_call_id") or call_id
        earlier_calls.append(EarlierCall(id_, call_id, status, digest, name, fields.get("parent_call")))
    return earlier_calls


def metadata_of(body: str) -> Mapping[str, Any]:
    """Return the metadata of a message."""
    fields = payload.decoded(body)
    metadata = fields.get("metadata") if isinstance(fields, dict) else None
    return metadata if isinstance(metadata, dict) else {}


async def restore_run_state(
    claim: Claim, run_input: RunInput, team: Team, away: Away
) -> tuple[RunState[Any, Any], SavedState]:
    """Return the SDK's state and the saved state that it was restored from. Raises Incompatible, ServerAway,
    ContextRefused."""
    missing = {name: away(team.name)[name] for name in _servers(run_input) if name in away(team.name)}
    needed = [name for name in _servers(run_input, MAKES_THE_CALL) if name in missing]
    if needed:
        raise ServerAway(needed[0], missing[needed[0]])
    try:
        return await _deserialize(claim, team)
    except Incompatible:
        if missing:  # its tools are not known here yet
            raise ServerAway(*next(iter(missing.items()))) from None
        raise


async def _deserialize(claim: Claim, team: Team) -> tuple[RunState[Any, Any], SavedState]:
    saved, tools = saved_state.verify(claim)
    try:
        state: RunState[Any, Any] = await RunState.from_string(
            team.agent(claim.agent), saved.state,
            context_deserializer=team_context.reader(team.context), strict_context=True,
        )  # fmt: skip
    except team_context.ContextRefused:
        raise
    except Exception as error:  # whatever the SDK raises over a state that it cannot read
        raise Incompatible(reason_of(error)) from error
    interruptions = state.get_interruptions()
    if interruptions and saved_state.tools_hash(interruptions) != tools:
        names = ", ".join(sorted({item.qualified_name or str(item.name) for item in interruptions}))
        raise Incompatible(f"a tool whose approval was requested has changed: {names}")
    return state, saved


def _servers(run_input: RunInput, decisions: tuple[str, ...] = ()) -> Iterator[str]:
    """Return the MCP servers of the calls that were decided and have not ended."""
    for call in run_input.calls:
        decision = run_input.decided.get(call.id)
        if decision is None or not decision.server or (decisions and decision.decision not in decisions):
            continue
        if call.status in ("waiting", "approved", "rejected"):
            yield decision.server
