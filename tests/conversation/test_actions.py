"""Every action: it works, a stranger is refused, who loses a race is told, an event tells
of it, and the audit log has each of these. An action without a row in `tests/support/action_rows.py` fails."""

import importlib
import inspect
import json
from pathlib import Path

import pytest
from django.apps import apps

from conversations.access.audit import chain
from conversations.access.permissions import TABLE, principal_of
from conversations.core.errors import Conflict, NotAllowed, NotFound
from conversations.events.verify_chains import ChainReport
from conversations.models import AuditEntry, Event, Role
from tests.support.action_proofs import ELSEWHERE, WHOLE_MODULES, action_modules
from tests.support.action_rows import ROWS
from tests.support.cast import STRANGER, audit_summary, last_entry, person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]

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
    assert chain.verify() == ChainReport(AuditEntry.objects.count(), ok=True)


def stored_rows():
    """Everything that an action may change but the audit log."""
    models = [model for model in apps.get_app_config("conversations").get_models() if "Audit" not in model.__name__]
    return {model.__name__: list(model._base_manager.order_by("pk").values()) for model in models}


def assert_refused(by, name, deed):
    before, entries = stored_rows(), AuditEntry.objects.count()

    with pytest.raises(NotAllowed):
        deed(by)

    assert audit_summary(last_entry())[:2] == (str(principal_of(by)), verb_of(name))
    assert (last_entry().outcome, AuditEntry.objects.count()) == ("refused", entries + 1)
    assert stored_rows() == before


@pytest.mark.parametrize("name", ROWS)
def test_a_stranger_is_refused_and_nothing_changes(people, name):
    row = ROWS[name]
    deed = row.begin(people)

    for stranger in [user for role, user in people.items() if role not in TABLE[row.right]] + [STRANGER]:
        assert_refused(stranger, name, deed)


@pytest.mark.parametrize("name", ROWS)
def test_who_lost_the_right_meanwhile_is_refused(people, name):
    deed, by = ROWS[name].begin(people), able(people, name)
    assert by.role_names  # held by the object, as a request holds it
    Role.objects.filter(user=by).delete()

    assert_refused(by, name, deed)


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
