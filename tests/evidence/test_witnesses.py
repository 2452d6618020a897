"""Witnesses are shown each checkpoint: files, commands and servers; each one's problem is its own."""

import json

import pytest

from conversations.core import http_post
from conversations.core.outbound_address import NONE, AllowList
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.evidence import checkpoints, notes, state, witnesses
from conversations.evidence.checkpoints import Signer
from conversations.evidence.witness_settings import parse
from conversations.models import Witnessed
from dashboard.config import Config
from tests.evidence.stand_in_witness import StandInWitness, serving

pytestmark = pytest.mark.django_db(transaction=True)
LOOPBACK = AllowList.of(["127.0.0.1"])


def say(key, text="hello"):
    log.append([log.from_internal(key, {"event": "operator.note", "text": text}, SYSTEM)])


@pytest.fixture
def signer(tmp_path):
    return Signer(tmp_path / "keys" / "k.json", "example.com/evidence")


def newest():
    return notes.parse_checkpoint(notes.parse(checkpoints.newest().note).text)


def test_a_file_and_a_command_are_given_each_checkpoint(signer, tmp_path):
    witnessed, copied = tmp_path / "witnessed", tmp_path / "copied"
    whom = [parse(f"file:{witnessed}"), parse(f"command:tee {copied}")]
    for _ in range(2):
        say("a")
        checkpoints.make(signer)
        witnesses.submit_all(whom, [], NONE)
        witnesses.submit_all(whom, [], NONE)

    assert len(witnessed.read_text().splitlines()) == 2
    assert witnesses.newest_of_file(witnessed.read_text()).text == newest().text
    assert notes.parse(copied.read_text()).text == newest().text
    assert state.current().words.endswith("ago, witnessed by 2")


def test_an_unforeseen_error_of_one_witness_is_its_problem_and_the_others_are_shown_the_checkpoint(
    signer, tmp_path, monkeypatch
):
    async def broken(url, *args, **options):
        raise Exception("Upgrade")  # as a parser's error that derives from nothing else

    monkeypatch.setattr(http_post, "post", broken)
    say("a")
    checkpoints.make(signer)

    witnesses.submit_all([parse("https://w.example/a"), parse(f"file:{tmp_path / 'w'}")], [], NONE)

    assert Witnessed.objects.get(witness="w.example").problem == "internal error: Upgrade"
    assert witnesses.newest_of_file((tmp_path / "w").read_text()).text == newest().text


def test_two_witnesses_of_the_same_command_are_each_given_a_checkpoint(signer, tmp_path):
    places = tmp_path / "first", tmp_path / "second"
    whom = Config(witnesses=",".join(f"command:tee {place}" for place in places)).witness_list
    say("a")
    checkpoints.make(signer)

    witnesses.submit_all(whom, [], NONE)

    assert [notes.parse(place.read_text()).text for place in places if place.exists()] == [newest().text] * 2
    assert state.current().words.endswith("ago, witnessed by 2")


@pytest.mark.parametrize(
    "places",
    [
        ("https://w.example/a", "timestamp:https://w.example/tsa"),
        ("https://w.example:1/", "https://w.example:2/"),
        ("command:" + "/x" * 150 + " a", "command:" + "/x" * 150 + " b"),
        ("file:/" + "y" * 250, "file:/z/" + "y" * 250),
    ],
)
def test_each_witness_has_a_name_of_its_own_that_shows_no_path(places):
    names = {witness.name for witness in Config(witnesses=",".join(places)).witness_list}

    assert len(names) == 2
    assert all(len(name) <= 200 and "tsa" not in name for name in names)


def test_a_witness_without_a_namesake_is_called_as_before():
    whom = Config(witnesses="https://w.example/a,https://w.example/a,command:tee b").witness_list

    assert [witness.name for witness in whom] == ["w.example", "tee"]


def test_the_last_whole_line_of_a_file_counts(signer, tmp_path):
    say("a")
    checkpoints.make(signer)
    witnesses.submit_all([parse(f"file:{tmp_path / 'w'}")], [], NONE)
    torn = (tmp_path / "w").read_text() + json.dumps({"at": 1, "note": "x"})[:12]

    assert witnesses.newest_of_file(torn).text == newest().text


def test_a_long_file_is_read_from_its_end(signer, tmp_path, monkeypatch):
    path = tmp_path / "w"
    for word in "abc":
        say(word)
        checkpoints.make(signer)
        witnesses.submit_all([parse(f"file:{path}")], [], NONE)
    lines = path.read_text().splitlines()
    monkeypatch.setattr(witnesses, "MAX_END", len(lines[-1]) + len(lines[-2]) // 2)
    read, end = [], witnesses.newest_of_file
    monkeypatch.setattr(witnesses, "newest_of_file", lambda text: read.append(text) or end(text))

    assert witnesses.newest_in(path).text == newest().text
    assert read == [lines[-1] + "\n"]


def test_a_witness_at_a_url_signs_and_its_signature_is_part_of_the_note(signer):
    say("a")
    checkpoints.make(signer)
    witness = StandInWitness(checkpoints.verifier_keys())
    with serving(witness) as url:
        for _ in range(3):
            say("a"), say("b")
            checkpoints.make(signer)
            witnesses.submit_all([parse(url)], [witness.key], LOOPBACK)
        Witnessed.objects.update(size=1)  # it knows better than we do
        say("c")
        checkpoints.make(signer)
        witnesses.submit_all([parse(url)], [witness.key], LOOPBACK)

    assert witness.answers == [200, 200, 200, 409, 200]
    assert Witnessed.objects.get().problem == ""
    assert witness.key in notes.verified(notes.parse(state.note()), [witness.key])
    assert state.current().words.endswith("ago, witnessed by 1")


@pytest.mark.parametrize(
    ("keys", "allowed", "words"),
    [
        (True, NONE, "not a public address"),
        (False, LOOPBACK, "none of the keys in SWITCHBOARD_WITNESS_KEYS"),
    ],
)
def test_what_keeps_a_witness_from_counting_is_said(signer, keys, allowed, words):
    say("a")
    checkpoints.make(signer)
    witness = StandInWitness(checkpoints.verifier_keys())
    with serving(witness) as url:
        witnesses.submit_all([parse(url)], [witness.key] if keys else [], allowed)

    assert words in Witnessed.objects.get().problem
    assert state.current().words.endswith("ago, not witnessed")


def test_a_signature_by_another_key_than_the_witnesses_is_not_kept(signer):
    class Talkative(StandInWitness):
        def answer(self, body):
            status, words = super().answer(body)
            return status, notes.Signature("stranger.example/s", b"0123", bytes(72)).line + words

    say("a")
    checkpoints.make(signer)
    witness = Talkative(checkpoints.verifier_keys())
    with serving(witness) as url:
        witnesses.submit_all([parse(url)], [witness.key], LOOPBACK)

    signatures = notes.parse_signature_lines(Witnessed.objects.get().signatures)
    assert [signature.name for signature in signatures] == [witness.key.name]


def test_a_witness_refuses_a_record_that_went_back(signer):
    say("a")
    checkpoints.make(signer)
    witness = StandInWitness(checkpoints.verifier_keys())
    with serving(witness) as url:
        witness.size = 9
        witnesses.submit_all([parse(url)], [witness.key], LOOPBACK)

    assert "has seen a tree of 9 leaves" in Witnessed.objects.get().problem


@pytest.mark.parametrize("text", ["", "x", "file:relative", "command:", "ftp://x", "command:'"])
def test_what_is_no_witness_is_refused(text):
    with pytest.raises(ValueError, match=r"must be|quotation"):
        parse(text)
