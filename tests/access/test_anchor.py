"""A tail cut off the audit log together with its head is found by the file beside the database."""

import pytest
from django.core.management import call_command

from conversations.access.audit import chain
from conversations.access.audit.anchor_file import NAME, AuditAnchorFile
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.models import AuditEntry, AuditHead
from tests.support.live import until

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data_dir(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    return tmp_path


def fill(count):
    for n in range(count):
        with write_transaction():
            chain.add_entry(SYSTEM, "try", f"thing:{n}")


def cut(seq):
    """Leave the first entries and a head that agrees with them."""
    AuditEntry.objects.filter(seq__gt=seq).delete()
    AuditHead.objects.update(seq=seq, hash=AuditEntry.objects.get(seq=seq).hash)


@pytest.mark.thorough
def test_a_tail_cut_together_with_its_head_is_found(data_dir, capsys):
    fill(5)
    AuditAnchorFile(data_dir).write()
    cut(3)

    assert chain.verify().ok
    with pytest.raises(SystemExit):
        call_command("verify")

    assert "audit entry 5: missing" in capsys.readouterr().out


@pytest.mark.slow
def test_a_tail_written_anew_is_found(data_dir, capsys):
    fill(5)
    AuditAnchorFile(data_dir).write()
    cut(3)
    fill(4)

    with pytest.raises(SystemExit):
        call_command("verify")

    assert "audit entry 5: missing" in capsys.readouterr().out


def test_what_is_remembered_stays_though_the_log_went_back(data_dir, caplog):
    fill(5)
    anchor = AuditAnchorFile(data_dir)
    anchor.write()
    before = (data_dir / NAME).read_text()
    cut(3)

    anchor.write(), anchor.write()

    assert (data_dir / NAME).read_text() == before
    assert caplog.text.count("audit entry 5: missing") == 1


def test_a_log_that_goes_on_is_whole(data_dir):
    for _ in range(3):
        fill(2)
        AuditAnchorFile(data_dir).write()

    call_command("verify")

    assert (data_dir / NAME).read_text() == f"6 {AuditEntry.objects.get(seq=6).hash}"


def test_an_empty_log_leaves_no_file(data_dir):
    AuditAnchorFile(data_dir).write()

    assert not (data_dir / NAME).exists()
    call_command("verify")


def test_a_file_that_was_spoiled_is_told(data_dir):
    (data_dir / NAME).write_text("nonsense")

    assert not AuditAnchorFile(data_dir).verify().ok


@pytest.mark.slow
def test_a_running_server_keeps_it(door_server):
    door_server.token("anchored")
    head = "SELECT seq || ' ' || hash FROM conversations_audithead"
    file = door_server.data_dir / NAME
    until(lambda: file.exists() and file.read_text() == door_server.rows(head)[0][0], what="the file")
