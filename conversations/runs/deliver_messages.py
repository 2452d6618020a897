"""Deliver messages to an active run at its next step, instead of after its end. Called by workers.

Such a message has its own queued run, so that it is answered whatever happens to the active run. When the active run is
about to call its model, the queued one ends as `delivered`, in one transaction under the fence: from then on the active
run has to answer the message, and the queued run never starts. Lock order: conversation, run (law B).
"""

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from django.db import connection

from conversations.core.errors import Fenced
from conversations.core.ids import new_id
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import sql
from conversations.events.log.records import NewEvent
from conversations.events.redacted_events import is_redacted
from conversations.models import Conversation, Event, Response, Run
from conversations.models.run import LIVE
from conversations.runs.claims import Body, Claim

# As text: each step of each run asks this, and Django needs 4 ms to write it.
WAITS = """SELECT 1 FROM conversations_run r JOIN conversations_conversation c ON c.id=r.conversation_id
 WHERE c.key=%s AND r.status='queued' AND r.at_next_step AND r.attempt=0 LIMIT 1"""


class DeliveredMessage(NamedTuple):
    """A message, identified by its event."""

    seq: int
    body: str


class Delivery(NamedTuple):
    """The run to which a message was delivered instead of starting its own run, the step before which it was (0: that
    is redacted), and the event."""

    into: Run
    step: int
    seq: int


def has_waiting(claimed: Claim) -> bool:
    """Return whether a message may wait for the next step of a run."""
    with connection.cursor() as cursor:
        return bool(sql.rows_of(cursor, WAITS, [claimed.conversation]))


def deliver(claimed: Claim, agents: Collection[str], step: int) -> list[DeliveredMessage]:
    """Take the messages that wait for the next step of these agents, oldest first; from now on the run answers them.

    None while the conversation is taken over, or once the run was asked to end; never that of a run that has begun,
    which continues from its own state, nor one that was redacted: its own run ends when it is claimed. Raises `Fenced`.
    """
    with write_transaction():
        conversation = Conversation.objects.locked(key=claimed.conversation)
        mine = Run.objects.mine(claimed.run, claimed.attempt).values_list("stop", flat=True).first()
        if mine is None:
            raise Fenced(f"run {claimed.run} is no longer running in attempt {claimed.attempt}")
        if mine or conversation.is_held:
            return []
        waiting = Run.objects.of(conversation).filter(status="queued", attempt=0, at_next_step=True, agent__in=agents)
        runs = list(waiting.only("id", "agent", "input_seq"))
        events = Event.objects.filter(conversation=conversation, seq__in=[run.input_seq for run in runs])
        rows = events.values_list("seq", "body", "erased_by", "principal")
        bodies = {seq: body for seq, body, erased_by, author in rows if not is_redacted(body, erased_by, author)}
        runs = [run for run in runs if run.input_seq in bodies]
        log.append([_delivered(claimed, run, step) for run in runs])
    return [DeliveredMessage(run.input_seq, bodies[run.input_seq]) for run in runs]


def receiver(conversation: Conversation) -> Run | None:
    """Return the run that accepts messages at its next step: an active or a suspended one; never one that answers a
    client of `/v1/responses`, which sends its own history."""
    run = Run.objects.of(conversation).filter(status__in=LIVE).first()
    return None if run is None or Response.objects.filter(run=run.id).exists() else run


def deliveries(conversation: int, runs: Iterable[Run]) -> dict[str, Delivery]:
    """Return where the messages of these delivered runs went, by the runs' ids."""
    delivered = [run for run in runs if run.status == "delivered"]
    if not delivered:
        return {}
    events = Event.objects.filter(conversation_id=conversation, seq__in=[run.ended_seq for run in delivered])
    steps = {seq: int(json.loads(body).get("step") or 0) for seq, body in events.values_list("seq", "body")}
    into = Run.objects.filter(id__in={run.delivered_to for run in delivered}).defer("state").in_bulk()
    return {
        run.id: Delivery(into[run.delivered_to], steps[run.ended_seq], run.ended_seq)
        for run in delivered
        if run.ended_seq in steps and run.delivered_to in into
    }


def _delivered(claimed: Claim, run: Run, step: int) -> NewEvent:
    fields: Body = {"event": "run.delivered", "id": new_id(), "run_id": run.id, "agent": run.agent}
    fields |= {"into": claimed.run, "step": step, "input_seq": run.input_seq}
    event = log.from_internal(claimed.conversation, fields, claimed.principal)
    return event._replace(attempt=claimed.attempt, fence_run=claimed.run)
