"""What a run begins with: the words to answer, the agents' memory, the team's context, earlier calls and decisions."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection
from pydantic import BaseModel

from agents_app import asking, contexts, heard, recollection, session
from agents_app.calls import Known
from agents_app.decided import Decided
from agents_app.heard import NOTHING, Heard
from agents_app.responding.asked import KIND, Asked
from agents_app.responding.asked import read as read_asked
from agents_app.session import DjangoSession
from agents_app.teams import Team
from conversations import log
from conversations.actions.runs import Claim
from conversations.models import Conversation, Event, ToolCall

ASKED = """SELECT c.id, c.handler, c.copied_seq, e.kind, e.principal, e.body FROM conversations_conversation c
 JOIN conversations_event e ON e.conversation_id=c.id WHERE c.key=%s AND e.seq=%s"""


class Opening(NamedTuple):
    """Read at once, before the SDK begins."""

    words: str | list[Any]
    """to answer; none where a fork goes on from what its agents remember"""
    metadata: Mapping[str, Any]
    memory: DjangoSession
    context: BaseModel
    calls: list[Known]
    decided: dict[str, Decided]
    turns: int
    handler: str
    asked: Asked | None = None  # of a client of the responses door
    heard: Heard = NOTHING

    @property
    def given(self) -> str | list[Any]:
        """What the SDK is given of a run that begins: the words to answer, and what was said since."""
        if not self.heard.after:
            return self.words
        words = [{"role": "user", "content": self.words}] if isinstance(self.words, str) else self.words
        return [*words, *self.heard.after]


def opening_of(claim: Claim, team: Team) -> Opening:
    """Read what a claimed run needs. Sync. Raises ContextRefused when the kept context does not fit the team."""
    with connection.cursor() as cursor:
        cursor.execute(ASKED, [claim.conversation, claim.input_seq])
        id_, handler, copied, kind, principal, body = cursor.fetchone()
    found = Conversation(id=id_, key=claim.conversation, handler=handler, copied_seq=copied)
    if copied:  # a fork: all that it is is asked
        found.refresh_from_db()
    is_remembered = claim.input_seq <= found.copied_seq
    asked = read_asked(body, principal) if kind == KIND and not is_remembered else None
    words: str | list[Any] = [] if is_remembered else log.words(body)
    handler = found.handler.removeprefix("agent:")
    memory, kept = _memory(found, claim.input_seq, team.name)
    told = heard.of(found, claim.input_seq, memory.heard) if asked is None else NOTHING
    memory.hear(told, is_resumed=claim.state is not None)
    context = contexts.read(team.context, kept, claim.conversation)
    if claim.attempt == 1:
        return Opening(words, metadata_of(body), memory, context, [], {}, 0, handler, asked, told)
    known = known_calls(claim)
    turns = Event.objects.filter(conversation__key=claim.conversation, run=claim.run).exclude(kind="token")
    last = turns.order_by("-turn").values_list("turn", flat=True).exclude(turn=None).first()
    facts = (known, asking.decisions(claim.run), last or 0, handler, asked, told)
    return Opening(words, metadata_of(body), memory, context, *facts)


def _memory(found: Conversation, answers: int, team: str) -> tuple[DjangoSession, str | None]:
    """Read a conversation's memory and a team's context; those of a fork are made from its prefix first."""
    config = settings.CONFIG
    memory = session.load(found.key, newest=config.session_items, days=config.session_days)
    if recollection.is_due(found):
        memory.recall(recollection.of_fork(found, answers, newest=config.session_items))
        return memory, recollection.context_of(found, team)
    return memory, memory.context.get(team)


def known_calls(claim: Claim) -> list[Known]:
    """Read the calls of earlier attempts, with the call that each is inside: only its event tells that."""
    rows = ToolCall.objects.filter(run=claim.run).order_by("called_seq")
    calls = list(rows.values_list("id", "call_id", "status", "arguments_digest", "called_seq"))
    told = Event.objects.filter(conversation__key=claim.conversation, seq__in=[seq for *_, seq in calls])
    parents = {seq: json.loads(body).get("parent_call") for seq, body in told.values_list("seq", "body")}
    return [Known(id_, call_id, status, digest, parents.get(seq)) for id_, call_id, status, digest, seq in calls]


def metadata_of(body: str) -> Mapping[str, Any]:
    """Answer the metadata of a message."""
    told: Any = json.loads(body)
    found = told.get("metadata") if isinstance(told, dict) else None
    return found if isinstance(found, dict) else {}
