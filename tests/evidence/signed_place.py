"""A record with a signed tree, its keys and its witness, for tests that change it and then verify it."""

import random
from pathlib import Path

from conversations.access.accounts import edit_grants, people, tokens
from conversations.access.audit import chain
from conversations.core.outbound_address import NONE
from conversations.core.principals import SYSTEM, token_principal, user_principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.evidence import checkpoints, witnesses
from conversations.evidence.checkpoints import Signer
from conversations.evidence.verify_record import RecordCheck, Settings
from conversations.evidence.witness_settings import parse as parse_witness
from conversations.models import Event, RedactionRequest
from conversations.redaction import legal_holds, retention_rules
from conversations.redaction.scope import RedactionScope
from conversations.runs.budgets import edit_budgets
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from tests.support.redacted import redact
from tests.support.unchecked import unchecked

KEYS = ("alpha", "beta", "gamma")


class Place:
    """A record with its keys, its witness, and the attacker's dice."""

    def __init__(self, folder, dice=None):
        self.folder, self.dice = folder, dice or random.Random(1)
        self.signer = Signer(folder / "keys" / "k.json", "example.com/tampering")
        self.witness = parse_witness(f"file:{folder / 'elsewhere'}")
        self.witnessed = None

    def sign(self):
        checkpoints.make(self.signer)
        witnesses.submit_all([self.witness], [], NONE)
        self.witnessed = witnesses.newest_of_file(Path(self.witness.place).read_text())

    def faults(self):
        known = Settings(self.folder, self.signer.path, [self.witness])
        check = RecordCheck(known, since=self.witnessed)
        parts = (check.audit, check.events, check.tree, check.state)
        verdicts = [part() for part in parts]
        return [f"{verdict.first_bad}: {verdict.why}" for verdict in verdicts if not verdict.ok]

    def an_event(self):
        return self.dice.choice(list(Event.objects.order_by("pk")))

    def row(self, event):
        return Event.objects.filter(pk=event.pk)


def say(key, text, principal=SYSTEM, **more):
    log.append([unchecked(key, {"event": "log", "message": text, **more}, principal)])


def build(folder):
    """Make a record with something of all that can be changed, and sign it."""
    made = Place(folder)
    people.create_person(SYSTEM, "ida", ["admin", "approver"])
    people.create_person(SYSTEM, "otto", ["viewer"])
    tokens.make_token(SYSTEM, "robot", "agent")
    tokens.make_token(SYSTEM, "gone", "viewer")
    tokens.revoke_token(SYSTEM, "gone")
    edit_grants.give_grant(SYSTEM, "otto", "speak_as", "agent:Triage")
    edit_policy.set_policy(SYSTEM, PolicyRule("", "pay", "deny"))
    edit_budgets.set_budget(SYSTEM, scope="run", measure="calls", amount="9")
    for n in range(4):
        for key in KEYS:
            say(key, f"{key} {n}", SYSTEM if n % 2 else token_principal("robot"), run_id="r1", turn=n)
    envelope = {"type": "message", "sender": "user:ida", "recipient": "chat:alpha", "content": "hello", "id": "m1"}
    log.append(log.from_people(["chat:alpha"], {**envelope, "conversation_id": "alpha"}, user_principal("ida")))
    log.append([log.from_internal("beta", {"event": "conversation.opened", "title": "Bridges"}, SYSTEM)])
    redact("gamma", 2, body='{"run_id":"r1","turn":1}')
    retention_rules.set_rule(SYSTEM, days=3_000, reason="3,000 days")
    legal_holds.release(SYSTEM, legal_holds.place(SYSTEM, "alpha", "a lawsuit").pk, "it is over")
    legal_holds.place(SYSTEM, "beta", "another lawsuit")
    request_redaction(SYSTEM)
    made.sign()
    return made


def request_redaction(by):
    """Have a request wait for a second person, as where two people are needed."""
    what, about = RedactionScope("gamma", [1]), {"reason": "asked for", "requested_by": str(by), "requested_at": 1}
    with write_transaction():
        made = RedactionRequest.objects.create(scope=what.as_json(), **about)
        chain.add_entry(by, "request_redaction", what.target, reason="asked for", correlation={"request": made.pk})
    return made.pk
