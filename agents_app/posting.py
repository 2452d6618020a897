"""The bus of the agents' own messages in a worker: the log, as the run's agent, behind the run's fence (design 3.3)."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import msgspec

from agents_app.nesting import current
from agents_app.pen import mask
from agents_app.teams import Team
from conversations import audit, envelopes, log
from conversations.actions.runs import Claim
from conversations.bus import LogBus
from conversations.errors import NotAllowed
from conversations.models import Conversation
from conversations.principals import SYSTEM
from switchboard.bus import BusMessage


class RunBus(LogBus):
    """What `switchboard.get_bus()` answers in a worker. Tools of many runs use it at once: the scope says whose."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        super().__init__(SYSTEM)  # for reading; what is published has a run's principal
        self._threads = threads
        self._claims: dict[str, tuple[Claim, Team]] = {}

    def enter(self, claim: Claim, team: Team) -> None:
        """Let the tools of a run publish, where its team may."""
        self._claims[claim.run] = claim, team

    def leave(self, claim: Claim) -> None:
        """The run is over here."""
        self._claims.pop(claim.run, None)

    def publish(self, topic: str, message: BusMessage) -> str:
        """Publish as the run that this code is called in. Raises NotAllowed for a conversation that is none of its own,
        which the audit log is told; Fenced."""
        scope = current()
        claim, team = self._claims.get(scope.run, (None, None)) if scope else (None, None)
        if claim is None or team is None:
            raise NotAllowed("only a tool of a run may send messages from a worker")
        if _has_loop():  # an async tool; the loop waits for one commit
            return self._threads.submit(self._publish, claim, team, topic, message).result()
        return self._publish(claim, team, topic, message)

    def _publish(self, claim: Claim, team: Team, topic: str, message: BusMessage) -> str:
        envelopes.check_topic(topic)
        body = msgspec.json.encode(message.payload)
        event = log.of_payload(topic, message.id, body.decode(), envelopes.read(body), claim.principal)
        envelopes.check_named(topic, event.conversation)
        _require(claim, team, event.conversation)
        log.append([event._replace(run=claim.run, attempt=claim.attempt)])
        return message.id


def _require(claim: Claim, team: Team, conversation: str | None) -> None:
    if conversation == claim.conversation or (conversation is not None and team.may_post(conversation)):
        return
    if not Conversation.objects.filter(key=conversation, parent__key=claim.conversation).exists():
        where = "its own conversation, that conversation's children, and those its team allows"
        named = mask(str(conversation))  # a model's words
        why = f"a run of {team.name} may post to {where}; not to {named}"
        audit.refuse(claim.principal, "publish", f"conversation:{named}", reason=why)
        raise NotAllowed(why)


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
