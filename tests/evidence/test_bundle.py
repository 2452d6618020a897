"""An evidence bundle is checked by a bare Python without our packages, which finds each change in it."""

import io
import json
import subprocess
import sys
import time
import zipfile
from functools import partial

import pytest
from django.core.management import CommandError, call_command

from conversations.access.audit import chain
from conversations.core.errors import Invalid, NotFound
from conversations.core.outbound_address import AllowList
from conversations.core.principals import SYSTEM, user_principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log.hash_chain import erased_key
from conversations.evidence import bundle, checkpoints, witnesses
from conversations.evidence.checkpoints import Signer
from conversations.evidence.witness_settings import parse
from conversations.models import Conversation, Event
from conversations.redaction import audit_entries, expiry, scope
from conversations.redaction.expiry import RetentionScope
from conversations.redaction.redact import redact as redact_events
from conversations.redaction.scope import RedactionScope
from tests.evidence.stand_in_witness import StandInWitness, serving
from tests.support import toolcalls
from tests.support.redacted import redact, to_format_1

pytestmark = pytest.mark.django_db(transaction=True)


def say(key, text):
    log.append([log.from_internal(key, {"event": "operator.note", "text": text}, SYSTEM)])


def enter(target, reason=""):
    with write_transaction():
        chain.add_entry(SYSTEM, "pause", target, reason=reason, correlation={"address": "192.0.2.7"})


@pytest.fixture
def signer(tmp_path):
    for number, target in enumerate(("x", "Zürich", "elsewhere", "other", "Zürich")):
        enter(f"conversation:{target}", f"because of {number}")
    enter("conversation:other", f"token sb_{'a1B2' * 10}")
    for n in range(5):
        say("Zürich", f"<b>note</b> {n}"), say("other", f"{n}")
    envelope = {"type": "message", "sender": "user:ida", "recipient": "chat:other", "content": "hello", "id": "m1"}
    log.append(log.from_people(["chat:other"], {**envelope, "conversation_id": "other"}, user_principal("ida")))
    to_format_1("other", 3)
    redact("Zürich", 2)
    made = Signer(tmp_path / "keys" / "k.json", "example.com/bundles")
    checkpoints.make(made)
    return made


@pytest.fixture
def folder(signer, tmp_path):
    """A bundle, unpacked."""
    with bundle.write(signer, ["Zürich", "other"]) as made:
        zipfile.ZipFile(made).extractall(tmp_path / "bundle")
    return tmp_path / "bundle"


def verified(folder, *arguments):
    """Run its verifier by a Python that sees no package but its own."""
    command = [sys.executable, "-I", "-S", "-X", "utf8", str(folder / "verify.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={}, cwd="/")
    assert not done.stderr
    return done.returncode, done.stdout


def test_a_bundle_is_whole(folder):
    code, words = verified(folder, "--key", (folder / "keys.txt").read_text().splitlines()[0])

    assert (code, words.splitlines()[-1]) == (0, "OK: 2 conversations, nothing was changed")
    assert "conversation 'other': 6 events match what was signed" in words
    assert "witnessed by nobody" in words


def test_a_bundle_without_conversations_says_that_it_proves_nothing(signer, monkeypatch, tmp_path):
    monkeypatch.setattr(bundle._Bundle, "_keys", property(lambda _: [], lambda *_: None), raising=False)
    with bundle.write(signer, ["other"]) as made:
        zipfile.ZipFile(made).extractall(tmp_path / "none")

    code, words = verified(tmp_path / "none")

    assert code == 1
    assert words.splitlines()[-2] == "NOTHING PROVED: the bundle contains no conversation"
    assert "OK" not in words


def test_a_zip_is_checked_as_it_is(signer, tmp_path, folder):
    with bundle.write(signer, ["other"]) as made:
        (tmp_path / "x.zip").write_bytes(made.read())

    code, words = verified(folder, str(tmp_path / "x.zip"))

    assert (code, "compare keys.txt" in words) == (0, True)


def test_what_moved_is_shown_to_witnesses_first_and_their_signatures_are_checked(signer, tmp_path):
    say("other", "later")
    witness = StandInWitness(checkpoints.verifier_keys())
    with serving(witness) as url:
        show = partial(witnesses.submit_all, [parse(url)], [witness.key], AllowList.of(["127.0.0.1"]))
        with bundle.write(signer, ["other"], [witness.key], show=show) as made:
            zipfile.ZipFile(made).extractall(tmp_path / "b")

    assert "witnessed by witness.example/w1" in verified(tmp_path / "b")[1]


def test_the_transcript_has_the_words_and_runs_nothing(folder):
    page = (folder / "transcript.html").read_text()

    assert "&lt;b&gt;note&lt;/b&gt; 4" in page
    assert "<b>" not in page.replace("<body", "")
    assert "note</b> 1" not in page.replace("&lt;/b&gt;", "</b>")


def lines_of(folder, number="1"):
    return [json.loads(line) for line in (folder / f"conversations/{number}.jsonl").read_text().splitlines()]


AUDIT = {
    "reason": (lambda rows: rows[1].update(reason="forged"), "its person, target or reason was changed"),
    "principal": (lambda rows: rows[1].update(principal="user:eve"), "its person, target or reason was changed"),
    "outcome": (lambda rows: rows[1].update(outcome="refused"), "it differs from the one that was signed"),
    "all of it": (lambda rows: rows[1].update(reason="forged", salt=None, digest="0" * 64), "it differs from the one"),
}


@pytest.mark.parametrize("what", AUDIT)
def test_a_changed_audit_entry_is_found_behind_the_manifest(folder, what):
    change, words = AUDIT[what]
    path = folder / "audit.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    unsigned(folder)

    code, printed = verified(folder)

    assert (code, f"BAD: audit entry {rows[1]['seq']}: {words}" in printed) == (1, True), printed


@pytest.mark.parametrize("at", [0, 1, 2, 6])
def test_a_changed_link_of_the_audit_log_is_found_behind_the_manifest(folder, at):
    path = folder / "proofs/audit.jsonl"
    (proof,) = map(json.loads, path.read_text().splitlines())
    proof["links"][2][at] = 77
    path.write_text(json.dumps(proof) + "\n")
    unsigned(folder)

    assert verified(folder)[1].splitlines()[-1].startswith("BAD: audit entry")


def test_audit_entries_are_proved_and_those_about_others_are_digests_alone(signer, folder):
    code, printed = verified(folder)

    assert code == 0, printed
    assert "3 audit entries match what was signed; 1 have masked or erased text" in printed
    proofs, words = (folder / "proofs/audit.jsonl").read_text(), (folder / "audit.jsonl").read_text()
    assert "elsewhere" not in proofs + words
    assert "because of" not in proofs
    assert "sb_a1B2" not in words


def test_an_erased_audit_entry_is_proved_without_its_words(signer, tmp_path):
    audit_entries.erase(SYSTEM, [2], "asked for")
    with bundle.write(signer, ["Zürich"]) as made:
        zipfile.ZipFile(made).extractall(tmp_path / "bundle")

    code, printed = verified(tmp_path / "bundle")

    assert (code, "1 audit entries match what was signed; 1 have masked" in printed) == (0, True), printed


REDACTIONS = {
    "the decision": lambda: redact_events(SYSTEM, "gate", [3], "asked for"),
    "the call": lambda: scope.carry_out(SYSTEM, RedactionScope(call="gate-run-1-1"), "asked for"),
    "all that is old": lambda: expiry.expire(SYSTEM, RetentionScope(time.time_ns() // 1000), "old", lambda *_: None),
    "the id": lambda: scope.carry_out(SYSTEM, RedactionScope("gate", is_id=True), "asked for"),
}


@pytest.mark.parametrize("what", REDACTIONS)
def test_a_decision_is_proved_after_its_event_is_redacted(signer, tmp_path, what):
    log.append(toolcalls.ours("gate", "run-1", 1, decision="approve"))
    end = {"event": "run.done", "run_id": "run-1", "agent": "Permit Desk"}
    log.append([log.from_internal("gate", end, SYSTEM)])
    REDACTIONS[what]()
    conversation = Conversation.objects.get(approval__id="a-gate-run-1-1")
    assert Event.objects.get(conversation=conversation, kind="approval.decided").salt is None

    with bundle.write(signer, [conversation.key]) as made:
        zipfile.ZipFile(made).extractall(tmp_path / "bundle")

    code, printed = verified(tmp_path / "bundle")
    assert (code, "1 approvals match the decisions in the events" in printed) == (0, True), printed


def put(folder, rows, number="1"):
    (folder / f"conversations/{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def unsigned(folder):
    """Have the manifest out of the way: what stands behind it has to find the change, too."""
    path = folder / "verify.py"
    path.write_text(path.read_text().replace("    check_manifest(bundle, keys, origin)\n", ""))


CHANGES = {
    "body": lambda rows: rows[1].update(body="{}"),
    "body and salt": lambda rows: rows[1].update(body="{}", salt=None, erased_by="user:eve"),
    "tombstone": lambda rows: rows[2].update(body='{"said":"this"}'),
    "salt": lambda rows: rows[1].update(salt="00" * 16),
    "run": lambda rows: rows[1].update(run="r"),
    "principal": lambda rows: rows[1].update(principal="user:eve"),
    "time": lambda rows: rows[1].update(at=7),
    "empty for null": lambda rows: rows[1].update(event_id=""),
    "erased": lambda rows: rows[1].update(erased_by="user:eve"),
    "left out": lambda rows: rows.pop(3),
    "end cut": lambda rows: (rows.pop(), rows[0].update(head_seq=rows[-1]["seq"])),
    "id": lambda rows: rows[0].update(conversation_id="elsewhere"),
    "id without its salt": lambda rows: rows[0].update(
        key_salt=None, conversation_id=erased_key(rows[0]["key_digest"])
    ),
    "digest of the id": lambda rows: rows[0].update(key_digest="0" * 64),
    "neither salt nor digest": lambda rows: rows[0].update(key_salt=None, key_digest="", format="switchboard/2"),
}


@pytest.mark.parametrize("is_unsigned", [False, True])
@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_conversation_is_found(folder, what, is_unsigned):
    rows = lines_of(folder)
    CHANGES[what](rows)
    put(folder, rows)
    if is_unsigned:
        unsigned(folder)

    code, words = verified(folder)

    expected = "BAD: conversation '" if is_unsigned else "BAD: conversations/1.jsonl was changed"
    assert (code, expected in words) == (1, True), words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("approvals.json", "approvals.json was changed"),
        ("transcript.html", "transcript.html was changed"),
        ("policy.json", "policy.json was changed"),
        ("audit.jsonl", "audit.jsonl was changed"),
    ],
)
def test_a_changed_file_is_found(folder, name, words):
    path = folder / name
    path.write_bytes(path.read_bytes() + b" ")

    code, output = verified(folder)

    assert (code, words in output) == (1, True)


def test_a_missing_and_an_added_file_are_found(folder):
    (folder / "audit.jsonl").rename(folder / "audit.json")

    assert verified(folder)[0] == 1


@pytest.mark.parametrize("name", ["checkpoint.txt", "manifest.txt", "proofs/1.tlog-proof", "keys.txt"])
def test_a_changed_byte_of_a_signed_file_is_found(folder, name):
    path = folder / name
    data = bytearray(path.read_bytes())
    data[12] ^= 1
    path.write_bytes(bytes(data))
    unsigned(folder) if name.startswith("proofs") else None

    assert verified(folder)[0] == 1


def test_a_bundle_of_another_record_is_refused_under_the_known_key(folder):
    other = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"

    code, words = verified(folder, "--key", other)

    assert (code, "not signed by the record's key" in words) == (1, True)


def test_what_came_after_the_signature_is_said(signer, tmp_path, monkeypatch):
    checkpoints.make(signer)
    monkeypatch.setattr(checkpoints, "make", lambda _: False)
    say("other", "later")
    with bundle.write(signer, ["other"]) as made:
        zipfile.ZipFile(made).extractall(tmp_path / "b")

    assert "6 events match what was signed; 1 later ones are not signed yet" in verified(tmp_path / "b")[1]


def test_a_change_in_the_database_shows_in_the_bundle_made_of_it(signer, tmp_path):
    checkpoints.make(signer)
    Event.objects.filter(conversation__key="other", seq=1).update(body='{"event":"operator.note","text":"forged"}')
    with bundle.write(signer, ["other"]) as made:
        zipfile.ZipFile(made).extractall(tmp_path / "b")

    code, words = verified(tmp_path / "b")

    assert (code, "BAD: conversation 'other', event 1: the body was changed" in words) == (1, True)


def test_what_is_not_there_is_refused(signer):
    with pytest.raises(NotFound):
        bundle.keys_of(approval="none")
    with pytest.raises(NotFound):
        bundle.keys_of(call="none")
    with pytest.raises(Invalid):
        bundle.write(signer, [])
    with pytest.raises(NotFound):
        bundle.write(signer, ["nobody"])


def test_a_filter_chooses_what_the_list_shows_by_it(monkeypatch):
    for n in range(7):
        say(f"tram {n % 2} {n}", "stop")
    Conversation.objects.filter(key="tram 1 3").update(is_demo=True)

    assert bundle.keys_matching(q="tram 1") == ["tram 1 5", "tram 1 1"]
    assert len(bundle.keys_matching(q="tram", state="open")) == 6
    with pytest.raises(NotFound, match="no conversation matches"):
        bundle.keys_matching(q="bus")
    for wrong in ({}, {"q": " "}, {"state": "mine"}):
        with pytest.raises(Invalid):
            bundle.keys_matching(**wrong)
    monkeypatch.setattr(bundle, "MAX_CONVERSATIONS", 5)
    with pytest.raises(Invalid, match="more than 5 conversations"):
        bundle.keys_matching(q="tram")


def test_what_was_never_signed_is_no_evidence_and_makes_no_keys(tmp_path):
    say("other", "unsigned")

    with pytest.raises(NotFound, match="not been signed yet"):
        bundle.write(Signer(tmp_path / "keys" / "k.json"), ["other"])

    assert not (tmp_path / "keys").exists()


def test_the_command_writes_a_bundle(signer, tmp_path, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"signing_key": signer.path, "record_name": ""})
    path, out = tmp_path / "evidence.zip", io.StringIO()

    call_command("evidence", "other", "Zürich", "--output", str(path), stdout=out)

    assert "Wrote evidence for 2 conversations" in out.getvalue()
    assert "verify.py" in zipfile.ZipFile(path).namelist()
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match=r"no evidence was written: .*Is a directory"):
        call_command("evidence", "other", "--output", ".")
    call_command("evidence", "--q", "other", "--output", str(path), stdout=out)
    assert "Wrote evidence for 1 conversation to" in out.getvalue()
    with pytest.raises(CommandError, match="nobody"):
        call_command("evidence", "nobody", "--output", str(tmp_path / "other.zip"))
    assert [p.name for p in tmp_path.glob("*.zip")] == ["evidence.zip"]
