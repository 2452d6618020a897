"""Read the input of a run: the message to answer, the agents' memory, the team's context, earlier calls and
decisions."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from pydantic import BaseModel

from agents_app.approval_gate import run_approvals
from agents_app.approval_gate.gate import Decision
from agents_app.memory import fork_memory, interjections, session, team_context
from agents_app.memory.interjections import NOTHING, MissedMessages
from agents_app.memory.session import DjangoSession
from agents_app.open_responses.request import KIND, RunRequest
from agents_app.open_responses.request import read as read_request
from agents_app.teams.definition import Team
from agents_app.worker.call_ids import EarlierCall
from conversations.events import log
from conversations.models import Conversation, Event, ToolCall
from conversations.runs.budgets.evaluate import ORIGIN
from conversations.runs.claims import Claim

INPUT_SQL = """SELECT c.id, c.handler, c.copied_seq, e.kind, e.principal, e.body FROM conversations_conversation c
 JOIN conversations_event e ON e.conversation_id=c.id WHERE c.key=%s AND e.seq=%s"""


class RunInput(NamedTuple):
    """The input, read once before the SDK starts."""

    words: str | list[Any]
    """to answer; none where a fork continues from what its agents remember"""
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
    """Read what a claimed run needs. Sync. Raises ContextRefused if the saved context does not match the team."""
    with connection.cursor() as cursor:
        cursor.execute(INPUT_SQL, [claim.conversation, claim.input_seq])
        id_, handler, copied, kind, principal, body = cursor.fetchone()
    conversation = Conversation(id=id_, key=claim.conversation, handler=handler, copied_seq=copied)
    if copied:  # a fork: read all of its fields
        conversation.refresh_from_db()
    is_remembered = claim.input_seq <= conversation.copied_seq
    request = read_request(body, principal) if kind == KIND and not is_remembered else None
    text: str | list[Any] = [] if is_remembered else log.spoken_text(body)
    handler = conversation.handler.removeprefix("agent:")
    memory, saved_context = _memory(conversation, claim.input_seq, team.name)
    missed = _missed(conversation, claim, memory) if request is None else NOTHING
    memory.hear(missed, is_resumed=claim.state is not None)
    context = team_context.read(team.context, saved_context, claim.conversation)
    if claim.attempt == 1:
        return RunInput(text, metadata_of(body), memory, context, [], {}, 0, handler, request, missed)
    earlier_calls = known_calls(claim)
    turns = Event.objects.filter(conversation__key=claim.conversation, run=claim.run).exclude(kind="token")
    last = turns.order_by("-turn").values_list("turn", flat=True).exclude(turn=None).first()
    remaining = (earlier_calls, run_approvals.decisions(claim.run), last or 0, handler, request, missed)
    return RunInput(text, metadata_of(body), memory, context, *remaining)


def _missed(conversation: Conversation, claim: Claim, memory: DjangoSession) -> MissedMessages:
    return interjections.missed_messages(conversation, claim.input_seq, memory.last_heard_seq, memory.delivered)


def _memory(conversation: Conversation, answers: int, team: str) -> tuple[DjangoSession, str | None]:
    """Read a conversation's memory and a team's context; for a fork, create them first from the copied history."""
    config = settings.CONFIG
    memory = session.load(conversation.key, newest=config.session_items, days=config.session_days)
    if fork_memory.needs_memory(conversation):
        memory.recall(fork_memory.build_fork_memory(conversation, answers, newest=config.session_items))
        return memory, fork_memory.context_of(conversation, team)
    return memory, memory.context.get(team)


def known_calls(claim: Claim) -> list[EarlierCall]:
    """Read the calls of earlier attempts, each with its parent call, which only its event contains."""
    rows = ToolCall.objects.filter(run=claim.run).exclude(origin=ORIGIN).order_by("called_seq")
    calls = list(rows.values_list("id", "call_id", "status", "arguments_digest", "called_seq"))
    events = Event.objects.filter(conversation__key=claim.conversation, seq__in=[seq for *_, seq in calls])
    parents = {seq: json.loads(body).get("parent_call") for seq, body in events.values_list("seq", "body")}
    return [EarlierCall(id_, call_id, status, digest, parents.get(seq)) for id_, call_id, status, digest, seq in calls]


def metadata_of(body: str) -> Mapping[str, Any]:
    """Return the metadata of a message."""
    payload: Any = json.loads(body)
    metadata = payload.get("metadata") if isinstance(payload, dict) else None
    return metadata if isinstance(metadata, dict) else {}
