"""Every action: it works, a stranger is refused, who loses a race is told, an event tells
of it, and the audit log has each of these. An action without a row in `tests/support/action_rows.py` fails."""

import importlib
import inspect
import json
from pathlib import Path

import pytest

from conversations.access.permissions import TABLE, principal_of
from conversations.core.errors import Conflict, NotAllowed, NotFound
from conversations.models import AuditEntry, Event
from tests.support import teamwork
from tests.support.action_proofs import ELSEWHERE, WHOLE_MODULES, action_modules
from tests.support.action_rows import ROWS
from tests.support.cast import STRANGER, audit_summary, cast, last_entry, person

pytestmark = pytest.mark.django_db

TESTS = Path(__file__).resolve().parents[1]
RACES = [name for name, row in ROWS.items() if not row.late.startswith("- ")]


def public():
    """Every action, and every other public function of `WHOLE_MODULES`, by `module.function`."""
    for path in sorted({*WHOLE_MODULES, *action_modules()}):
        module = importlib.import_module(f"conversations.{path}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            is_public = function.__module__ == module.__name__ and not name.startswith("_")
            if is_public and (path in WHOLE_MODULES or is_a_persons(function)):
                yield f"{path.rpartition('.')[2]}.{name}", function


def is_a_persons(function):
    return next(iter(inspect.signature(function).parameters), "") == "by"


@pytest.mark.slow
def test_every_action_has_its_row():
    functions = dict(public())
    actions = {name for name, function in functions.items() if is_a_persons(function)}
    proved = {name for name, where in ELSEWHERE.items() if not where.startswith("- ")}

    missing = actions - set(ROWS) - proved
    assert not missing, f"add a Row for {sorted(missing)} to ROWS in tests/support/action_rows.py"
    missing = set(functions) - set(ROWS) - set(ELSEWHERE)
    assert not missing, f"name the test of {sorted(missing)} in ELSEWHERE in tests/support/action_proofs.py"
    gone = (set(ROWS) | set(ELSEWHERE)) - set(functions)
    assert not gone, f"remove {sorted(gone)} from action_rows.py or action_proofs.py: there is no such function"
    assert not set(ROWS) & set(ELSEWHERE)
    assert set(ROWS) <= actions


@pytest.mark.parametrize("where", sorted({where for where in ELSEWHERE.values() if not where.startswith("- ")}))
def test_what_is_proved_elsewhere_is_proved_there(where):
    file, _, name = where.partition("::")

    assert any(f"def {name}(" in path.read_text() for path in TESTS.rglob(file))


@pytest.fixture
def people():
    teamwork.team()
    return cast()


def verb_of(name):
    return ROWS[name].verb or name.partition(".")[2]


def able(people, name):
    """Who may, the one with the least rights first; an admin comes second."""
    return next(people[role] for role in ("operator", "approver", "admin") if role in TABLE[ROWS[name].right])


@pytest.mark.each_form
@pytest.mark.parametrize("name", ROWS)
def test_it_works_and_is_told_and_audited(people, name):
    row, by = ROWS[name], able(people, name)
    deed = row.begin(people)
    heads = set(Event.objects.values_list("id", flat=True))
    entries = AuditEntry.objects.count()

    deed(by)

    payload = {
        event.kind: (event.principal, json.loads(event.body).get("by")) for event in Event.objects.exclude(id__in=heads)
    }
    if not row.event.startswith("- "):
        assert str(principal_of(by)) in payload[row.event]
    if row.audit == "done":
        verbs = [verb_of(name), *filter(None, [row.then])]
        done = list(AuditEntry.objects.order_by("seq")[entries:])
        assert [audit_summary(entry)[:2] for entry in done] == [(f"user:{by.username}", verb) for verb in verbs]
        assert {entry.outcome for entry in done} == {"done"}
    else:
        assert AuditEntry.objects.count() == entries


@pytest.mark.parametrize("name", ROWS)
def test_a_stranger_is_refused_and_nothing_changes(people, name):
    row = ROWS[name]
    deed = row.begin(people)
    events, entries = Event.objects.count(), AuditEntry.objects.count()
    strangers = [user for role, user in people.items() if role not in TABLE[row.right]] + [STRANGER]

    for stranger in strangers:
        with pytest.raises(NotAllowed):
            deed(stranger)

        assert (last_entry().verb, last_entry().outcome) == (verb_of(name), "refused")

    assert Event.objects.count() == events
    assert AuditEntry.objects.count() == entries + len(strangers)


@pytest.mark.parametrize("name", RACES)
def test_who_comes_second_is_told_and_changes_nothing(people, name):
    row = ROWS[name]
    deed = row.begin(people)
    deed(able(people, name))
    events, entries = Event.objects.count(), AuditEntry.objects.count()

    with pytest.raises((Conflict, NotFound), match=row.late) as late:
        deed(person("bess", "admin"))

    assert Event.objects.count() == events
    if isinstance(late.value, Conflict):
        assert audit_summary(last_entry())[:2] == ("user:bess", verb_of(name))
        assert (last_entry().outcome, AuditEntry.objects.count()) == ("refused", entries + 1)
