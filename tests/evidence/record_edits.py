"""Edits of a record by somebody who has its database and its data directory. Each changes a `Place` and returns words
that the verification has to say."""

import json
from pathlib import Path

from django.db import connection

from conversations.access.audit import anchor_file, chain
from conversations.events.log import hash_chain
from conversations.evidence import checkpoints, notes, signing_key, tree
from conversations.models import (
    AuditEntry,
    AuditHead,
    Checkpoint,
    Conversation,
    Event,
    Meta,
    Participant,
    Run,
    TreeChain,
    TreeLeaf,
)
from tests.evidence.authority_edits import (
    a_budget_raised,
    a_grant_widened,
    a_hold_moved,
    a_hold_released,
    a_person_made,
    a_policy_loosened,
    a_policy_removed,
    a_redaction_request_widened,
    a_redaction_requested_by_another,
    a_retention_rule_made,
    a_retention_rule_removed,
    a_retention_rule_shortened,
    a_revoked_token_revived,
    a_role_given,
    a_rule_made,
    a_token_made,
    a_tokens_role,
    a_tokens_secret,
)
from tests.evidence.signed_place import KEYS


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
    conversation = Conversation.objects.get(key=key)
    identity = hash_chain.identity_of(key, conversation.key_digest)
    prev = hash_chain.seed(identity)
    for seq, e in enumerate(Event.objects.filter(conversation=conversation).order_by("seq"), 1):
        digest = hash_chain.digest(bytes(e.salt), e.body) if e.salt is not None else e.digest
        columns = (e.kind, e.at, e.principal, e.run, e.turn, e.event_id, digest)
        prev = hash_chain.link(prev, identity, seq, *columns, e.erased_by if e.salt is not None else None)
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
    return f"a conversation of {conversation.head_seq} events (in the tree: {named_in_tree(conversation)})"


def named_in_tree(conversation):
    return tree.chain_of(conversation.key, conversation.key_digest)


def a_conversation_hidden(at):
    key = at.dice.choice(KEYS)
    Conversation.objects.filter(key=key).update(is_staged=True)
    return key


def a_conversation_hidden_as_an_import(at):
    key = at.dice.choice(KEYS)
    conversation = Conversation.objects.get(key=key)
    Conversation.objects.filter(key=key).update(is_staged=True, key="staged:x:0")
    return named_in_tree(conversation)


def a_conversation_renamed(at):
    Conversation.objects.filter(key="alpha").update(key="omega")
    return "omega"


def an_id_without_its_salt(at):
    new = hash_chain.erased_key(Conversation.objects.get(key="alpha").key_digest)
    Conversation.objects.filter(key="alpha").update(key=new, key_salt=None)
    return f"{new!r}: the conversation's id cannot be checked for changes"


def an_id_with_a_new_digest(at):
    """Chained anew, too: only the tree tells that a conversation is missing."""
    salt, was = b"s" * 16, Conversation.objects.get(key="alpha")
    anew = {"key": "omega", "key_salt": salt, "key_digest": hash_chain.digest(salt, "omega")}
    Conversation.objects.filter(pk=was.pk).update(**anew)
    chain_anew("omega")
    return f"(in the tree: {named_in_tree(was)})"


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


def a_leaf_without_a_name(at):
    """A value with which the check itself fails."""
    TreeLeaf.objects.filter(index=0).update(chain="zz")
    return "internal error: ValueError"


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
    a_conversation_hidden_as_an_import, a_conversation_renamed, an_id_without_its_salt, an_id_with_a_new_digest,
    a_state_column("title", "Tunnels"),
    a_state_column("owner", "user:mallory"), a_state_column("state", "paused"), a_state_column("messages", 9),
    a_state_column("handler", "agent:X"), a_participant_named, a_participant_put_in, a_run_put_in,
    an_audit_entry("reason", "because"), an_audit_entry("outcome", "refused"), an_audit_entry("target", "x"),
    the_audit_tail_cut, the_audit_chained_anew, a_role_given, a_person_made, a_tokens_role, a_tokens_secret,
    a_token_made, a_revoked_token_revived, a_grant_widened, a_policy_loosened, a_policy_removed, a_rule_made,
    a_budget_raised, a_leaf, a_leaf_without_a_name, the_last_leaf_cut, the_whole_tree_deleted,
    a_checkpoint_signed_by_nobody,
    all_signed_anew_by_other_keys, all_signed_anew_by_the_same_keys, a_tombstone, a_retention_rule_shortened,
    a_retention_rule_made, a_retention_rule_removed, a_hold_released, a_hold_moved, a_redaction_requested_by_another,
    a_redaction_request_widened, an_audit_entry_erased, the_witnesses_file_emptied, the_keys_exchanged,
    the_last_checkpoint_exchanged, the_audit_anchor_exchanged,
]  # fmt: skip
