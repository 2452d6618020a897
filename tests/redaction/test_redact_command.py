"""What the commands `redact`, `expire` and `hold` refuse: numbers that cannot be, and options that would do nothing."""

import time
import tracemalloc
from contextlib import nullcontext
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from conversations.core import data_dir, write_ahead_log
from conversations.core.principals import SYSTEM, Principal
from conversations.events import log
from conversations.models import Conversation, Event, LegalHold, Redaction
from conversations.redaction import expiry, journal, legal_holds, retention_rules
from conversations.redaction.expiry import RetentionScope
from tests.redaction.test_redact import aged, spoken

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("numbers", ["1-3000000", f"1-{10**40}", "9-3", "0x1", "1-2-3", str(10**40), "³"])
@pytest.mark.parametrize("option", ["", "--audit"])
def test_numbers_that_cannot_be_are_refused_before_they_are_listed(numbers, option):
    tracemalloc.start()
    try:
        with pytest.raises(CommandError, match="must be an event number, or a range of at most"):
            call_command("redact", "talk", *([option] if option else []), numbers, "--reason", "r", "--dry-run")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 20 << 20  # bytes


@pytest.mark.parametrize("days", ["nan", "inf", "-inf", "0", "-1", "1e300", "36501"])
def test_a_number_of_days_that_cannot_be_is_refused(days):
    with pytest.raises(CommandError, match="--days must be a number greater than 0 and at most 36,500"):
        call_command("expire", f"--days={days}", "--reason", "r")


@pytest.mark.django_db(transaction=True)
def test_a_dry_run_of_a_journal_counts_what_it_would_redact_and_changes_nothing(tmp_path, capsys):
    spoken("journal-a", "hedgehog", "wombat")
    before = dict(Event.objects.values_list("pk", "body"))
    call_command("redact", "journal-a", "1", "--reason", "asked for")
    journal.update(tmp_path)
    path = tmp_path / journal.NAME
    Redaction.objects.all().delete()  # as an older copy of the database is
    Event.objects.filter(seq=1).update(body=before[Event.objects.get(seq=1).pk], erased_by=None)
    older = list(Event.objects.order_by("pk").values_list("pk", "body"))

    call_command("redact", "--journal", str(path), "--dry-run")

    assert "1 redaction of this journal would be repeated. Nothing was changed." in capsys.readouterr().out
    assert list(Event.objects.order_by("pk").values_list("pk", "body")) == older
    assert not Redaction.objects.exists()


@pytest.mark.parametrize(
    "beside",
    [["talk"], ["talk", "1"], ["--id"], ["--call", "c"], ["--field", "output"], ["--person", "ida"], ["--word", "w"],
     ["--audit", "1"], ["--reason", "r"]],
)  # fmt: skip
def test_a_journal_is_repeated_whole_so_nothing_else_may_be_named_with_it(beside, tmp_path):
    path = tmp_path / journal.NAME
    path.write_text("")

    with pytest.raises(CommandError, match="--journal cannot be combined with"):
        call_command("redact", *beside, "--journal", str(path))


@pytest.mark.parametrize(
    "options", [["--conversation", "only-this"], ["--team", "Desk"], ["--kind", "token"], ["--reason", "r"]]
)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_what_limits_an_expiry_is_refused_without_days_and_the_rules_do_not_run(options, dry):
    spoken("expire-a", "hedgehog")
    aged("expire-a", 1)
    retention_rules.set_rule(SYSTEM, days=1, reason="a day")

    with pytest.raises(CommandError, match=f"^{options[0]} needs --days$"):
        call_command("expire", *options, *dry)

    assert not Redaction.objects.exists()


@pytest.mark.parametrize("beside", [["hold-b"], ["--regulated"]])
def test_a_release_takes_nothing_that_it_would_ignore(beside):
    Conversation.objects.create(key="hold-a")
    made = legal_holds.place(SYSTEM, "hold-a", "a lawsuit")

    with pytest.raises(CommandError, match="--release cannot be combined with"):
        call_command("hold", *beside, "--release", str(made.pk), "--reason", "over")

    assert list(legal_holds.in_force()) == [LegalHold.objects.get()]


@pytest.mark.parametrize("option", [["--regulated"], ["--reason", "a lawsuit"]])
def test_what_describes_a_hold_is_refused_where_holds_are_listed(option):
    with pytest.raises(CommandError, match=f"^{option[0]} needs CONVERSATION"):
        call_command("hold", *option)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_conversation_and_a_word_at_once_are_refused(dry_run):
    with pytest.raises(CommandError, match="choose one: events of a conversation or words"):
        call_command("redact", "talk", "1", "--word", "quokka", "--reason", "r", dry_run=dry_run)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("named", ["--person", "--word"])
def test_a_redaction_about_a_person_whom_nothing_names_does_not_look_done(named, capsys):
    spoken("talk", "hedgehog")

    with pytest.raises(CommandError, match=r"^nothing was redacted: .* names nobodyhere, or"):
        call_command("redact", named, "nobodyhere", "--reason", "Article 17")
    call_command("redact", named, "nobodyhere", "--dry-run")

    assert "No event or audit entry names nobodyhere, or" in capsys.readouterr().out
    assert not Redaction.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_ids_that_name_a_person_are_listed_when_the_rest_is_redacted(capsys):
    log.append([log.from_internal("mail-quokka", {"event": "operator.note", "text": "x"}, Principal("user", "quokka"))])

    call_command("redact", "--person", "quokka", "--reason", "Article 17")

    assert "mail-quokka: the id of this conversation has it, too: redact it with --id\n" in capsys.readouterr().out


@pytest.mark.django_db(transaction=True)
def test_a_person_is_named_with_or_without_user(capsys):
    for name in ("quokka", "wombat"):
        by = Principal("user", name)
        log.append([log.from_internal("talk", {"event": "operator.note", "text": name}, by)])
        call_command("redact", "--person", str(by) if name == "quokka" else name, "--reason", "Article 17")

        assert "Redacted 1 event of talk.\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (["--conversation", "nosuch"], "there is no conversation 'nosuch'"),
        (["--team", "nosuch"], "no agent of the team nosuch"),
    ],
)
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_an_expiry_of_what_is_not_there_is_refused(option, why, dry):
    with pytest.raises(CommandError, match=why):
        call_command("expire", "--days", "30", "--reason", "r", *option, *dry)


def test_an_expiry_of_an_unknown_event_type_says_so(capsys):
    spoken("talk", "hedgehog")

    call_command("expire", "--days", "30", "--reason", "r", "--kind", "mesage", "--kind", "message", "--dry-run")

    assert capsys.readouterr().err == "mesage is no known event type\n"


@pytest.mark.slow
@pytest.mark.sqlite("its write-ahead log")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_served", [False, True])
def test_an_expiry_empties_the_write_ahead_log_unless_a_server_does(is_served, tmp_path, settings, monkeypatch):
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(write_ahead_log, "MAX_SIZE", 300_000)  # bytes
    for key in ("expire-a", "expire-b", "expire-c"):
        spoken(key, *(f"hedgehog {number} " * 200 for number in range(60)))
        aged(key, *range(1, 61))
    log_file = Path(f"{connection.settings_dict['NAME']}-wal")

    with data_dir.hold(tmp_path) if is_served else nullcontext():
        expiry.expire(SYSTEM, RetentionScope(time.time_ns() // 1000 - 86_400_000_000), "a day", lambda *_: None)

    assert (log_file.stat().st_size < 3_000_000) is not is_served
