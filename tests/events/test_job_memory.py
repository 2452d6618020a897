"""A job over many large events holds a few of them at a time: its peak of memory is measured."""

from __future__ import annotations

import json
import random

import pytest

from agents_app.memory import fork_memory
from conversations.backup import archive, make_backup, restore
from conversations.conversation import compare, fork
from conversations.conversation.conversation_files import FORMATS, pieces
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.events.log import rebuild
from conversations.evidence import bundle
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import Conversation, User
from conversations.redaction import erase_id, expiry, redact, scope
from conversations.runs.approvals import auto_approval, auto_approval_edit, pending_counts
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from conversations.search import index_writer
from tests.evidence.signed_place import Place, build, say
from tests.evidence.test_honest_histories import empty_tables
from tests.support import teamwork
from tests.support.peaks import peak

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.thorough]

EVENTS, CHARACTERS = 120, 1_000_000
MOST_MIB = 60  # half of all bodies
WORDS = [f"word{number:x}" for number in random.Random(1).sample(range(1 << 20), 2_000)]


def text(number: int) -> str:
    dice = random.Random(number)
    return " ".join(dice.choices(WORDS, k=CHARACTERS // 9))[:CHARACTERS]


@pytest.fixture
def place(tmp_path):
    """A signed record with a conversation of large events."""
    made = build(tmp_path)
    for number in range(EVENTS):
        say("large", text(number))
    made.sign()
    return made


def drain(steps) -> int:
    return sum(1 for _ in steps)


def nothing(*_: object) -> None:
    """Show no progress."""


def back_up(place: Place) -> None:
    make_backup.make(place.folder / "record.backup", SYSTEM, place.signer, nothing)


def restore_rows(place: Place) -> None:
    with archive.opened(place.folder / "record.backup") as backup, write_transaction():  # checks the keys at its end
        for part in backup.manifest["parts"]:
            restore._fill(backup, part, nothing)


def index(place: Place) -> None:
    after = 0
    while (batch := index_writer.read(after, 10_000)).rows or batch.last:
        index_writer.store(batch)
        after = batch.last


def import_file(place: Place) -> None:
    path = place.folder / "export.jsonl"
    trouble, staged = ImportReport([].append, is_strict=True), StagedImport(SYSTEM)
    import_recordings(recordings(path, trouble), staged, trouble, key="again", progress=nothing)


def fork_whole(place: Place) -> None:
    fork.fork(User.objects.get(username="ida"), "large", EVENTS)


def redact_all(place: Place) -> None:
    redact.redact(SYSTEM, "large", range(1, EVENTS + 1), "asked for")


def compare_with_fork(place: Place) -> None:
    forked = Conversation.objects.exclude(parent=None).get()
    compare.compare(compare.side_of("large"), compare.side_of(forked.key))


def fork_of_words(place: Place) -> None:
    for number in range(EVENTS):
        say("words", "", event="user_message", sender="ida", content=text(number))
    fork.fork(User.objects.get(username="ida"), "words", EVENTS)


def remember(place: Place) -> None:
    forked = Conversation.objects.exclude(parent=None).get()
    assert len(fork_memory.build_fork_memory(forked, 1 << 40, newest=EVENTS)) > 1


def ask_at_length(place: Place) -> None:
    ida, street = User.objects.get(username="ida"), "\N{WATER WAVE}" * 95_000
    teamwork.team()
    edit_policy.set_policy(ida, PolicyRule("", "file_incident", "ask", four_eyes=True))
    scope = AutoApprovalScope(is_exact=False, arguments={"street": "Elm"}, any_agent=True, tool="file_incident")
    auto_approval_edit.make_rule(ida, scope)
    for number in range(EVENTS):
        args = {"street": street}
        teamwork.ask(ida, f"asks-{number}", args=args, args_raw=json.dumps(args, ensure_ascii=False))


JOBS = {
    "back up": (None, back_up),
    "restore": (lambda place: (back_up(place), empty_tables()), restore_rows),
    **{f"download {form}": (None, lambda place, form=form: drain(pieces("large", form))) for form in FORMATS},
    "import": (lambda place: (place.folder / "export.jsonl").write_bytes(b"".join(export("large"))), import_file),
    "bundle": (None, lambda place: bundle.write(place.signer, ["large"]).close()),
    "verify": (None, lambda place: place.faults()),
    "rebuild": (None, lambda place: drain(rebuild.rebuild())),
    "index": (None, index),
    "fork": (None, fork_whole),
    "compare": (fork_whole, compare_with_fork),
    "remember in a fork": (fork_of_words, remember),
    "look for calls to approve": (ask_at_length, lambda place: auto_approval.approve_waiting()),
    "count who may not decide": (ask_at_length, lambda place: pending_counts.pending_counts()),
    "redact": (None, redact_all),
    "preview a person": (None, lambda place: scope.preview(scope.RedactionScope(person="ida", words=("ida",)))),
    "erase the id": (None, lambda place: erase_id.erase_id(SYSTEM, "large", "asked for")),
    "expire": (
        None,
        lambda place: expiry.expire(SYSTEM, expiry.RetentionScope(1 << 60), "old", nothing),
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_a_job_holds_a_few_large_events_at_a_time(place, job):
    prepare, work = JOBS[job]
    if prepare is not None:
        prepare(place)

    with peak() as needed:
        work(place)

    assert needed.mib < MOST_MIB
