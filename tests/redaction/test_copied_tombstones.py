"""A fork copies the tombstone of a redacted event as ordinary content; what is erased in it later leaves it whole."""

import zipfile

import pytest

from conversations.conversation.fork import fork
from conversations.evidence import bundle, checkpoints
from conversations.evidence.checkpoints import Signer
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_report import ImportReport
from conversations.models import Conversation, Event
from conversations.redaction import erase_id
from conversations.redaction.redact import redact
from tests.evidence.test_bundle import verified
from tests.redaction.test_erase_id import ID, faults, ida, say

__all__ = ["ida"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def signer(tmp_path):
    return Signer(tmp_path / "keys" / "k.json", "example.com/copies")


@pytest.fixture
def keys(ida, signer):
    """A conversation whose id was erased after its first event was redacted and copied; and that copy's."""
    say(ID, "quokka"), say(ID, "wombat")
    redact(ida, ID, [1], "asked for")
    fork(ida, ID, 2)
    checkpoints.make(signer)
    erase_id.erase_id(ida, ID, "asked for")
    checkpoints.make(signer)
    copied = Event.objects.get(conversation__parent__isnull=False, seq=1)
    assert (copied.salt, copied.erased_by.partition(":")[0]) == (None, "redaction")
    return list(Conversation.objects.order_by("pk").values_list("key", flat=True))


def test_the_record_is_whole(keys, signer, tmp_path):
    assert faults(tmp_path, signer) == [""] * 4


def test_a_bundle_of_it_is_whole(keys, signer, tmp_path):
    with bundle.write(signer, keys) as made:
        zipfile.ZipFile(made).extractall(tmp_path / "bundle")

    assert verified(tmp_path / "bundle")[0] == 0, verified(tmp_path / "bundle")[1]


def test_an_export_of_it_is_read_without_a_complaint(keys, tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b"".join(b"".join(export(key)) for key in keys))
    problems = []

    for recording in recordings(tmp_path / "x.jsonl", ImportReport(problems.append)):
        list(recording.steps)

    assert problems == []


@pytest.mark.parametrize("column", ["erased_by", "body"])
def test_a_change_of_the_copy_is_found(keys, signer, tmp_path, column):
    copied = Event.objects.filter(conversation__parent__isnull=False, seq=1)
    copied.update(**{column: "redaction:another" if column == "erased_by" else "{}"})

    assert [bool(fault) for fault in faults(tmp_path, signer)][1]
