"""Every kind of edit by SQL or by file, with database and data directory in the attacker's hand, is found and named
against the checkpoint that a witness has."""

import json
import os
import random
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from conversations.access.accounts import grants, people, tokens
from conversations.access.audit import anchor_file, chain
from conversations.backup import archive, make_backup, portable_rows, restore
from conversations.conversation import fork as forks
from conversations.core.errors import Conflict, NotAllowed
from conversations.core.outbound_address import NONE
from conversations.core.principals import SYSTEM, import_principal, token_principal, user_principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import hash_chain
from conversations.events.payload import parse
from conversations.evidence import checkpoints, notes, signing_key, tree, witnesses
from conversations.evidence.checkpoints import Signer
from conversations.evidence.verify_record import RecordCheck, Settings
from conversations.evidence.witness_settings import parse as parse_witness
from conversations.import_export.export import export
from conversations.import_export.formats.detect import recordings
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import (
    AuditEntry,
    AuditHead,
    AutoApprovalRule,
    BudgetLimit,
    Checkpoint,
    Conversation,
    Event,
    Grant,
    LegalHold,
    Meta,
    Participant,
    Policy,
    RedactionRequest,
    RetentionRule,
    Role,
    Run,
    Token,
    TreeChain,
    TreeLeaf,
    User,
)  # fmt: skip
from conversations.redaction import audit_entries, expiry, legal_holds, retention_rules
from conversations.redaction.redact import redact as redact_events
from conversations.redaction.requests import decline
from conversations.redaction.scope import RedactionScope
from conversations.runs.budgets import edit_budgets
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from tests.support.redacted import redact
from tests.support.tiers import rounds

pytestmark = pytest.mark.django_db(transaction=True)
KEYS = ("alpha", "beta", "gamma")


class Place:
    """A record with its keys, its witness, and the attacker's dice."""

    def __init__(self, folder, dice=None):
        self.folder, self.dice = folder, dice or random.Random(1)
        self.signer = Signer(folder / "keys" / "k.json", "example.com/tampering")
        self.witness = parse_witness(f"file:{folder / 'elsewhere'}")
        self.kept = None

    def sign(self):
        checkpoints.make(self.signer)
        witnesses.submit_all([self.witness], [], NONE)
        self.kept = witnesses.newest_of_file(Path(self.witness.place).read_text())

    def faults(self):
        known = Settings(self.folder, self.signer.path, [self.witness])
        check = RecordCheck(known, since=self.kept)
        parts = (check.audit, check.events, check.tree, check.state)
        verdicts = [part() for part in parts]
        return [f"{verdict.first_bad}: {verdict.why}" for verdict in verdicts if not verdict.ok]

    def an_event(self):
        return self.dice.choice(list(Event.objects.order_by("pk")))

    def row(self, event):
        return Event.objects.filter(pk=event.pk)


def say(key, text, principal=SYSTEM, **more):
    payload = {"event": "log", "message": text, "conversation_id": key, **more}
    body = json.dumps(payload)
    log.append([log.from_bus(f"stream:{key}", None, body, parse(body.encode()), principal)])


@pytest.fixture
def place(tmp_path):
    return build(tmp_path)


def build(folder):
    """Make a record with something of all that can be changed, and sign it."""
    made = Place(folder)
    people.create_person(SYSTEM, "ida", ["admin", "approver"])
    people.create_person(SYSTEM, "otto", ["viewer"])
    tokens.make_token(SYSTEM, "robot", "agent")
    tokens.make_token(SYSTEM, "gone", "viewer")
    tokens.revoke_token(SYSTEM, "gone")
    grants.give_grant(SYSTEM, "otto", "speak_as", "agent:Triage")
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
        chain.enter(by, "request_redaction", what.target, reason="asked for", correlation={"request": made.pk})
    return made.pk


# Each edit returns words that the answer has to hold.


def a_body(at):
    event = at.an_event()
    at.row(event).update(body=json.dumps({"event": "log", "message": "forged"}))
    return event.conversation.key


def a_body_without_salt(at):
    event = at.an_event()
    at.row(event).update(body="{}", salt=None, erased_by="user:ida")
    return event.conversation.key


def a_body_with_a_new_digest(at):
    event = at.an_event()
    body = '{"event":"log","message":"forged"}'
    at.row(event).update(body=body, salt=b"s" * 16, digest=hash_chain.digest(b"s" * 16, body))
    return event.conversation.key


def a_column(name, value):
    def edit(at):
        event = at.an_event()
        at.row(event).update(**{name: value})
        return event.conversation.key

    edit.__name__ = f"the_{name}_{value!r}"
    return edit


def a_chain_made_anew(at):
    event = at.an_event()
    at.row(event).update(body='{"event":"log","message":"forged"}')
    chain_anew(event.conversation.key)
    return event.conversation.key


def chain_anew(key):
    conversation, prev = Conversation.objects.get(key=key), hash_chain.seed(key)
    for seq, e in enumerate(Event.objects.filter(conversation=conversation).order_by("seq"), 1):
        digest = hash_chain.digest(bytes(e.salt), e.body) if e.salt is not None else e.digest
        columns = (e.kind, e.at, e.principal, e.run, e.turn, e.event_id, digest)
        prev = hash_chain.link(prev, key, seq, *columns, e.erased_by if e.salt is not None else None)
        Event.objects.filter(pk=e.pk).update(seq=seq, digest=digest, hash=prev)
    head = Event.objects.filter(conversation=conversation).order_by("-seq").first()
    Conversation.objects.filter(pk=conversation.pk).update(head_seq=head.seq, head_hash=head.hash)


def an_event_taken_out(at):
    event = at.dice.choice(list(Event.objects.filter(seq=2)))
    at.row(event).delete()
    return event.conversation.key


def an_event_taken_out_and_chained_anew(at):
    event = at.dice.choice(list(Event.objects.filter(conversation__key="alpha", seq__lt=4)))
    at.row(event).delete()
    chain_anew("alpha")
    return "alpha"


def an_event_put_in(at):
    event = at.an_event()
    head = Conversation.objects.get(pk=event.conversation_id).head_seq
    Event.objects.create(
        conversation_id=event.conversation_id, seq=head + 1, kind="log", at=1, principal="system", body="{}",
        salt=b"s" * 16, digest="0" * 64, hash="0" * 64,
    )  # fmt: skip
    return event.conversation.key


def the_tail_cut(at):
    key = at.dice.choice(("alpha", "beta"))
    conversation = Conversation.objects.get(key=key)
    Event.objects.filter(conversation=conversation, seq=conversation.head_seq).delete()
    last = Event.objects.filter(conversation=conversation).order_by("-seq").first()
    Conversation.objects.filter(pk=conversation.pk).update(head_seq=last.seq, head_hash=last.hash)
    return key


def a_conversation_deleted(at):
    conversation = Conversation.objects.get(key=at.dice.choice(KEYS))
    Event.objects.filter(conversation=conversation).delete()
    Participant.objects.filter(conversation=conversation).delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM conversations_conversation WHERE id=%s", [conversation.pk])
    return f"a conversation of {conversation.head_seq} events (SHA-256 of its id: {tree.chain_of(conversation.key)})"


def a_conversation_hidden(at):
    key = at.dice.choice(KEYS)
    Conversation.objects.filter(key=key).update(is_staged=True)
    return key


def a_conversation_hidden_as_an_import(at):
    key = at.dice.choice(KEYS)
    Conversation.objects.filter(key=key).update(is_staged=True, key="staged:x:0")
    return tree.chain_of(key)


def a_conversation_renamed(at):
    Conversation.objects.filter(key="alpha").update(key="omega")
    return "omega"


def a_state_column(name, value):
    def edit(at):
        Conversation.objects.filter(key="beta").update(**{name: value})
        return f"'beta': its {name}"

    edit.__name__ = f"a_conversations_{name}"
    return edit


def a_participant_named(at):
    Participant.objects.filter(conversation__key="alpha", name="user:ida").update(is_named=False, kind="agent")
    return "participant user:ida"


def a_participant_put_in(at):
    conversation = Conversation.objects.get(key="alpha")
    Participant.objects.create(conversation=conversation, name="agent:mallory", kind="agent", is_named=True)
    return "participant agent:mallory"


def a_run_put_in(at):
    conversation = Conversation.objects.get(key="alpha")
    Run.objects.create(id="rx", conversation=conversation, agent="A", status="done", input_seq=1, queued_seq=1)
    return "run rx"


def an_audit_entry(name, value):
    def edit(at):
        entry = at.dice.choice(list(AuditEntry.objects.all()))
        AuditEntry.objects.filter(seq=entry.seq).update(**{name: value})
        return f"audit entry {entry.seq}"

    edit.__name__ = f"an_audit_entrys_{name}"
    return edit


def the_audit_tail_cut(at):
    last = AuditEntry.objects.order_by("-seq").first()
    before = AuditEntry.objects.get(seq=last.seq - 1)
    AuditEntry.objects.filter(seq=last.seq).delete()
    AuditHead.objects.update(seq=before.seq, hash=before.hash)
    return "audit entry"


def the_audit_chained_anew(at):
    AuditEntry.objects.filter(seq=1).update(principal="user:mallory")
    prev = chain.FIRST
    for entry in AuditEntry.objects.order_by("seq"):
        entry.prev_hash = prev
        prev = entry.hash = chain.link(prev, entry)
        entry.save()
    AuditHead.objects.update(hash=prev)
    return "audit entry"


def a_role_given(at):
    Role.objects.create(user=User.objects.get(username="otto"), name="admin")
    return "person 'otto'"


def a_person_made(at):
    Role.objects.create(user=User.objects.create(username="mallory"), name="admin")
    return "person 'mallory'"


def a_tokens_role(at):
    Token.objects.filter(name="robot").update(role="admin")
    return "token 'robot'"


def a_tokens_secret(at):
    Token.objects.filter(name="robot").update(digest="0" * 64)
    return "token 'robot'"


def a_token_made(at):
    Token.objects.create(name="mallory", role="admin", digest="0" * 64, created_by="system")
    return "token 'mallory'"


def a_revoked_token_revived(at):
    Token.objects.filter(name="gone").update(revoked_at=None)
    return "token 'gone'"


def a_grant_widened(at):
    Grant.objects.update(target="*")
    return "grant of 'otto'"


def a_policy_loosened(at):
    Policy.objects.update(rule="allow")
    return "policies"


def a_policy_removed(at):
    Policy.objects.all().delete()
    return "policies"


def a_rule_made(at):
    AutoApprovalRule.objects.create(
        id="rule", lookup_key="bare:pay", tool="pay", is_exact=False, arguments="{}", digest="0" * 64,
        made_by="user:ida", made_at=1,
    )  # fmt: skip
    return "auto-approval rule rule"


def a_budget_raised(at):
    BudgetLimit.objects.update(amount=1000)
    return "budget:run"


def a_retention_rule_shortened(at):
    RetentionRule.objects.update(days=1)
    return f"retention rule {RetentionRule.objects.get().pk} differs from the audit log"


def a_retention_rule_made(at):
    rule = RetentionRule.objects.create(days=1, reason="mine", made_by="user:ida", made_at=1)
    return f"retention rule {rule.pk} differs from the audit log"


def a_retention_rule_removed(at):
    RetentionRule.objects.update(removed_at=1)
    return f"retention rule {RetentionRule.objects.get().pk} is removed"


def a_hold_released(at):
    hold = LegalHold.objects.get(released_at=None)
    LegalHold.objects.update(released_at=1, released_by="user:ida")
    return f"legal hold {hold.pk} is released"


def a_hold_moved(at):
    LegalHold.objects.filter(released_at=None).update(conversation=Conversation.objects.get(key="alpha"))
    return f"legal hold {LegalHold.objects.get(released_at=None).pk} differs from the audit log"


def a_redaction_requested_by_another(at):
    RedactionRequest.objects.update(requested_by="user:otto")
    return f"redaction request {RedactionRequest.objects.get().pk} differs from the audit log"


def a_redaction_request_widened(at):
    RedactionRequest.objects.update(scope=RedactionScope("alpha", [1, 2]).as_json())
    return f"redaction request {RedactionRequest.objects.get().pk} differs from the audit log"


def an_audit_entry_erased(at):
    entry = at.dice.choice(list(AuditEntry.objects.all()))
    AuditEntry.objects.filter(seq=entry.seq).update(reason="[erased]", salt=None)
    return f"audit entry {entry.seq}"


def the_witnesses_file_emptied(at):
    Path(at.witness.place).write_text("")
    return "no longer has a checkpoint"


def the_keys_exchanged(at):
    at.signer.path.unlink()
    signing_key.make(at.signer.path, "example.com/tampering")
    return "the database does not name the keys in"


def the_last_checkpoint_exchanged(at):
    """A file of a longer tree: what is signed since is gone from the database."""
    note = notes.parse((at.signer.path.parent / checkpoints.LAST).read_text())
    head = notes.parse_checkpoint(note.text)
    longer = head._replace(size=head.size + 1)
    signed = signing_key.load(at.signer.path).sign(longer)
    (at.signer.path.parent / checkpoints.LAST).write_text(notes.join(longer.text, signed))
    return "the end was cut off"


def the_audit_anchor_exchanged(at):
    (at.folder / anchor_file.NAME).write_text(f"{AuditEntry.objects.count() + 9} {'0' * 64}")
    return "audit entry"


def a_leaf(at):
    TreeLeaf.objects.filter(index=0).update(hash="0" * 64)
    return "tree"


def the_last_leaf_cut(at):
    TreeLeaf.objects.order_by("-index").first().delete()
    Checkpoint.objects.all().delete()
    return "tree"


def the_whole_tree_deleted(at):
    for model in (TreeLeaf, TreeChain, Checkpoint):
        model.objects.all().delete()
    return "the given checkpoint"


def a_checkpoint_signed_by_nobody(at):
    row = Checkpoint.objects.get()
    forged = notes.parse(row.note)
    signature = forged.signatures[0]._replace(signature=b"\0" * 64)
    Checkpoint.objects.update(note=notes.join(forged.text, [signature]))
    return "the signature of"


def all_signed_anew_by_other_keys(at):
    """What somebody does who has all of it: history changed, chains, tree and keys made anew."""
    Event.objects.filter(conversation__key="alpha", seq=1).update(body='{"event":"log","message":"forged"}')
    chain_anew("alpha")
    for model in (TreeLeaf, TreeChain, Checkpoint):
        model.objects.all().delete()
    Meta.objects.filter(name=checkpoints.KEYS).delete()
    for path in at.signer.path.parent.iterdir():
        path.unlink()
    checkpoints.make(at.signer)
    return "the given checkpoint"


def all_signed_anew_by_the_same_keys(at):
    Event.objects.filter(conversation__key="alpha", seq=1).update(body='{"event":"log","message":"forged"}')
    chain_anew("alpha")
    for model in (TreeLeaf, TreeChain, Checkpoint):
        model.objects.all().delete()
    (at.signer.path.parent / checkpoints.LAST).unlink()
    checkpoints.make(at.signer)
    return "not those that were witnessed"


def a_tombstone(at):
    Event.objects.filter(conversation__key="gamma", seq=2).update(body='{"run_id":"r1","turn":1,"said":"other"}')
    return "gamma"


EDITS = [
    a_body, a_body_without_salt, a_body_with_a_new_digest, a_column("run", "other"), a_column("run", ""),
    a_column("turn", 77), a_column("kind", "output"), a_column("at", 7), a_column("principal", "user:mallory"),
    a_column("event_id", "other"), a_column("event_id", ""), a_column("erased_by", "user:mallory"),
    a_column("hash", "0" * 64), a_column("seq", 99), a_chain_made_anew, an_event_taken_out,
    an_event_taken_out_and_chained_anew, an_event_put_in, the_tail_cut, a_conversation_deleted, a_conversation_hidden,
    a_conversation_hidden_as_an_import, a_conversation_renamed, a_state_column("title", "Tunnels"),
    a_state_column("owner", "user:mallory"), a_state_column("state", "paused"), a_state_column("messages", 9),
    a_state_column("handler", "agent:X"), a_participant_named, a_participant_put_in, a_run_put_in,
    an_audit_entry("reason", "because"), an_audit_entry("outcome", "refused"), an_audit_entry("target", "x"),
    the_audit_tail_cut, the_audit_chained_anew, a_role_given, a_person_made, a_tokens_role, a_tokens_secret,
    a_token_made, a_revoked_token_revived, a_grant_widened, a_policy_loosened, a_policy_removed, a_rule_made,
    a_budget_raised, a_leaf, the_last_leaf_cut, the_whole_tree_deleted, a_checkpoint_signed_by_nobody,
    all_signed_anew_by_other_keys, all_signed_anew_by_the_same_keys, a_tombstone, a_retention_rule_shortened,
    a_retention_rule_made, a_retention_rule_removed, a_hold_released, a_hold_moved, a_redaction_requested_by_another,
    a_redaction_request_widened, an_audit_entry_erased, the_witnesses_file_emptied, the_keys_exchanged,
    the_last_checkpoint_exchanged, the_audit_anchor_exchanged,
]  # fmt: skip


def test_an_honest_record_has_no_faults(place):
    assert place.faults() == []
    say("alpha", "later"), say("delta", "new")
    assert place.faults() == []
    place.sign()
    assert place.faults() == []


def test_what_is_signed_while_it_is_checked_is_no_fault(place):
    check = RecordCheck(Settings(place.folder, place.signer.path, [place.witness]))
    say("alpha", "later"), say("delta", "new")
    place.sign()

    assert [part().why for part in (check.audit, check.events, check.tree, check.state)] == [""] * 4


def test_the_tree_alone_tells_that_a_tail_was_cut(place):
    the_tail_cut(place)

    events = RecordCheck(Settings(place.folder, place.signer.path, [place.witness])).events()

    assert "missing: the signed tree has" in events.why


def test_keys_that_have_signed_nothing_yet_are_no_fault(tmp_path):
    say("alpha", "first")
    signing_key.make(tmp_path / "k.json", "example.com/new")

    assert RecordCheck(Settings(tmp_path, tmp_path / "k.json")).tree().ok


# Each is found by a comparison that finds no other edit of the quick tier, which has every third of the rest.
ALONE = {
    a_chain_made_anew, the_tail_cut, a_conversation_deleted, the_audit_tail_cut, the_whole_tree_deleted,
    all_signed_anew_by_other_keys, all_signed_anew_by_the_same_keys, the_keys_exchanged, the_witnesses_file_emptied,
}  # fmt: skip


def marks_of(edit, place, n):
    return [] if not n and (edit in ALONE or place % 3 == 0) else [pytest.mark.thorough]


CASES = [
    pytest.param(edit, n, id=f"{edit.__name__}-{n}", marks=marks_of(edit, place, n))
    for n in range(6)
    for place, edit in enumerate(EDITS)
]


@pytest.mark.parametrize(("edit", "n"), CASES)
def test_an_edit_is_found_and_named(place, edit, n):
    place.dice = random.Random(f"{n} {edit.__name__}")

    words = edit(place)

    faults = place.faults()
    assert any(words in fault for fault in faults), (words, faults)


def an_import(at, key, keys, number):
    path = at.folder / "export.jsonl"
    path.write_bytes(b"".join(export(key)))
    trouble, staged = ImportReport([].append, is_strict=True), StagedImport(import_principal("test"))
    new = f"imported-{len(keys)}-{number}"
    import_recordings(recordings(path, trouble), staged, trouble, key=new, progress=lambda *_: None)


def a_restore(at, key, keys, number):
    """Back the record up, lose it, and fill the empty tables from the backup, as `restore` does."""
    file = make_backup.make(at.folder / "record.backup", SYSTEM, at.signer, lambda *_: None).path
    empty_tables()
    with archive.opened(file) as backup:
        with write_transaction():
            for part in backup.manifest["parts"]:
                restore._fill(backup, part, lambda *_: None)
        restore._reset_sequences()
        restore._require_intact()
        restore._begin_epoch(backup)


def a_fork(at, key, keys, number):
    head = Conversation.objects.get(key=key).head_seq
    forks.fork(User.objects.get(username="ida"), key, 1 + number % head)


def a_redaction(at, key, keys, number):
    head = Conversation.objects.get(key=key).head_seq
    redact_events(SYSTEM, key, [1 + number % head], "asked for")


def a_rule(at, key, keys, number):
    there = list(retention_rules.rules())
    if number % 2 and there:
        retention_rules.remove_rule(SYSTEM, there[-1].pk)
    else:
        retention_rules.set_rule(
            SYSTEM, days=1 + number, kind=("log", "output", "message")[number % 3], reason="so long"
        )


def an_expiry(at, key, keys, number):
    older_than = Event.objects.order_by("at").values_list("at", flat=True)[number % Event.objects.count()]
    expiry.expire(SYSTEM, expiry.Expiring(older_than + 1, conversation=key if number % 2 else ""), "old", lambda *_: 0)


def a_hold(at, key, keys, number):
    there = list(legal_holds.in_force().filter(is_regulated=False))
    if number % 2 and there:
        legal_holds.release(SYSTEM, there[-1].pk, "it is over")
    else:
        legal_holds.place(SYSTEM, key, "a lawsuit", is_regulated=number % 5 == 0)


def an_erasure(at, key, keys, number):
    seqs = list(audit_entries.erasable().exclude(target="conversation:beta").values_list("seq", flat=True))
    if seqs:
        audit_entries.erase(SYSTEM, seqs[:: 1 + number % 3], "asked for")


def a_request(at, key, keys, number):
    made = request_redaction(user_principal("ida"))
    if number % 2:
        decline(User.objects.get(username="otto"), made, "no")


def sayings(at, key, keys, number):
    say(key, f"said {number}", SYSTEM if number % 3 else token_principal("robot"), run_id="r1", turn=number % 5)


def a_person(at, key, keys, number):
    people.set_roles(SYSTEM, "otto", [("viewer",), ("operator", "viewer"), ("admin",)][number % 3])


def a_policy(at, key, keys, number):
    edit_policy.set_policy(SYSTEM, PolicyRule("", f"tool{number % 3}", ("ask", "deny")[number % 2]))


THINGS = {
    "say": sayings,
    "new": lambda at, key, keys, number: say(f"new-{len(keys)}", "first"),
    "redact": a_redaction,
    "fork": a_fork,
    "import": an_import,
    "policy": a_policy,
    "person": a_person,
    "rule": a_rule,
    "expire": an_expiry,
    "hold": a_hold,
    "erase": an_erasure,
    "request": a_request,
    "restore": a_restore,
    "sign": lambda at, key, keys, number: at.sign(),
}
REFUSED = (Conflict, NotAllowed)  # a hold is in force, it is redacted already, otto is no admin


def empty_tables():
    """Take every row of the record out."""
    tables = [table.name for table in portable_rows.tables()]
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {','.join(tables)} RESTART IDENTITY CASCADE")
            return
        for table in tables:
            cursor.execute(f'DELETE FROM "{table}"')


def live_through(things):
    """Let honest things happen to a record; it has no faults, neither before it is signed nor after."""
    call_command("flush", verbosity=0, interactive=False, inhibit_post_migrate=True)
    with tempfile.TemporaryDirectory() as folder:
        place = build(Path(folder))
        for what, number in things:
            keys = list(Conversation.objects.visible().order_by("pk").values_list("key", flat=True))
            with suppress(*REFUSED):
                THINGS[what](place, keys[number % len(keys)], keys, number)
        assert place.faults() == []
        place.sign()
        assert place.faults() == []


@pytest.mark.parametrize("what", THINGS)
def test_each_honest_thing_is_done_and_is_no_fault(place, what):
    keys = ["alpha", *KEYS]

    THINGS[what](place, "alpha", keys, 0)

    assert place.faults() == []


HISTORIES = st.lists(st.tuples(st.sampled_from(list(THINGS)), st.integers(0, 40)), min_size=1, max_size=10)


@settings(max_examples=rounds(3, 40), deadline=None, derandomize=True)
@given(HISTORIES)
def test_no_honest_history_is_called_changed(things):
    live_through(things)


PARTS = int(os.environ.get("SWITCHBOARD_HISTORIES", "10000")) // 50


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(PARTS))
def test_none_of_10_000_honest_histories_is_called_changed(part):
    @seed(part)
    @settings(max_examples=50, deadline=None, phases=[Phase.generate], database=None)
    @given(HISTORIES)
    def histories(things):
        live_through(things)

    histories()
