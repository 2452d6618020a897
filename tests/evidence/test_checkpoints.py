"""What moved becomes leaves, the root is signed; what went back is not signed."""

import stat

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from conversations.core.errors import Conflict, Invalid
from conversations.core.outbound_address import NONE, AllowList
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import in_write_transaction, write_transaction
from conversations.events import log
from conversations.evidence import checkpointer, checkpoints, merkle, notes, state, tree, witnesses
from conversations.evidence.checkpoints import LAST, Signer
from conversations.evidence.notes import TreeHead
from conversations.models import AuditEntry, Checkpoint, Conversation, TreeChain, TreeLeaf, TreeNode, Witnessed
from tests.support import merkle_proofs
from tests.support.cast import client_of, person
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)
LOOPBACK = AllowList.of(["127.0.0.1"])


def say(key, text="hello"):
    log.append([log.from_internal(key, {"event": "operator.note", "text": text}, SYSTEM)])


@pytest.fixture
def signer(tmp_path):
    return Signer(tmp_path / "keys" / "k.json", "example.com/evidence")


def newest():
    return notes.parse_checkpoint(notes.parse(checkpoints.newest().note).text)


def test_the_first_checkpoint_has_every_chain(signer):
    say("a"), say("b"), say("b")

    assert checkpoints.make(signer)

    heads = Conversation.objects.order_by("key").values_list("head_seq", "head_hash")
    assert list(TreeLeaf.objects.order_by("seq").values_list("seq", "hash")) == list(heads)
    assert newest() == ("example.com/evidence", 2, tree.root(2))
    signed = notes.verified(notes.parse(state.note()), checkpoints.verifier_keys())
    assert [key.algorithm for key in signed] == [1, 6]


def test_nothing_is_signed_where_nothing_moved(signer):
    say("a")
    checkpoints.make(signer)

    assert not checkpoints.make(signer)
    assert Checkpoint.objects.count() == 1


def test_only_what_moved_becomes_a_leaf_and_the_tree_only_grows(signer):
    for n in range(1, 8):
        say("a"), say(f"c{n % 3}")
        checkpoints.make(signer)
        old = n if n > 1 else 1
        proof = tree.consistency(old, tree.size())
        assert merkle_proofs.is_consistent(old, tree.root(old), tree.size(), tree.root(tree.size()), proof)

    assert [len(notes.parse(c.note).signatures) for c in Checkpoint.objects.order_by("size")] == [1] * 6 + [2]


def test_writers_wait_for_a_few_leaves_at_a_time_and_for_no_look_at_every_conversation(signer, monkeypatch):
    monkeypatch.setattr(checkpoints, "LEAVES", 3)
    for n in range(8):
        say(f"c{n}")
    inside = []

    def note(execute, sql, params, many, context):
        if in_write_transaction():
            inside.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        checkpoints.make(signer)

    assert [sql for sql in inside if "conversations_conversation" in sql] == []
    assert sum("INSERT INTO" in sql and "conversations_checkpoint" in sql for sql in inside) == 3
    assert list(Checkpoint.objects.order_by("size").values_list("size", flat=True)) == [3, 6, 8]
    assert newest() == ("example.com/evidence", 8, tree.root(8))


def test_what_another_process_signed_in_the_meantime_is_not_signed_again(signer, monkeypatch):
    say("a"), say("b")
    moved = tree.moved

    def read_before_another_signs(*args, **keywords):
        heads = moved(*args, **keywords)
        monkeypatch.setattr(tree, "moved", moved)
        assert checkpoints.make(signer)
        return heads

    monkeypatch.setattr(tree, "moved", read_before_another_signs)

    checkpoints.make(signer)

    assert TreeLeaf.objects.count() == 2
    assert [row.size for row in Checkpoint.objects.all()] == [2]


def test_a_tree_that_begins_anew_during_a_signing_is_signed_with_its_own_keys(signer, monkeypatch):
    say("a"), say("b")
    checkpoints.make(signer)
    say("a")
    moved = tree.moved

    def read_before_another_tree(*args, **keywords):
        heads = moved(*args, **keywords)
        monkeypatch.setattr(tree, "moved", moved)
        checkpoints.begin_anew(signer, SYSTEM, "restored")
        return heads

    monkeypatch.setattr(tree, "moved", read_before_another_tree)

    checkpoints.make(signer)
    assert checkpoints.make(signer)

    assert newest().size == TreeLeaf.objects.count() == 3  # with the audit log
    assert notes.verified(notes.parse(state.note()), checkpoints.verifier_keys())


def test_of_two_nodes_that_start_together_only_the_first_leaves_keys(signer, tmp_path, monkeypatch):
    other, known = Signer(tmp_path / "other" / "k.json"), checkpoints.verifier_keys

    def read_before_another_node():
        before = known()
        monkeypatch.setattr(checkpoints, "verifier_keys", known)
        assert signer.key()
        return before

    monkeypatch.setattr(checkpoints, "verifier_keys", read_before_another_node)

    assert other.key() is None

    assert not other.path.exists()
    assert signer.has_keys()


def test_a_staged_and_a_demo_conversation_are_left_out(signer):
    say("a"), say("b")
    Conversation.objects.filter(key="a").update(is_demo=True)
    Conversation.objects.filter(key="b").update(key="staged:x:0", is_staged=True)

    assert not checkpoints.make(signer)


def test_a_tree_of_many_pages_has_the_root_of_all_its_leaves(signer, monkeypatch):
    monkeypatch.setattr(tree, "PAGE", 300)
    heads = [tree.Head(n + 1, tree.chain_of(str(n), ""), 1, f"{n:064x}") for n in range(1_500)]
    with write_transaction():
        for at in range(0, len(heads), 137):
            tree.add(heads[at : at + 137], at)

    hashes = [tree.leaf_hash(*head[1:]) for head in heads]
    assert tree.root(1_500) == merkle.root_of(hashes)
    assert TreeNode.objects.count() == 1_500 // 256
    for index, size in ((0, 1_500), (700, 1_111), (1_499, 1_500), (255, 256)):
        path = tree.inclusion(index, size)
        assert merkle_proofs.root_by_inclusion(hashes[index], index, size, path) == merkle.root_of(hashes[:size])


def test_an_older_database_is_not_signed(signer):
    say("a")
    checkpoints.make(signer)
    say("b")
    checkpoints.make(signer)
    TreeLeaf.objects.filter(index=1).delete(), Checkpoint.objects.filter(size=2).delete()
    TreeChain.objects.all().delete()

    with pytest.raises(Conflict, match="does not contain the signed checkpoint 2"):
        checkpoints.make(signer)


@pytest.mark.parametrize("size", [1, 2])
def test_a_tree_that_differs_from_what_was_signed_last_is_not_signed(signer, size):
    """As of a copy of the database, after another server signed the original with the same keys."""
    for key in ("a", "b"):
        say(key)
        checkpoints.make(signer)
    key = signer.key()
    elsewhere = TreeHead(key.origin, size, merkle.leaf_hash(b"of another event"))
    signer.remember(notes.join(elsewhere.text, key.sign(elsewhere)))
    say("a")

    with pytest.raises(Conflict, match=f"does not contain the signed checkpoint {size}"):
        checkpoints.make(signer)


def test_after_a_restore_another_tree_begins_and_the_audit_log_says_so(signer):
    with pytest.raises(Conflict, match="the record has not been signed"):
        checkpoints.begin_anew(signer, SYSTEM, "none")
    say("a")
    checkpoints.make(signer)
    before = notes.parse_checkpoint(notes.parse(state.note()).text)
    keys = checkpoints.verifier_keys()

    assert checkpoints.begin_anew(signer, SYSTEM, "restored the backup of Monday") == keys[0].name
    checkpoints.make(signer)

    assert checkpoints.verifier_keys()[0].public != keys[0].public
    entry = AuditEntry.objects.get(verb="begin_tree")
    assert before.root.hex() in entry.correlation
    assert len(list(signer.path.parent.glob("ended-*"))) == 2


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("", "reason must not be empty"),
        (" \n", "reason must not be empty"),
        ("r" * 2001, "reason must be at most 2,000"),
    ],
)
def test_no_tree_is_closed_without_a_reason_that_is_kept_whole(signer, settings, reason, why):
    settings.CONFIG = settings.CONFIG.model_copy(update={"signing_key": signer.path})
    say("a")
    checkpoints.make(signer)

    with pytest.raises(CommandError, match=f"^{why}"):
        call_command("new-tree", "--reason", reason)

    assert signer.has_keys()
    assert not AuditEntry.objects.filter(verb="begin_tree").exists()


def test_the_old_keys_are_away_before_the_database_forgets_them_and_back_if_that_fails(signer, monkeypatch):
    say("a")
    checkpoints.make(signer)
    keys, there = checkpoints.verifier_keys(), []

    def fail(*args, **keywords):
        there.append(signer.path.exists())
        raise Conflict("the audit log is locked")

    with monkeypatch.context() as broken:
        broken.setattr(checkpoints.chain, "add_entry", fail)
        with pytest.raises(Conflict, match="is locked"):
            checkpoints.begin_anew(signer, SYSTEM, "restored")

    assert there == [False]
    assert signer.has_keys()
    assert signer.last() is not None
    say("a")
    assert checkpoints.make(signer)
    assert checkpoints.verifier_keys() == keys


@pytest.mark.parametrize("change", ["leaf", "extra", "root"])
def test_a_changed_tree_is_not_signed(signer, change):
    say("a")
    checkpoints.make(signer)
    if change == "leaf":
        TreeLeaf.objects.update(hash="0" * 64)
    elif change == "extra":
        TreeLeaf.objects.create(index=1, chain="0" * 64, seq=1, hash="0" * 64)
    else:
        Checkpoint.objects.update(note=Checkpoint.objects.get().note.replace("\n1\n", "\n2\n"))
    say("a")

    with pytest.raises((Conflict, Invalid)):
        checkpoints.make(signer)


def test_where_the_keys_are_elsewhere_nothing_is_signed(signer, tmp_path):
    say("a")
    checkpoints.make(signer)
    say("a")

    assert not checkpoints.make(Signer(tmp_path / "other" / "k.json"))
    assert not (tmp_path / "other").exists()


def test_a_lost_file_of_what_was_signed_last_is_written_again(signer):
    say("a")
    checkpoints.make(signer)
    (signer.path.parent / LAST).unlink()
    say("a")
    checkpoints.make(signer)

    assert signer.last() == newest()
    assert stat.S_IMODE(signer.path.stat().st_mode) == 0o600


def test_a_damaged_file_of_what_was_signed_last_is_written_again(signer):
    say("a")
    checkpoints.make(signer)
    (signer.path.parent / LAST).write_bytes(b"\xff\xfe")
    say("a")
    checkpoints.make(signer)

    assert signer.last() == newest()


def test_the_thread_that_signs_goes_on_after_any_error(tmp_path, monkeypatch, caplog):
    rounds = []

    def broken_once(*args):
        rounds.append(args)
        if len(rounds) == 1:
            raise Exception("unforeseen")

    monkeypatch.setattr(checkpointer, "EVERY", 0.01)
    monkeypatch.setattr(witnesses, "submit_all", broken_once)
    thread = checkpointer.Checkpointer(tmp_path / "keys" / "k.json", "example.com/evidence", [], [], NONE)
    say("a")
    thread.start()
    try:
        until(lambda: len(rounds) > 3 or not thread.is_alive(), what="further rounds, or the end of the thread")
        assert thread.is_alive()
    finally:
        thread.close()

    assert "the record is not signed: unforeseen" in caplog.text
    assert "Traceback" in caplog.text


def test_the_audit_page_says_how_far_the_record_is_signed(signer):
    auditor = client_of(person("evidence-auditor", "auditor"))
    assert "Not signed yet" in auditor.get("/audit/").content.decode()
    say("a")
    checkpoints.make(signer)
    Witnessed.objects.create(witness="example.com", size=0, problem="it does not know this log (HTTP 404)")

    page = auditor.get("/audit/").content.decode()

    assert "ago, not witnessed" in page
    assert "Verify the audit log</a>" in page
    assert "leaf" not in page
    assert "example.com: it does not know this log" in page
