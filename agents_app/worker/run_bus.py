"""The bus for agents' own messages in a worker: writes to the log, as the run's agent, behind the run's fence
(§3.3)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import msgspec

from agents_app.recorded_values import mask
from agents_app.run_scope import current_scope
from agents_app.teams.definition import Team
from agents_app.worker.event_writer import RunEventWriter
from conversations.access.audit import chain, refusal_counter
from conversations.core import principals
from conversations.core.errors import NotAllowed
from conversations.core.principals import SYSTEM
from conversations.events import log, payload, registry
from conversations.events.log.records import NewEvent
from conversations.models import Conversation, Event
from conversations.runs.claims import Body, Claim
from conversations.transport.log_bus import LogBus
from switchboard.bus import BusMessage

PUBLISHABLE = registry.names_with("tools_may_publish")
OBSERVED = frozenset(PUBLISHABLE) - {"message"}  # of a tool: steps and words that it relays, not the run's own


class RunBus(LogBus):
    """The bus that `switchboard.get_bus()` returns in a worker. Tools of many runs use it at once; the scope identifies
    the run."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        super().__init__(SYSTEM)  # for reading; what is published has a run's principal
        self._threads = threads
        self._claims: dict[str, tuple[Claim, Team]] = {}

    def enter(self, claim: Claim, team: Team) -> None:
        """Allow the tools of a run to publish, to the conversations that its team allows."""
        self._claims[claim.run] = claim, team

    def leave(self, claim: Claim) -> None:
        """Remove an attempt that has ended here; the run may be in its next one already."""
        if claim.run in self._claims and self._claims[claim.run][0].attempt == claim.attempt:
            del self._claims[claim.run]

    def emit(self, event_writer: RunEventWriter, event: Body) -> None:
        """Write an event of a team's own type without waiting. Raises NotAllowed for any other type, which is recorded
        in the audit log. From any thread except this bus's own."""
        try:
            event_writer.emit(event)
        except NotAllowed as error:
            self._threads.submit(
                _enter_refusal, event_writer.claim, event_writer.claim.conversation, error.message
            ).result()
            error.is_recorded = True
            raise

    def publish(self, topic: str, message: BusMessage) -> str:
        """Publish as the run in which this code is called. Raises NotAllowed for a conversation that the run may not
        post to, which is recorded in the audit log; Fenced."""
        scope = current_scope()
        claim, team = self._claims.get(scope.run, (None, None)) if scope else (None, None)
        if claim is None or team is None:
            raise NotAllowed("only a tool of a run may send messages from a worker")
        if _has_loop():  # an async tool; the loop waits for one commit
            return self._threads.submit(self._publish, claim, team, topic, message).result()
        return self._publish(claim, team, topic, message)

    def _publish(self, claim: Claim, team: Team, topic: str, message: BusMessage) -> str:
        payload.check_topic(topic)
        body = msgspec.json.encode(message.payload)
        event = log.from_bus(topic, message.id, body.decode(), payload.parse(body), claim.principal)
        payload.check_named(topic, event.conversation)
        _require_stateless(claim, topic, event)
        _require(claim, team, event.conversation)
        log.append([_as_written_by(claim, event)])
        return message.id


def _as_written_by(claim: Claim, event: NewEvent) -> NewEvent:
    """Return the message as the run's own event if it is the run's text in its own conversation. All other messages are
    only guarded by the fence: steps and outputs that a tool relays are observed, and messages to another conversation
    arrive there from outside."""
    is_own = event.conversation == claim.conversation and event.kind not in OBSERVED
    run, turn = (claim.run, event.turn) if is_own else (None, None)
    return event._replace(run=run, turn=turn, fence_run=claim.run, attempt=claim.attempt)


def _require_stateless(claim: Claim, topic: str, event: NewEvent) -> None:
    """Raise NotAllowed for an event that changes state (law I), which only the worker itself may write."""
    kind = event.kind
    is_control = topic.startswith("control:")
    if not is_control and (kind in PUBLISHABLE or not registry.is_reserved(kind)):
        return
    what = f"control messages, as on {topic}" if is_control else kind
    allowed = "messages, tokens, tool steps, outputs, logs, signals and its own event types"
    why = f"a tool may publish {allowed}; not {mask(what)}"
    _refuse(claim, str(event.conversation), why)


def _require(claim: Claim, team: Team, conversation: str | None) -> None:
    if conversation == claim.conversation or (conversation is not None and team.may_post(conversation)):
        return
    if conversation is None or not _is_child(conversation, claim.conversation):
        where = "its own conversation, its child conversations, and those its team allows"
        named = mask(str(conversation))  # a model's words
        why = f"a run of {team.name} may only post to {where}; not to {named}"
        _refuse(claim, str(conversation), why)


def _refuse(claim: Claim, conversation: str, why: str) -> NoReturn:
    _enter_refusal(claim, conversation, why)
    raise NotAllowed(why)


def _enter_refusal(claim: Claim, conversation: str, why: str) -> None:
    target = f"conversation:{mask(conversation)}"
    if not refusal_counter.is_repeat(claim.principal, "publish", f"{target}: {why}", why):
        chain.refuse(claim.principal, "publish", target, reason=why)


def _is_child(conversation: str, of: str) -> bool:
    """Return whether people made it a child of `of`; an import's claim does not count."""
    child = Conversation.objects.filter(key=conversation, parent__key=of).first()
    if child is None:
        return False
    opening_events = Event.objects.filter(conversation=child, kind__in=("conversation.opened", "conversation.forked"))
    last = opening_events.order_by("-seq").values_list("principal", flat=True).first()
    return last is None or principals.is_people(last)


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
