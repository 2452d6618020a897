"""A conversation's id that is erased is in no table and no file, what was said stays, and the record stays intact."""

import json
import shutil
import zipfile
from types import SimpleNamespace

import pytest
from django.db import connection

from conversations.access.accounts import edit_grants, people, tokens
from conversations.access.audit import chain
from conversations.alerts.kinds import group_of
from conversations.backup import archive, make_backup, restore
from conversations.conversation.fork import fork
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM, import_principal, token_principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import hash_chain
from conversations.events.log.rebuild import rebuild
from conversations.evidence import bundle, checkpoints
from conversations.evidence.checkpoints import Signer
from conversations.evidence.verify_record import RecordCheck, Settings
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import (
    Alarm,
    AlertDelivery,
    AlertRule,
    AuditEntry,
    BudgetRaise,
    Conversation,
    Event,
    Meta,
    Quarantine,
    SavedView,
    SessionItem,
    User,
)
from conversations.redaction import erase_id, journal, legal_holds, requests, retention_rules, scope
from conversations.redaction.erase_id import ErasedId
from conversations.redaction.redact import redact
from conversations.redaction.scope import RedactionScope
from conversations.runs.budgets import edit_budgets
from tests.events.test_log import message_event
from tests.evidence.test_bundle import verified
from tests.evidence.test_honest_histories import empty_tables
from tests.redaction.test_redact import copy_of, everywhere, index
from tests.support import teamwork
from tests.support.cast import last_entry
from tests.support.live import Server, until
from tests.support.redacted import stored_files, to_format_1
from tests.support.searching import search_all
from tests.support.unchecked import unchecked

ID = "alice@example.com"
FORMS = (ID, "alice%40example.com")


def say(key, text, principal=SYSTEM, **fields):
    envelope = {"type": "message", "sender": "agent:A", "recipient": f"chat:{key}", "content": text, "id": new_id()}
    log.append([unchecked(key, envelope | fields, principal, topic=f"chat:{key}", bus_id=new_id())])


@pytest.fixture
def ida():
    """An admin whose rights the audit log knows."""
    people.create_person(SYSTEM, "ida", ["admin"])
    return User.objects.get(username="ida")


def filled(admin):
    """Have the id in every place that a record has for one; return the fork."""
    say(ID, "quokka"), say(ID, f"Write to {ID}.", token_principal("robot")), say(ID, "wombat")
    (
        say("other", "numbat"),
        say("other", f"I know {ID}."),
        say("other", "as a value", token_principal("robot"), parent=ID),
    )
    redact(admin, ID, [3], "asked for")
    made = fork(admin, ID, 2).conversation
    legal_holds.release(admin, legal_holds.place(admin, ID, "a lawsuit").pk, "over")
    retention_rules.set_rule(admin, days=900, conversation=ID, reason="so long")
    SessionItem.objects.create(conversation=ID, seq=1, at=1, payload='{"content": "kept"}')
    SessionItem.objects.create(conversation=ID, seq=2, at=1, payload=json.dumps({"content": f"dear {ID}"}))
    BudgetRaise.objects.create(approval="a", budget="b", place=ID, amount=1, at=1)
    SavedView.objects.create(name="Hers", query="conversation=alice%40example.com", made_by="user:ida")
    Meta.objects.create(name="verification", value=json.dumps({"words": f"conversation {ID!r}"}))
    Quarantine.objects.create(
        source=f"chat:{ID}", entry="1-1", at=1, reason="bad", raw=ID.encode(), size=9, digest="d", conversation=ID
    )
    rule = AlertRule.objects.create(name="r", kind="run_failed", form="post", since=0, updated_by="x", updated_at=0)
    group = group_of("conversation", SimpleNamespace(cause="it failed", conversation=ID, agent=""))
    of = {"rule": rule, "kind": "run_failed", "opened_at": 1, "last_at": 1}
    alarm = Alarm.objects.create(group=group, cause="it failed", conversation=ID, detail=f"of {ID}", **of)
    url = {"url": "https://x/conversations/alice@example.com/"}
    AlertDelivery.objects.create(
        id="d",
        rule=rule,
        alarm=alarm,
        subject=f"{ID} failed",
        body=json.dumps(url),
        tries_left=1,
        due_at=1,
        created_at=1,
    )
    with write_transaction():
        chain.add_entry(SYSTEM, "pause", f"conversation:{ID}", reason=f"{ID} asked", correlation={"conversation": ID})
    index()
    return made


def faults(folder, signer):
    check = RecordCheck(Settings(folder, signer.path))
    return [part().why for part in (check.audit, check.events, check.tree, check.state)]


def held():
    """Return the tables that have the id, in any form."""
    return sorted({table for form in FORMS for table in everywhere(form)})


@pytest.mark.django_db(transaction=True)
def test_an_erased_id_is_in_no_table_and_what_was_said_stays(ida, tmp_path):
    signer = Signer(tmp_path / "keys" / "k.json", "example.com/ids")
    copy = filled(ida)
    checkpoints.make(signer)
    digest = Conversation.objects.get(key=ID).key_digest
    new = f"erased-{digest[:16]}"

    erase_id.erase_id(ida, ID, "Article 17")

    assert held() == ["conversations_event"]
    left = Event.objects.get(body__contains=ID)
    assert (left.conversation.key, left.seq) == ("other", 2), "what others say is redacted with everything about her"
    bodies = [json.loads(event.body) for event in Event.objects.filter(conversation__key=new).order_by("seq")[:3]]
    assert [body["content"] for body in bodies] == ["quokka", f"Write to {new}.", ""]
    assert {body["conversation_id"] for body in bodies} == {new}
    assert json.loads(Event.objects.get(conversation__key="other", seq=3).body)["parent"] == new
    assert Conversation.objects.get(key=copy).parent.key == new
    assert list(SessionItem.objects.values_list("conversation", "payload")) == [(new, '{"content": "kept"}')]
    assert Alarm.objects.get().group == group_of(
        "conversation", SimpleNamespace(cause="it failed", conversation=new, agent="")
    )
    assert AuditEntry.objects.filter(target=f"conversation:{new}").count() >= 5
    assert {key for key, _ in search_all("quokka")} == {new, copy}
    assert faults(tmp_path, signer) == [""] * 4
    before = list(Conversation.objects.order_by("pk").values())
    list(rebuild())
    assert list(Conversation.objects.order_by("pk").values()) == before
    say(new, "later")
    checkpoints.make(signer)
    assert faults(tmp_path, signer) == [""] * 4


@pytest.mark.django_db(transaction=True)
def test_bundle_and_export_are_whole_before_and_after(ida, tmp_path):
    signer = Signer(tmp_path / "keys" / "k.json", "example.com/ids")
    filled(ida)
    checkpoints.make(signer)
    keys = [ID]
    for name in ("before", "after"):
        with bundle.write(signer, keys) as made:
            zipfile.ZipFile(made).extractall(tmp_path / name)
        assert verified(tmp_path / name)[0] == 0, verified(tmp_path / name)[1]
        (tmp_path / "x.jsonl").write_bytes(b"".join(export(keys[0])))
        problems = []
        (count,) = [
            len(list(recording.steps)) for recording in recordings(tmp_path / "x.jsonl", ImportReport(problems.append))
        ]
        assert (problems, count) == ([], Conversation.objects.get(key=keys[0]).head_seq)
        keys = [done.conversation for done in erase_id.erase_id(ida, ID, "asked for")][:1] if name == "before" else keys

    assert not any(ID.encode() in path.read_bytes() for path in (tmp_path / "after").rglob("*") if path.is_file())


@pytest.mark.django_db(transaction=True)
def test_an_older_copy_loses_the_id_again(ida, tmp_path):
    signer = Signer(tmp_path / "keys" / "k.json", "example.com/ids")
    filled(ida)
    file = make_backup.make(tmp_path / "record.backup", SYSTEM, signer, lambda *_: None).path
    erase_id.erase_id(ida, ID, "asked for")
    journal.update(tmp_path)
    assert ID.encode() not in (tmp_path / journal.NAME).read_bytes()
    empty_tables()
    with archive.opened(file) as backup, write_transaction():
        for part in backup.manifest["parts"]:
            restore._fill(backup, part, lambda *_: None)
    restore._reset_sequences()
    assert len(held()) > 5
    index()

    again = journal.apply(tmp_path / journal.NAME)

    assert (again > 3, held(), journal.apply(tmp_path / journal.NAME)) == (True, ["conversations_event"], 0)
    assert not Event.objects.filter(body__contains=ID).exclude(conversation__key="other")
    check = RecordCheck(Settings())
    assert [part().why for part in (check.audit, check.events, check.state)] == [""] * 3


@pytest.mark.django_db(transaction=True)
def test_who_may_not_and_what_stands_in_the_way_is_refused(team):
    say(ID, "quokka"), say("old", "quokka"), say("busy", "quokka")
    to_format_1("old", 0)
    for role in ("operator", "approver", "auditor", "viewer"):
        with pytest.raises(NotAllowed):
            erase_id.erase_id(team[role], ID, "asked for")
    assert (last_entry().verb, last_entry().outcome) == ("erase_id", "refused")
    for reason in ("", f"{ID} asked"):
        with pytest.raises(Invalid):
            erase_id.erase_id(team["admin"], ID, reason)
    with pytest.raises(Conflict, match="part of its hash chain"):
        erase_id.erase_id(team["admin"], "old", "asked for")
    hold = legal_holds.place(team["admin"], ID, "a lawsuit")
    with pytest.raises(Conflict, match="legal hold"):
        erase_id.erase_id(team["admin"], ID, "asked for")
    assert "legal hold" in scope.preview(RedactionScope(ID, is_id=True))[0].blocked
    legal_holds.release(team["admin"], hold.pk, "over")
    legal_holds.place(team["admin"], "busy", "a law", is_regulated=True)
    with pytest.raises(Conflict, match="regulated"):
        erase_id.erase_id(team["admin"], "busy", "asked for")
    assert everywhere(f'"conversation_id": "{ID}"') == ["conversations_event"]

    (done,) = erase_id.erase_id(team["admin"], ID, "asked for")

    assert (last_entry().verb, last_entry().outcome, last_entry().target) == (
        "erase_id", "done", f"conversation:{done.conversation}"
    )  # fmt: skip
    with pytest.raises(Conflict, match="already erased"):
        erase_id.erase_id(team["admin"], done.conversation, "once more")
    with pytest.raises(NotFound):
        erase_id.erase_id(team["admin"], ID, "once more")


@pytest.mark.django_db(transaction=True)
def test_a_run_at_work_keeps_the_id(team):
    teamwork.team()
    teamwork.say(team["operator"])
    teamwork.claim()

    with pytest.raises(Conflict, match="active in conversation"):
        erase_id.erase_id(team["admin"], "flood", "asked for")


@pytest.mark.django_db(transaction=True)
def test_where_two_people_are_needed_a_second_one_erases_it(ida, settings):
    people.create_person(SYSTEM, "bess", ["admin"])
    settings.CONFIG = settings.CONFIG.model_copy(update={"redaction_four_eyes": True})
    say(ID, "quokka")

    asked_for = requests.submit(ida, RedactionScope(ID, is_id=True), "asked for").request
    with pytest.raises(NotAllowed):
        requests.confirm(ida, asked_for.pk)
    requests.confirm(User.objects.get(username="bess"), asked_for.pk)

    assert held() == []
    check = RecordCheck(Settings())
    assert [part().why for part in (check.audit, check.events, check.state)] == [""] * 3


@pytest.mark.django_db(transaction=True)
def test_everything_about_a_person_offers_ids_that_have_the_name(team):
    say(ID, "quokka"), say("Alice 7", "quokka"), say("bob", "quokka")

    assert scope.preview_ids(RedactionScope(person="alice")) == [ID, "Alice 7"]
    assert scope.preview_ids(RedactionScope(words=["bob", "quokka"])) == ["bob"]
    assert scope.preview_ids(RedactionScope(ID, [1])) == []


@pytest.mark.django_db(transaction=True)
def test_a_redacted_title_is_nowhere(team):
    log.append([log.from_internal("t", {"event": "conversation.opened", "title": "Hedgehog-4711"}, SYSTEM)])
    say("t", "quokka")
    copy = fork(team["admin"], "t", 2).conversation
    index()
    assert "conversations_conversation" in everywhere("Hedgehog-4711")

    redact(team["admin"], "t", [1], "asked for")

    assert everywhere("Hedgehog-4711") == []
    assert (
        set(Conversation.objects.filter(key__in=("t", copy)).values_list("title", flat=True)) & {"Hedgehog-4711"}
        == set()
    )


@pytest.mark.django_db(transaction=True)
def test_rights_of_people_and_agents_of_the_same_name_stay(ida):
    people.create_person(SYSTEM, "alice", ["viewer"])
    tokens.make_token(SYSTEM, "robot", "agent", agent="alice")
    edit_grants.give_grant(SYSTEM, "alice", "speak_as", "agent:alice")
    edit_budgets.set_budget(SYSTEM, scope="agent", measure="calls", amount="9", agent="alice")
    say("alice", "quokka")
    legal_holds.release(ida, legal_holds.place(ida, "alice", "a lawsuit").pk, "over")

    erase_id.erase_id(ida, "alice", "asked for")

    check = RecordCheck(Settings())
    assert [part().why for part in (check.audit, check.events, check.state)] == [""] * 3
    assert AuditEntry.objects.filter(correlation__contains="conversation:alice").count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_hostile_id_is_erased(team):
    for key in ('"quoted"\\', "Zürich/4 %", "أمل", "x" * 200):
        say(key, f"for {key} alone")
        new = erase_id.erase_id(team["admin"], key, "asked for")[0].conversation
        assert new == hash_chain.erased_key(Conversation.objects.get(key=new).key_digest)
        assert not any(form in body for form in ErasedId(key, "")._forms for body in texts())


def texts():
    with connection.cursor() as cursor:
        cursor.execute("SELECT body FROM conversations_event")
        return [body for (body,) in cursor.fetchall()]


@pytest.mark.slow
@pytest.mark.crash
def test_an_erased_id_is_in_no_file_nor_in_a_later_backup_nor_in_an_older_copy_that_is_started(tmp_path):
    server, older = Server(tmp_path / "data"), Server(tmp_path / "older")
    server.start()
    secret = server.token()
    say = {"type": "message", "conversation_id": ID, "sender": "agent:A", "recipient": f"chat:{ID}"}
    for n in range(30):
        assert (
            server.publish(secret, f"chat:{ID}", say | {"content": f"quokka {n} {ID} {'more ' * 40}"}, f"p{n}")[0]
            == 201
        )
    until(lambda: server.request("GET", "/api/v1/search?q=quokka", token=secret)[1].get("items"), what="the index")
    for page in ("", "?view=lanes", "?view=timeline"):
        server.request("GET", f"/conversations/{ID}/{page}", token=secret)
    what = {"conversation_id": ID, "erase_id": True, "reason": "Article 17"}
    shown = server.request("POST", "/api/v1/redactions/preview", json.dumps(what).encode(), secret)[1]
    copy_of(server, older)
    assert is_in(server)
    assert is_in(older)

    code, done = server.request("POST", "/api/v1/redactions", json.dumps(what).encode(), secret)

    assert (code, shown["items"][0]["kinds"]) == (201, {"message": 30})
    new = done["redacted"][0]["conversation_id"]
    until(lambda: not is_in(server), within=60, what="the id to be gone from every file")
    assert server.request("GET", f"/api/v1/conversations/{ID}", token=secret)[0] == 404
    page = server.request("GET", f"/api/v1/conversations/{new}/events?limit=100", token=secret)[1]
    assert "quokka 29" in json.dumps(page)
    assert ID not in json.dumps(page)
    server.command("backup", str(server.data_dir / "later.backup"))
    server.terminate()
    assert not is_in(server)
    shutil.copy2(server.data_dir / "redactions.jsonl", older.data_dir)
    older.start()
    until(lambda: not is_in(older), within=60, what="the id to be gone from the older copy")
    older.terminate()
    for place in (server, older):
        assert "events are intact" in place.command("verify")


def is_in(server):
    """Return whether a file of a data directory has the id, a backup among them, which is compressed."""
    forms = [form.encode() for form in FORMS]
    texts = [*stored_files(server.data_dir), *backed_up(server.data_dir)]
    return any(form in text for text in texts for form in forms)


def backed_up(folder):
    for path in folder.glob("*.backup"):
        with archive.opened(path) as backup:
            for part in backup.manifest["parts"]:
                with backup.lines(part) as lines:
                    yield from lines


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_taken", [False, True])
def test_an_update_that_was_on_its_way_does_not_bring_an_erased_id_back(team, is_taken):
    def lines(*texts, update):
        yield {"conversation": ID, "update": update}
        for text in texts:
            message = {"type": "message", "id": text, "sender": "user", "recipient": "agent:A", "content": text}
            yield {"payload": {**message, "conversation_id": ID}}
        yield {"end": 1}

    first, update = (StagedImport(import_principal("file")) for _ in range(2))
    first.receive([json.dumps(line).encode() for line in lines("one", update=False)])
    first.finish()
    update.receive([json.dumps(line).encode() for line in lines("one", "two", update=True)])
    erase_id.erase_id(team["admin"], ID, "asked for by the person")
    if is_taken:
        log.append([message_event(ID, "hello")])

    with pytest.raises(Conflict, match="no longer exists: its id was erased"):
        update.finish()

    assert Event.objects.filter(conversation__key=ID).count() == is_taken
