"""How `authority_machine` acts: what there is in one play, and the ways in which an event enters the log."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, ClassVar

import msgspec
from django.core.management import call_command
from hypothesis.stateful import RuleBasedStateMachine

from agents_app.run_scope import RunScope, enter_scope
from agents_app.teams.definition import Team
from agents_app.worker.run_bus import RunBus
from conversations.access import authentication
from conversations.access.accounts import tokens
from conversations.asgi import published_message as door
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import NotAllowed, SwitchboardError
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Agent, Approval, User
from conversations.runs import claims
from switchboard.bus import BusMessage
from tests.support import authority_rows as rows
from tests.support.authority_model import GUESTS, Deed, World
from tests.support.cast import cast
from tests.support.event_types import EXAMPLES
from tests.support.unchecked import unchecked

KEYS = ("payroll", "Billing", "duty-1")  # one of an agent's name, one to which the team may post
PEOPLE = {"operator": "otto", "approver": "april", "viewer": "vera", "admin": "ada"}
NAMING = ("message", "output", "user_message", "response.received")
RELAYED = ("message", "token", "tool_step", "output", "log", "signal", "signal_send", "signal_recv", "dead_letter")


class AuthorityActs(RuleBasedStateMachine):
    """The people, callers and runs of one play."""

    deeds: ClassVar[Counter[str]] = Counter()  # what was tried, in all plays

    def __init__(self) -> None:
        super().__init__()
        call_command("flush", verbosity=0, interactive=False)
        self.world, self.claims, self.calls = World(), list[claims.Claim](), dict[str, str]()
        self.people: dict[str, User] = cast()
        Agent.objects.create(name="Dialogue", team="t", is_entry=True)
        self.team = Team(name="t", agents=[], entry=[], may_post_to=["duty-*"])
        self.bus = RunBus(DatabaseThreads("posts"))
        secrets = {name: tokens.make_token(SYSTEM, name, "agent") for name in GUESTS}
        secrets["robot"] = tokens.make_token(SYSTEM, "robot", "admin")
        callers = {name: authentication.caller_from_token(words) for name, words in secrets.items()}
        self.callers = {name: caller for name, caller in callers.items() if caller is not None}
        self.touched = set[str]()  # names whose `chat:` topic the last step may have changed
        self.fixed = rows.all_rights()

    def teardown(self) -> None:
        """Forget the runs."""
        for claim in self.claims:
            self.bus.leave(claim)

    def _publish(self, name: str, key: str, payload: dict[str, Any], to: str, source: str) -> None:
        to = f"chat:{key}" if to == "chat" else to
        payload = payload | {"id": new_id(), "conversation_id": key, "recipient": to}
        for topic in _topics(key, to) if payload.get("type") == "message" else [f"stream:{key}"]:
            try:
                event = door.event_of(topic, msgspec.Raw(json.dumps(payload).encode()), None, self.callers[name])
            except NotAllowed:
                assert payload.get("event") == "agent.handoff"
                assert payload["from_agent"] not in ("", name)
                self.deeds["an agent was refused another's handoff"] += 1
                return
            log.append([event])
        self._note(key, Deed(source, named_agent(event.kind, to), name if source in GUESTS else "?"))
        if payload.get("type") == "message":
            self._posted(key, to, str(payload["id"]))

    def _relay(self, at: int, key: str, payload: dict[str, Any], to: str) -> None:
        claim = self._claim(at)
        key = key or claim.conversation
        to = f"chat:{key}" if to == "chat" else to
        payload = payload | {"id": new_id(), "conversation_id": key, "recipient": to}
        kind = str(payload.get("event") or payload.get("type"))
        where = _topics(key, to) if payload.get("type") == "message" else [f"stream:{key}"]
        for topic in where:
            try:
                with enter_scope(RunScope(claim.conversation, claim.run)):
                    self.bus.publish(topic, BusMessage(topic, payload, new_id()))
            except SwitchboardError as error:
                if kind in RELAYED and (key == claim.conversation or key.startswith("duty-")):
                    raise AssertionError(f"{kind} on {topic} was refused") from error
                self.deeds["a tool was refused"] += 1
                return
        assert kind in RELAYED
        is_own = key == claim.conversation and kind == "message"
        self._note(key, Deed("run" if is_own else "outside", named_agent(kind, to), "Dialogue"))
        if payload.get("type") == "message":
            self._posted(key, to, str(payload["id"]))

    def _write_past_the_bus(self, claim: claims.Claim, kind: str, n: int) -> None:
        payload = {name: value for name, value in self._forged(kind, n).items() if name != "run_id"}
        if self._write(claim, payload):
            self.deeds["a run wrote past the bus"] += 1
            self._note(claim.conversation, Deed("run"))

    def _write(self, claim: claims.Claim, *payloads: dict[str, Any]) -> bool:
        try:
            log.append([self._of_run(claim, payload) for payload in payloads])
        except SwitchboardError:
            return False
        return True

    def _of_run(self, claim: claims.Claim, payload: dict[str, Any]) -> log.NewEvent:
        """Make an event behind the run's fence as `Claim.event` does, whatever the payload holds."""
        facts = {"id": new_id(), "run_id": claim.run, "agent": claim.agent}
        return unchecked(claim.conversation, facts | payload, claim.principal)._replace(attempt=claim.attempt)

    def _forged(self, kind: str, n: int) -> dict[str, Any]:
        """Make an example of a kind that names questions, calls and runs that there are, and people who did it."""
        approval = Approval.objects.order_by("id")[n : n + 1].first()
        about: dict[str, Any] = {"by": "user:ada", "handler": "agent:Mallory", "owner": "user:ada", "id": new_id()}
        if approval is not None:
            about |= {"approval_id": approval.id, "tool_call": approval.tool_call, "run_id": approval.run}
        own = (example_ for example_ in EXAMPLES[kind] if kind in example_.values())  # the others lead to it
        example = next(own, EXAMPLES[kind][-1])
        return {**example, "decision": "approve", **about}

    def _claim(self, at: int) -> claims.Claim:
        return self.claims[at % len(self.claims)]

    def _approval(self, n: int) -> str:
        approvals = list(Approval.objects.order_by("id").values_list("id", flat=True))
        return approvals[n % len(approvals)] if approvals else "none"

    def _note(self, key: str, deed: Deed) -> None:
        self.world.deeds.setdefault(key, []).append(deed)
        self.touched.add(key)

    def _posted(self, key: str, to: str, id_: str) -> None:
        self.world.posts += [(topic, key, id_) for topic in _topics(key, to)]
        self.touched |= {topic.removeprefix("chat:") for topic in _topics(key, to)}


def agent_of(to: str) -> str:
    return to.removeprefix("agent:") if to.startswith("agent:") else ""


def named_agent(kind: str, to: str) -> str:
    return agent_of(to) if kind in NAMING else ""


def _topics(key: str, to: str) -> list[str]:
    own = f"chat:{key}"
    return list(dict.fromkeys([own, *([f"chat:{agent_of(to)}"] if agent_of(to) else [])]))
