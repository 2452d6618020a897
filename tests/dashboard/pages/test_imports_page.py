"""Import in the browser: a file is sent, summed up and imported, by whoever may publish; errors name line and cause."""

import json
import os
import time

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from conversations.import_export.export import export
from conversations.models import AuditEntry, Conversation, Event, Role, User
from dashboard import browser_import
from tests.support.cast import client_of
from tests.support.live import ROOT, until
from tests.support.searching import say

pytestmark = pytest.mark.django_db(transaction=True)

CHATS = (ROOT / "tests" / "samples" / "chats.jsonl").read_bytes()
IMPORT, PIECES = "/import/", "/import/pieces/"


@pytest.fixture
def admin(people):
    return client_of(people["admin"])


@pytest.fixture(autouse=True)
def _own_jobs(monkeypatch, settings, tmp_path):
    """Give each test files of its own."""
    settings.DATA_DIR = tmp_path
    made = browser_import.ImportJobs()
    monkeypatch.setattr(browser_import, "jobs", made)
    monkeypatch.setattr("dashboard.pages.imports.jobs", made)
    yield
    if made._thread is not None:
        made._thread.shutdown(wait=True)


def send(client, content, name="chats.jsonl", **more):
    """Send a file in the form; return the address of what becomes of it, once that is known."""
    answer = client.post(IMPORT, {"file": SimpleUploadedFile(name, content), "do": "check", **more})
    assert answer.status_code == 302, answer.content
    return answer.url, over(client, answer.url)


def over(client, address):
    """Return the page once the file is read."""

    def read():
        text = client.get(f"{address}&part=state").content.decode()
        return None if 'data-state="reading"' in text else text

    return until(read, within=60, what="the file to be read")


def job_of(address):
    return address.rpartition("=")[2]


def test_a_file_is_summed_up_then_imported(admin):
    address, summary = send(admin, CHATS)

    assert "would become" in summary
    assert not Conversation.objects.exists()

    done = over(admin, admin.post(IMPORT, {"job": job_of(address), "do": "import"}).url)

    assert "has become" in done
    rows = {row.key: row for row in Conversation.objects.visible()}
    assert sorted(row.messages for row in rows.values()) == [2, 3]
    assert all(key in summary and key in done for key in rows)
    assert set(Event.objects.values_list("principal", flat=True)) == {"import:chats"}
    entry = AuditEntry.objects.get(verb="import_file")
    assert (entry.principal, entry.target, entry.outcome) == ("user:ada", "import:chats", "done")
    assert json.loads(entry.correlation)["conversations"] == 2


def test_a_bad_line_is_named_with_its_place_and_what_was_expected(admin):
    _, summary = send(admin, CHATS + b"[1]\n")

    assert "chats.jsonl, line 3: must be a JSON object; got list; skipped" in summary
    assert "would become" in summary


@pytest.mark.parametrize(
    ("content", "why"),
    [(b'{"a": 1}', "unknown format; supported formats"), (b"\x1f\x8bnonsense", "damaged"), (b"{", "must be JSON")],
    ids=["unknown", "gzip", "torn"],
)
def test_a_file_that_cannot_be_read_says_why(admin, content, why):
    _, answer = send(admin, content, name="sample.json")

    assert "sample.json cannot be imported" in answer
    assert why in answer
    assert not Conversation.objects.exists()


def test_an_empty_form_is_refused(admin):
    answer = admin.post(IMPORT, {"do": "check"})

    assert answer.status_code == 422
    assert "File must be a file that is not empty" in answer.content.decode()


def test_what_exists_already_is_told_and_can_be_added_to(admin):
    address, _ = send(admin, CHATS)
    over(admin, admin.post(IMPORT, {"job": job_of(address), "do": "import"}).url)
    again, _ = send(admin, CHATS)

    refused = over(admin, admin.post(IMPORT, {"job": job_of(again), "do": "import"}).url)
    before = Event.objects.count()
    added = over(admin, admin.post(IMPORT, {"job": job_of(again), "do": "import", "update": "1"}).url)

    assert "already exists" in refused
    assert "has become" in added
    assert Event.objects.count() == before


def piece(client, body, **query):
    address = f"{PIECES}?" + "&".join(f"{name}={value}" for name, value in query.items())
    return client.post(address, body, content_type="application/octet-stream")


def test_a_file_comes_in_pieces_in_their_order(admin):
    half = len(CHATS) // 2
    first = piece(admin, CHATS[:half], name="chats.jsonl", size=len(CHATS), offset=0).json()
    rest = {"name": "chats.jsonl", "size": len(CHATS), "job": first["job"]}

    assert piece(admin, CHATS[half:], **rest, offset=0).status_code == 409
    assert admin.post(IMPORT, {"job": first["job"], "do": "check"}).status_code == 409
    assert piece(admin, CHATS[half:], **rest, offset=half).json()["received"] == len(CHATS)
    assert piece(admin, b"x", **rest, offset=len(CHATS)).status_code == 413
    assert piece(admin, b"", **rest, offset=len(CHATS)).status_code == 409
    assert "would become" in over(admin, admin.post(IMPORT, {"job": first["job"], "do": "check"}).url)


def test_a_piece_takes_the_place_of_what_a_full_disk_left_of_it(admin):
    half = len(CHATS) // 2
    first = piece(admin, CHATS[:half], name="chats.jsonl", size=len(CHATS), offset=0).json()
    path = browser_import.jobs._jobs[first["job"]].path
    with path.open("ab") as file:
        file.write(CHATS[half : half + 9])

    rest = {"name": "chats.jsonl", "size": len(CHATS), "job": first["job"]}
    assert piece(admin, CHATS[half:], **rest, offset=half).json()["received"] == len(CHATS)
    assert path.read_bytes() == CHATS


def test_sizes_are_bounded(admin, monkeypatch):
    assert piece(admin, b"x", name="x", size=browser_import.MAX_FILE + 1, offset=0).status_code == 413
    assert piece(admin, b"xx", name="x", size=1, offset=0).status_code == 413
    assert piece(admin, b"", name="x", size=0, offset=0).status_code == 413
    assert piece(admin, b"x", name="x", size="1e9", offset=0).status_code == 400
    monkeypatch.setattr(browser_import, "MAX_JOBS", 1)
    assert piece(admin, b"x", name="x", size=2, offset=0).status_code == 200
    assert piece(admin, b"x", name="x", size=2, offset=0).status_code == 429


def test_a_file_that_nobody_goes_on_sending_makes_room(admin, monkeypatch):
    monkeypatch.setattr(browser_import, "MAX_JOBS", 1)
    monkeypatch.setattr(browser_import, "SENT_WITHIN_S", 0)

    first = piece(admin, b"x", name="x", size=2, offset=0).json()["job"]
    second = piece(admin, b"x", name="x", size=2, offset=0)

    assert second.status_code == 200
    assert piece(admin, b"y", name="x", size=2, offset=1, job=first).status_code == 404


def test_the_first_upload_removes_only_what_ended_processes_left(admin, tmp_path):
    newer, left = (tmp_path / "uploads" / name for name in ("of-another-server", "left"))
    for folder in (newer, left):
        folder.mkdir(parents=True)
        (folder / "chats.jsonl").write_bytes(CHATS)
    long_ago = time.time() - browser_import.LEFT_S - 60
    for path in (left / "chats.jsonl", left):
        os.utime(path, (long_ago, long_ago))

    send(admin, CHATS)

    assert (newer / "chats.jsonl").read_bytes() == CHATS
    assert not left.exists()


def test_a_file_is_its_senders_alone(people, admin):
    job = piece(admin, b"x", name="x", size=2, offset=0).json()["job"]
    Role.objects.create(user=people["viewer"], name="admin")
    other = client_of(people["viewer"])

    assert piece(other, b"y", name="x", size=2, offset=1, job=job).status_code == 404
    assert other.get(f"{IMPORT}?job={job}").status_code == 404


def test_whoever_loses_the_right_meanwhile_imports_nothing(people, admin, monkeypatch):
    address, _ = send(admin, CHATS)

    def lose(*_):
        Role.objects.filter(user=people["admin"]).delete()

    monkeypatch.setattr(browser_import.jobs, "note_progress", lose)
    job = browser_import.jobs.of(job_of(address), people["admin"])
    browser_import.jobs.start(job, people["admin"], is_dry=False)

    until(lambda: not job.is_busy, within=60, what="the import to end")
    assert (job.state, "may not publish" in job.error) == ("failed", True)
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("how", ["the role", "the account"])
@pytest.mark.parametrize("is_dry", [True, False])
def test_an_import_ends_when_the_right_to_it_does(people, admin, monkeypatch, is_dry, how):
    monkeypatch.setattr(browser_import, "POLL_EVERY_S", 0.0, raising=False)
    address, _ = send(admin, CHATS)
    steps, note = [], browser_import.jobs.note_progress

    def lose(*given):
        steps.append(given)
        if how == "the role":
            Role.objects.filter(user=people["admin"]).delete()
        else:
            User.objects.filter(pk=people["admin"].pk).update(is_active=False)
        note(*given)

    monkeypatch.setattr(browser_import.jobs, "note_progress", lose)
    job = browser_import.jobs.of(job_of(address), people["admin"])
    browser_import.jobs.start(job, people["admin"], is_dry=is_dry)

    until(lambda: not job.is_busy, within=60, what="the import to end")
    assert (job.state, "may not publish" in job.error) == ("failed", True)
    assert len(steps) == 1
    assert not Conversation.objects.exists()


def test_names_of_files_stay_in_their_folder(people, tmp_path):
    for name in ("../../x.json", "/etc/passwd", "..", "a\\b\\c.json", "\0", "x" * 300 + ".json"):
        job = browser_import.jobs.receive("", people["admin"], name, 1, offset=0, piece=b"{")
        assert job.path.resolve().parent == tmp_path / "uploads" / job.id
        assert reverse("imports") == IMPORT


def test_ones_own_export_can_be_imported_under_another_id(admin):
    say("billing", "one invoice")

    address, summary = send(admin, b"".join(export("billing")), name="billing.jsonl")
    refused = over(admin, admin.post(IMPORT, {"job": job_of(address), "do": "import"}).url)
    done = over(admin, admin.post(IMPORT, {"job": job_of(address), "do": "import", "key": " billing copy "}).url)

    assert "recorded here" in summary
    assert "required" in summary.partition('name="key"')[2].partition(">")[0]
    assert 'name="update"' not in summary
    assert "<p>The file billing.jsonl was not imported: conversation &#39;billing&#39; already exists" in refused
    assert "--" not in refused.replace("<!--", "")
    assert 'name="key"' in summary
    assert 'name="key"' in refused
    assert "has become" in done
    assert Conversation.objects.get(key="billing copy").messages == 1


def test_a_summary_tells_which_conversations_exist_and_offers_to_add_to_imports(admin):
    address, first = send(admin, CHATS)
    over(admin, admin.post(IMPORT, {"job": job_of(address), "do": "import"}).url)

    _, again = send(admin, CHATS)

    assert "imported before" not in first
    assert 'name="update"' not in first
    assert again.count(">imported before</td>") == 2
    assert 'name="update" value="1" checked' in again


def test_an_id_that_cannot_be_is_refused(admin):
    address, _ = send(admin, CHATS)

    refused = over(admin, admin.post(IMPORT, {"job": job_of(address), "do": "import", "key": "a" * 201}).url)

    assert "conversation must be 1 to 200 characters" in refused
    assert not Conversation.objects.exists()
