"""A database with data from before the newest migrations is brought up to date, and tells the same as one made anew."""

import itertools

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from conversations.access.accounts import people, tokens
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.evidence import checkpoints
from conversations.evidence.checkpoints import Signer
from conversations.evidence.verify_record import RecordCheck, Settings
from conversations.models import Approval, AuditEntry, Conversation, ModelUsage, Participant, Run, Turn
from conversations.search import index_writer
from tests.events.test_projections import WHO, rows, told_once
from tests.events.test_rebuild import ASKED
from tests.support.auditlog import in_format_1
from tests.support.cast import cast, client_of
from tests.support.event_types import EXAMPLES
from tests.support.redacted import to_format_1
from tests.support.tiers import variants
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)

BEFORE = "0009_alerts"  # the newest migration of the release before
SPENT = ("turns", "input_tokens", "output_tokens", "calls")


@pytest.fixture
def up_to_date():
    """Bring the schema up to date again, whatever became of the test."""
    yield
    call_command("migrate", verbosity=0)


KINDS_WITH_NEW_TABLES = ("event.annotated",)  # this release made the tables that they are folded into


def fill():
    """Store events of every kind that the release before knew, as several principals say them, some in the index of
    titles."""
    everything = list(
        itertools.chain.from_iterable(
            payloads for kind, payloads in EXAMPLES.items() if kind not in KINDS_WITH_NEW_TABLES
        )
    )
    for key, who in zip(("c0", "c1", "c2", "c3"), WHO, strict=True):
        log.append([unchecked(key, told_once(payload, key), who) for payload in everything])
    log.append([unchecked("asked", {"agent": "agent:A", "run_id": "run-a", **payload}, WHO[0]) for payload in ASKED])
    for key in Conversation.objects.values_list("key", flat=True):
        to_format_1(key, 0)
    index_writer.store(index_writer.read(0, 512))


def spent():
    """Return what each agent has spent with each model, as the list and the panels add it up."""
    sums = ModelUsage.objects.order_by("conversation_id", "agent", "model", "is_demo")
    return list(sums.values_list("conversation_id", "agent", "model", "is_demo", *SPENT))


def schema():
    """Return the columns and the indexes of every table."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        return {
            table: (
                sorted(column.name for column in connection.introspection.get_table_description(cursor, table)),
                sorted(connection.introspection.get_constraints(cursor, table)),
            )
            for table in tables
            if table.startswith("conversations_") and not table.startswith("conversations_search_")
        }


def go_back(before=BEFORE):
    """Have the schema of a release before, with all that it has a place for."""
    MigrationExecutor(connection).migrate([("conversations", before)])
    with connection.cursor() as cursor:
        tables = (Run._meta.db_table, AuditEntry._meta.db_table)
        described = [connection.introspection.get_table_description(cursor, table) for table in tables]
    columns = {column.name for table in described for column in table}
    assert "digest" not in columns
    assert before > BEFORE or "at_next_step" not in columns


@pytest.mark.slow
def test_a_database_with_data_is_brought_up_to_date(up_to_date):
    team = cast()
    fill()
    history = list(log.page_before("c1", 10**6).events)
    whole, sums, layout = rows(), spent(), schema()
    assert all(model.objects.exists() for model in (Run, Approval, Turn, Participant, ModelUsage))
    go_back()

    call_command("migrate", verbosity=0)

    assert list(log.page_before("c1", 10**6).events) == history
    assert names(schema()) == names(layout)
    assert counted(spent()) == counted(sums)
    for address in ("/", "/conversations/c1/", "/calls/", "/approvals/", "/agents/"):
        assert client_of(team["admin"]).get(address).status_code == 200
    list(rebuild())
    assert rows() == whole
    assert spent() == sums


def counted(sums):
    """Leave out turns that told no tokens: what kept the sums before knew nothing of them; a rebuild finds them."""
    return [row for row in sums if any(row[5:])]


def names(layout):
    """Leave out the names of constraints that Django numbers as it makes them."""
    return {table: columns for table, (columns, _) in layout.items()}


@pytest.mark.slow
@pytest.mark.parametrize("before", variants(["0014_visits", "0009_alerts", "0019_agents_elsewhere"]))
def test_an_older_record_goes_on_where_it_was_is_whole_and_is_signed_from_then_on(up_to_date, tmp_path, before):
    for role in ("admin", "viewer"):
        people.create_person(SYSTEM, role, [role])
    tokens.make_token(SYSTEM, "robot", "agent")
    fill()
    in_format_1(upto=AuditEntry.objects.count())
    heads = dict(Conversation.objects.values_list("key", "head_seq"))
    go_back(before)

    call_command("migrate", verbosity=0)
    log.append([unchecked("c1", told_once(payload, "c1"), WHO[1]) for payload in EXAMPLES["message"]])
    heads["c1"] += len(EXAMPLES["message"])
    assert dict(Conversation.objects.values_list("key", "head_seq")) == heads
    lengths = [len(table) for table in rows()]
    list(rebuild())
    assert [len(table) for table in rows()] == lengths
    people.set_roles(SYSTEM, "viewer", ["auditor"])
    checkpoints.make(signer := Signer(tmp_path / "keys" / "k.json"))

    assert list(AuditEntry.objects.order_by("seq").values_list("digest", flat=True)).count("") == 3
    check = RecordCheck(Settings(tmp_path, signer.path))
    assert [part().why for part in (check.audit, check.events, check.tree, check.state)] == [""] * 4
