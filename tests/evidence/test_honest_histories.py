"""No honest history is called changed: imports, forks, redactions, holds, restores and the rest, in any order."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from hypothesis import Phase, example, given, seed, settings
from hypothesis import strategies as st

from conversations.access.accounts import people
from conversations.backup import archive, make_backup, portable_rows, restore
from conversations.conversation import fork as forks
from conversations.core.errors import Conflict, NotAllowed
from conversations.core.principals import SYSTEM, import_principal, token_principal, user_principal
from conversations.core.write_transaction import write_transaction
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import Conversation, Event, User
from conversations.redaction import audit_entries, erase_id, expiry, legal_holds, retention_rules
from conversations.redaction.redact import redact as redact_events
from conversations.redaction.requests import decline
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from tests.evidence.signed_place import KEYS, build, request_redaction, say
from tests.support.tiers import rounds

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path):
    return build(tmp_path)


def an_import(at, key, keys, number):
    path = at.folder / "export.jsonl"
    path.write_bytes(b"".join(export(key)))
    trouble, staged = ImportReport([].append, is_strict=True), StagedImport(import_principal("test"))
    new = f"imported-{len(keys)}-{number}"
    import_recordings(recordings(path, trouble), staged, trouble, key=new, progress=lambda *_: None)


def a_restore(at, key, keys, number):
    """Back the record up, lose it, and fill the empty tables from the backup, as `restore` does."""
    file = make_backup.make(at.folder / "record.backup", SYSTEM, at.signer, lambda *_: None).path
    empty_tables()
    with archive.opened(file) as backup:
        with write_transaction():
            for part in backup.manifest["parts"]:
                restore._fill(backup, part, lambda *_: None)
        restore._reset_sequences()
        restore._require_intact()
        restore._begin_epoch(backup)


def a_fork(at, key, keys, number):
    head = Conversation.objects.get(key=key).head_seq
    forks.fork(User.objects.get(username="ida"), key, 1 + number % head)


def a_redaction(at, key, keys, number):
    head = Conversation.objects.get(key=key).head_seq
    redact_events(SYSTEM, key, [1 + number % head], "asked for")


def a_rule(at, key, keys, number):
    there = list(retention_rules.rules())
    if number % 2 and there:
        retention_rules.remove_rule(SYSTEM, there[-1].pk)
    else:
        retention_rules.set_rule(
            SYSTEM, days=1 + number, kind=("log", "output", "message")[number % 3], reason="so long"
        )


def an_expiry(at, key, keys, number):
    older_than = Event.objects.order_by("at").values_list("at", flat=True)[number % Event.objects.count()]
    expiry.expire(
        SYSTEM,
        expiry.RetentionScope(older_than + 1, conversation=key if number % 2 else ""),
        "old",
        lambda *_: 0,
    )


def a_hold(at, key, keys, number):
    there = list(legal_holds.in_force().filter(is_regulated=False))
    if number % 2 and there:
        legal_holds.release(SYSTEM, there[-1].pk, "it is over")
    else:
        legal_holds.place(SYSTEM, key, "a lawsuit", is_regulated=number % 5 == 0)


def an_erasure(at, key, keys, number):
    seqs = list(audit_entries.erasable().exclude(target="conversation:beta").values_list("seq", flat=True))
    if seqs:
        audit_entries.erase(SYSTEM, seqs[:: 1 + number % 3], "asked for")


def an_erased_id(at, key, keys, number):
    erase_id.erase_id(SYSTEM, key, "asked for")


def a_request(at, key, keys, number):
    made = request_redaction(user_principal("ida"))
    if number % 2:
        decline(User.objects.get(username="otto"), made, "no")


def sayings(at, key, keys, number):
    say(key, f"said {number}", SYSTEM if number % 3 else token_principal("robot"), run_id="r1", turn=number % 5)


def a_person(at, key, keys, number):
    people.set_roles(SYSTEM, "otto", [("viewer",), ("operator", "viewer"), ("admin",)][number % 3])


def a_policy(at, key, keys, number):
    edit_policy.set_policy(SYSTEM, PolicyRule("", f"tool{number % 3}", ("ask", "deny")[number % 2]))


THINGS = {
    "say": sayings,
    "new": lambda at, key, keys, number: say(f"new-{len(keys)}", "first"),
    "redact": a_redaction,
    "fork": a_fork,
    "import": an_import,
    "policy": a_policy,
    "person": a_person,
    "rule": a_rule,
    "expire": an_expiry,
    "hold": a_hold,
    "erase": an_erasure,
    "erase an id": an_erased_id,
    "request": a_request,
    "restore": a_restore,
    "sign": lambda at, key, keys, number: at.sign(),
}
REFUSED = (Conflict, NotAllowed)  # a hold is in force, it is redacted already, otto is no admin


def empty_tables():
    """Take every row of the record out."""
    tables = [table.name for table in portable_rows.tables()]
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {','.join(tables)} RESTART IDENTITY CASCADE")
            return
        for table in tables:
            cursor.execute(f'DELETE FROM "{table}"')


def live_through(things):
    """Let honest things happen to a record; it has no faults, neither before it is signed nor after."""
    call_command("flush", verbosity=0, interactive=False, inhibit_post_migrate=True)
    with tempfile.TemporaryDirectory() as folder:
        place = build(Path(folder))
        for what, number in things:
            keys = list(Conversation.objects.visible().order_by("pk").values_list("key", flat=True))
            with suppress(*REFUSED):
                THINGS[what](place, keys[number % len(keys)], keys, number)
        assert place.faults() == []
        place.sign()
        assert place.faults() == []


@pytest.mark.parametrize("what", THINGS)
def test_each_honest_thing_is_done_and_is_no_fault(place, what):
    keys = ["alpha", *KEYS]

    THINGS[what](place, "alpha", keys, 0)

    assert place.faults() == []


HISTORIES = st.lists(st.tuples(st.sampled_from(list(THINGS)), st.integers(0, 40)), min_size=1, max_size=10)


@pytest.mark.slow
@settings(max_examples=rounds(3, 40), deadline=None, derandomize=True)
@example([("new", 19), ("redact", 27), ("fork", 15), ("erase an id", 33)])
@given(HISTORIES)
def test_no_honest_history_is_called_changed(things):
    live_through(things)


PARTS = int(os.environ.get("SWITCHBOARD_HISTORIES", "10000")) // 50


@pytest.mark.faults
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(PARTS))
def test_none_of_10_000_honest_histories_is_called_changed(part):
    @seed(part)
    @settings(max_examples=50, deadline=None, phases=[Phase.generate], database=None)
    @given(HISTORIES)
    def histories(things):
        live_through(things)

    histories()
