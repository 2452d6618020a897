"""Signed notes: the public examples of Go's checksum database and of C2SP, and what must be refused."""

import pytest

from conversations.core.errors import Invalid
from conversations.evidence import notes, signing_key
from conversations.evidence.notes import SignedNote, TreeHead

NEUMANN = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
SIGNED = """If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
"""
COSIGNED = """example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
"""  # noqa: E501  # as the specification has it


def test_a_public_note_is_verified_under_its_public_key():
    note = notes.parse(SIGNED)

    assert notes.verified(note, [notes.parse_key(NEUMANN)]) == [notes.parse_key(NEUMANN)]
    assert str(note) == SIGNED


def test_a_changed_note_is_refused():
    with pytest.raises(Invalid, match="PeterNeumann is invalid"):
        notes.verified(notes.parse(SIGNED.replace("answer", "cause")), [notes.parse_key(NEUMANN)])


def test_signatures_of_strangers_count_nothing():
    assert notes.verified(notes.parse(SIGNED), [notes.parse_key(GO)]) == []


@pytest.mark.parametrize("key", [NEUMANN, GO])
def test_public_keys_are_read_and_written(key):
    assert str(notes.parse_key(key)) == key


def test_the_example_of_the_specification_is_read():
    note = notes.parse(COSIGNED)

    checkpoint = notes.parse_checkpoint(note.text)

    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert (checkpoint.text, str(note)) == (note.text, COSIGNED)
    assert [s.name for s in note.signatures] == ["example.com/behind-the-sofa", "witness.example.com/w1"]
    assert int.from_bytes(note.signatures[1].signature[:8], "big") == 1679315147  # seconds UTC


def test_both_of_our_signatures_hold_and_only_for_what_was_signed(tmp_path):
    key = signing_key.make(tmp_path / "keys" / "k.json", "example.com/record")
    checkpoint = TreeHead(key.origin, 7, b"\7" * 32)
    signed = SignedNote(checkpoint.text, tuple(key.sign(checkpoint)))

    assert notes.verified(notes.parse(str(signed)), key.verifier_keys) == key.verifier_keys
    for verifier_key in key.verifier_keys:
        forged = SignedNote(checkpoint._replace(size=8).text, signed.signatures)
        with pytest.raises(Invalid, match="is invalid"):
            notes.verified(forged, [verifier_key])
    assert signing_key.load(tmp_path / "keys" / "k.json") == key
    assert (tmp_path / "keys" / "k.json").stat().st_mode & 0o777 == 0o600
    assert [notes.parse_key(str(verifier_key)) for verifier_key in key.verifier_keys] == key.verifier_keys


@pytest.mark.parametrize(
    "text", ["", "a\n", "a\n\n", "a\n\n— x\n", "a\n\n— x AAAA\n", "a\n\n- x AAAAAAAA\n", "a\r\n\n— x AAAAAAAA\n"]
)
def test_what_is_no_note_is_refused(text):
    with pytest.raises(Invalid):
        notes.parse(text)


@pytest.mark.parametrize(
    "key", ["", "a", "a+b", GO.replace("033de0ae", "033de0af"), GO[:-4], "a b+00000000+AAAA", GO.replace("+Ac", "+Bc")]
)
def test_what_is_no_key_is_refused(key):
    with pytest.raises(Invalid):
        notes.parse_key(key)


@pytest.mark.parametrize("text", ["a\n1\n", "a\n01\n" + "A" * 43 + "=\n", "a\n-1\n" + "A" * 43 + "=\n", "a\n1\nAAAA\n"])
def test_what_is_no_checkpoint_is_refused(text):
    with pytest.raises(Invalid):
        notes.parse_checkpoint(text)
