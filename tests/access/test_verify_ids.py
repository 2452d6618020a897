"""Format 3 of the chain has a salted digest in place of a conversation's id: each change of either is named, old chains
stay valid, and no conversation is turned from one kind into the other."""

import json
from hashlib import sha256
from types import SimpleNamespace

import pytest

from conversations.core.principals import SYSTEM, token_principal
from conversations.events import log
from conversations.events.log import hash_chain
from conversations.events.verify_chains import ChainReport
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_report import ImportReport
from conversations.models import Conversation
from tests.support.redacted import to_format_1
from tests.support.unchecked import unchecked
from tests.support.verified import verify_events

pytestmark = pytest.mark.django_db
ID = ("key", "key_salt", "key_digest")
CHANGED = "the conversation's id was changed: it does not match its digest"
REBUILT = "changed after it was written, or the conversation's id was"
SALTLESS = "the conversation's id cannot be checked for changes: its salt is missing, and no event erased it"


def say(key, principal=SYSTEM, **fields):
    log.append([unchecked(key, {"event": "log", **fields}, principal)])


@pytest.fixture(autouse=True)
def record():
    for key in ("alice@example.com", "Zürich", "old"):
        say(key), say(key)
    to_format_1("old", 1)


def fault():
    verdict = verify_events()
    return "" if verdict.ok else f"{verdict.first_bad}: {verdict.why}"


def row(key="alice@example.com"):
    return Conversation.objects.filter(key=key)


def swap(*names):
    first, second = row().get(), row("Zürich").get()
    there = {name: (getattr(first, name), getattr(second, name)) for name in names}
    if "key" in names:
        Conversation.objects.filter(pk=second.pk).update(key="between")
    Conversation.objects.filter(pk=first.pk).update(**{name: pair[1] for name, pair in there.items()})
    Conversation.objects.filter(pk=second.pk).update(**{name: pair[0] for name, pair in there.items()})


def moved_boundary():
    """Have the salt's last bytes begin the id: the same bytes are hashed."""
    salt = b"s" * 16
    row("Zürich").update(key="sZürich", key_salt=salt[:15], key_digest=hash_chain.digest(salt, "Zürich"))


CHANGES = {
    "another id": (lambda: row().update(key="bob"), CHANGED),
    "another digest": (lambda: row().update(key_digest="0" * 64), CHANGED),
    "another salt": (lambda: row().update(key_salt=b"s" * 16), CHANGED),
    "a new id with salt and digest": (
        lambda: row().update(key="bob", key_salt=b"s" * 16, key_digest=hash_chain.digest(b"s" * 16, "bob")), REBUILT
    ),
    "a shorter salt": (moved_boundary, CHANGED),
    "no salt": (lambda: row().update(key_salt=None), SALTLESS),
    "no salt and what an erasure leaves": (
        lambda: row().update(key_salt=None, key=hash_chain.erased_key(row().get().key_digest)), SALTLESS
    ),
    "no digest": (lambda: row().update(key_digest=""), "the digest of the conversation's id is missing"),
    "neither salt nor digest": (lambda: row().update(key_salt=None, key_digest=""), REBUILT),
    "ids swapped": (lambda: swap("key"), CHANGED),
    "ids and salts swapped": (lambda: swap("key", "key_salt"), CHANGED),
    "all swapped": (lambda: swap(*ID), REBUILT),
    "another id of an old one": (lambda: row("old").update(key="older"), REBUILT),
    "a digest for an old one": (
        lambda: row("old").update(key_salt=b"s" * 16, key_digest=hash_chain.digest(b"s" * 16, "old")), REBUILT
    ),
}  # fmt: skip


def test_a_record_of_all_three_formats_is_whole():
    say("old")
    say("Zürich")

    assert verify_events() == ChainReport(8, ok=True)


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_id_is_named(what):
    change, words = CHANGES[what]

    change()

    assert fault().startswith("conversation ")
    assert words in fault()


@pytest.mark.parametrize("by", ["people", "token"])
def test_only_an_event_of_people_erases_an_id(by):
    new_id = hash_chain.erased_key(row().get().key_digest)
    row().update(key=new_id, key_salt=None)
    erased = {"event": "conversation.id_erased", "new_id": new_id, "reason": "asked for"}
    if by == "people":
        log.append([log.from_internal(new_id, erased, SYSTEM)])
    else:
        say(new_id, token_principal("robot"), **erased)

    assert fault() == ("" if by == "people" else f"conversation {new_id!r}: {SALTLESS}")


def test_an_event_that_names_another_id_erases_none():
    log.append([log.from_internal("Zürich", {"event": "conversation.id_erased", "new_id": "Zürich"}, SYSTEM)])
    row("Zürich").update(key_salt=None)

    assert fault() == f"conversation 'Zürich': {SALTLESS}"


def exported(tmp_path, key, **changes):
    """Read an export of a conversation with another header; return the report."""
    header, *lines = map(json.loads, export(key))
    path = tmp_path / "export.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in (header | changes, *lines)))
    problems = []
    (count,) = [len(list(recording.steps)) for recording in recordings(path, ImportReport(problems.append))]
    return header["format"], count, " ".join(problems)


def test_an_export_has_the_format_of_its_conversation(tmp_path):
    assert exported(tmp_path, "Zürich") == ("switchboard/3", 2, "")
    assert exported(tmp_path, "old") == ("switchboard/2", 2, "")


@pytest.mark.parametrize(
    ("change", "events", "words"),
    [
        ({"conversation_id": "bob"}, 2, CHANGED),
        ({"key_salt": None}, 2, SALTLESS),
        ({"key_digest": "0" * 64}, 0, "hash of event 1 must match"),
        ({"key_digest": "", "key_salt": None, "format": "switchboard/2"}, 0, "hash of event 1 must match"),
    ],
)
def test_a_changed_id_in_an_export_is_reported(tmp_path, change, events, words):
    _, count, problems = exported(tmp_path, "Zürich", **change)

    assert (count, words in problems) == (events, True), problems


@pytest.mark.parametrize("change", [{"key_digest": "x"}, {"key_salt": "x"}, {"format": "switchboard/2"}])
def test_a_header_that_contradicts_itself_is_no_header(tmp_path, change):
    header, *_ = map(json.loads, export("Zürich"))
    path = tmp_path / "export.jsonl"
    path.write_text(f"{json.dumps(header | change)}\n")
    problems = []

    assert list(recordings(path, ImportReport(problems.append))) == []
    assert "key_digest must be" in problems[0] or "salt must be" in problems[0]


def test_vectors_of_format_3():
    salt = bytes(range(16))
    digest = hash_chain.digest(salt, "alice@example.com")
    identity = hash_chain.identity_of("alice@example.com", digest)
    seed = hash_chain.seed(identity)
    row = SimpleNamespace(
        seq=1, kind="log", at=1_795_000_000_000_000, principal="user:ida", run="r", turn=1, event_id="e",
        erased_by=None, digest=hash_chain.digest(salt, "{}"),
        hash="b6cba774f2b93963d7b372fbf4675b68c9f9d67c115644a5dc1c91219a3646cd",
    )  # fmt: skip

    assert (digest, seed) == (
        "a665c52829b935765f945e38e973753a5c696f59f488d8ca90a67ed7da798d80",
        "266dba5144a686d60a00ba7c769f1c289b84bf3da227898b20b9a2e7cd309101",
    )
    assert sha256(f"\0{digest}".encode()).hexdigest() == seed
    assert hash_chain.format_of(seed, identity, row) == 3
    assert hash_chain.format_of(seed, "alice@example.com", row) == 0
    row.hash = hash_chain.link_v1(seed, identity, row.seq, row.kind, row.at, row.principal, row.event_id, row.digest)
    assert hash_chain.format_of(seed, identity, row) == 0
    assert hash_chain.erased_key(digest) == "erased-a665c52829b93576"
