"""Words that are redacted are gone from every table and file, and the record says so and stays intact."""

import json
import shutil
import sqlite3
import time
from contextlib import closing

import pytest
from django.db import connection

from conversations.access.audit import chain
from conversations.conversation.fork import fork
from conversations.core import principals
from conversations.core.errors import Conflict, Invalid, NotAllowed
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.events.log import hash_chain
from conversations.events.log.rebuild import rebuild
from conversations.models import Agent, AuditEntry, Conversation, Event, SessionItem
from conversations.redaction import expiry, legal_holds
from conversations.redaction.redact import redact
from conversations.redaction.tombstones import tombstone
from conversations.search import index_writer
from conversations.search.indexer import Indexer
from conversations.telemetry import late_names
from tests.events.test_log import message_event
from tests.support.live import Server, until
from tests.support.redacted import stored_files
from tests.support.tiers import rounds
from tests.support.unchecked import from_text, unchecked
from tests.support.verified import verify_events

SECRET = "Hedgehog-4711"
CONTENTLESS = ("conversations_search", "conversations_caption")  # FTS5's; the tables of their segments can be read
FIELDS = ("seq", "kind", "at", "principal", "run", "turn", "event_id", "digest", "hash")


def spoken(key, *texts):
    for text in texts:
        log.append([message_event(key, text)])


def everywhere(word):
    """Return the tables that hold a word, in any column."""
    texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if not table.startswith("conversations_") or table in CONTENTLESS:
                continue
            cursor.execute(f'SELECT * FROM "{table}"')
            if any(word in str(value) for row in cursor.fetchall() for value in row):
                texts.append(table)
    return texts


def index():
    index_writer.begin()
    indexer = Indexer()
    while index_writer.lag().events:
        indexer.step()


@pytest.mark.django_db(transaction=True)
def test_redacted_words_are_in_no_table_and_the_chains_are_intact(team):
    spoken("redact-a", "hello", f"my name is {SECRET}", "and goodbye")
    log.append([log.from_internal("redact-a", {"event": "conversation.opened", "title": "Named"}, SYSTEM)])
    index()
    SessionItem.objects.create(conversation="redact-a", seq=1, at=1, payload=json.dumps({"content": SECRET}))
    before = list(Event.objects.filter(seq__lte=4).order_by("seq").values(*FIELDS))
    assert {"conversations_event", "conversations_sessionitem"} <= set(everywhere(SECRET))

    done = redact(team["admin"], "redact-a", [2], "asked for by the person")

    index()
    assert everywhere(SECRET) == []
    assert [(redaction.conversation, redaction.seqs) for redaction in done] == [("redact-a", [2])]
    event = Event.objects.get(seq=2)
    assert (event.salt, event.erased_by) == (None, done[0].mark)
    assert json.loads(event.body)["content"] == ""
    assert list(Event.objects.filter(seq__lte=4).order_by("seq").values(*FIELDS)) == before
    assert verify_events().ok
    assert chain.verify().ok
    assert AuditEntry.objects.filter(verb="redact", reason="asked for by the person").count() == 1
    rows = Conversation.objects.values().get()
    list(rebuild())
    assert Conversation.objects.values().get() == rows


@pytest.mark.django_db(transaction=True)
def test_forks_and_forks_of_forks_lose_the_words_too(team):
    spoken("redact-b", "hello", f"my name is {SECRET}", "and goodbye")
    first = fork(team["admin"], "redact-b", 3).conversation
    second = fork(team["admin"], first, 2).conversation
    fork(team["admin"], "redact-b", 1)

    done = redact(team["admin"], "redact-b", [2], "asked for")

    assert [redaction.conversation for redaction in done] == ["redact-b", first, second]
    assert everywhere(SECRET) == []
    assert verify_events().ok


@pytest.mark.django_db(transaction=True)
def test_what_a_fork_itself_repeats_goes_too_its_title_and_the_words_it_changed(team):
    say = {
        "type": "message",
        "sender": "user:ada",
        "recipient": "agent:B",
        "content": f"**{SECRET}** calls {'more ' * 30}",
    }
    log.append([unchecked("redact-h", say)])
    spoken("redact-h", "goodbye")
    fork(team["admin"], "redact-h", 2)
    fork(team["admin"], "redact-h", 1, words="other words")
    assert len(everywhere(SECRET)) > 1

    redact(team["admin"], "redact-h", [1], "asked for")

    assert everywhere(SECRET) == []
    assert everywhere("goodbye")
    assert verify_events().ok
    again = fork(team["admin"], "redact-h", 2).conversation
    redact(team["admin"], again, [2], "asked for")
    assert verify_events().ok


@pytest.mark.django_db(transaction=True)
def test_words_that_are_redacted_while_a_fork_is_copied_are_not_in_it(team, monkeypatch):
    spoken("redact-i", "hello", SECRET)
    take = log.ForkCopy.take
    monkeypatch.setattr(
        log.ForkCopy, "take", lambda copy: (take(copy), redact(team["admin"], "redact-i", [2], "asked for"))
    )

    with pytest.raises(Conflict, match="fork again"):
        fork(team["admin"], "redact-i", 2)

    assert everywhere(SECRET) == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "auditor"])
def test_only_an_admin_redacts_and_holds(team, role):
    spoken("redact-c", SECRET)

    with pytest.raises(NotAllowed):
        redact(team[role], "redact-c", [1], "mine")
    with pytest.raises(NotAllowed):
        legal_holds.place(team[role], "redact-c", "mine")

    assert Event.objects.get(seq=1).salt is not None
    assert AuditEntry.objects.filter(outcome="refused").count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_hold_beats_a_redaction_until_it_is_released_and_a_regulated_one_for_good(team):
    spoken("redact-d", SECRET)
    spoken("redact-e", SECRET)
    hold = legal_holds.place(team["admin"], "redact-d", "a lawsuit")

    with pytest.raises(Conflict, match=r"on legal hold .* a lawsuit"):
        redact(team["admin"], "redact-d", [1], "asked for")
    with pytest.raises(Invalid):
        legal_holds.release(team["admin"], hold.pk, " ")
    legal_holds.release(team["admin"], hold.pk, "it is over")
    with pytest.raises(Conflict, match="already released"):
        legal_holds.release(team["admin"], hold.pk, "it is over")
    redact(team["admin"], "redact-d", [1], "asked for")
    every = legal_holds.place(team["admin"], "*", "SEC 17a-4", is_regulated=True)
    with pytest.raises(Conflict, match="every conversation is of class regulated"):
        redact(team["admin"], "redact-e", [1], "asked for")
    with pytest.raises(Conflict, match="can never be released"):
        legal_holds.release(team["admin"], every.pk, "please")

    verbs = list(AuditEntry.objects.filter(outcome="done").order_by("seq").values_list("verb", flat=True))
    assert verbs == ["hold", "release_hold", "redact", "hold"]


@pytest.mark.django_db(transaction=True)
def test_what_says_the_same_goes_along(team):
    key = "redact-f"
    call = {"event": "tool_step", "name": "look", "tool_call_id": "c1", "agent": "A"}
    for fields in (
        {**call, "args": {"who": SECRET}, "status": "start"},
        {**call, "output": SECRET, "result_summary": SECRET, "status": "success"},
        {"event": "token", "text": SECRET[:5], "index": 0, "agent": "A"},
        {"event": "token", "text": SECRET[5:], "index": 1, "agent": "A"},
        {"event": "output", "text": SECRET, "agent": "A"},
        {"type": "message", "sender": "agent:A", "recipient": "agent:B", "content": SECRET},
    ):
        log.append([unchecked(key, fields)])

    (done,) = redact(team["admin"], key, [1, 5], "asked for")

    assert done.seqs == [1, 2, 3, 4, 5, 6]
    assert everywhere(SECRET) == everywhere(SECRET[5:]) == []


@pytest.mark.parametrize(
    "body",
    [
        {"event": "output", "text": SECRET, "agent": "A", "metadata": {"hop": 1, "note": SECRET}},
        {"type": "message", "content": SECRET, "sender": "user:ida", "x": {"y": [SECRET]}},
        {
            "event": "tool_step",
            "args": {"a": SECRET},
            "args_raw": SECRET,
            "output": {"b": SECRET},
            "calls": [SECRET * 9],
        },
        {"event": "log", "message": SECRET, "usage": {"a": SECRET}},
        [SECRET],
    ],
)
def test_a_tombstone_has_ids_and_names_and_no_words(body):
    assert SECRET not in tombstone(json.dumps(body))


def test_a_tombstone_keeps_what_the_fold_of_a_run_goes_by():
    body = {"event": "run.failed", "run_id": "r1", "reason": "hop_limit", "calls": ["c1"], "message": SECRET}
    usage = {"event": "model.turn", "usage": {"input_tokens": 3, "input_tokens_details": {"cached_tokens": 2}}}

    assert json.loads(tombstone(json.dumps(body))) == {
        **{n: v for n, v in body.items() if n != "message"}, "redacted": True
    }  # fmt: skip
    assert json.loads(tombstone(json.dumps(usage))) == usage | {"redacted": True}
    assert "reason" not in tombstone(json.dumps({"reason": f"{SECRET} said so"}))


DAY = 86_400_000_000


def aged(key, *seqs, days=40):
    """Have these events recorded so many days ago, and the chain say so."""
    Event.objects.filter(conversation__key=key, seq__in=seqs).update(at=time.time_ns() // 1000 - days * DAY)
    identity = hash_chain.identity_of(key, Conversation.objects.get(key=key).key_digest)
    prev = hash_chain.seed(identity)
    for e in Event.objects.filter(conversation__key=key).order_by("seq"):
        columns = (e.seq, e.kind, e.at, e.principal, e.run, e.turn, e.event_id, e.digest, e.erased_by)
        prev = hash_chain.link(prev, identity, *columns)
        Event.objects.filter(pk=e.pk).update(hash=prev)
    Conversation.objects.filter(key=key).update(head_hash=prev)


@pytest.mark.django_db(transaction=True)
def test_what_is_too_old_expires_and_what_is_held_or_of_another_kind_stays(team):
    for key in ("expire-a", "expire-b", "expire-c"):
        spoken(key, *(f"{SECRET} {n}" for n in range(3)))
        aged(key, 1, 2)
    log.append([unchecked("expire-a", {"event": "log", "message": "kept"})])
    aged("expire-a", 4)
    hold = legal_holds.place(team["admin"], "expire-b", "a lawsuit")
    rule = expiry.RetentionScope(time.time_ns() // 1000 - 30 * DAY, ["message"])

    counts, held = expiry.preview(rule)
    first = expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)
    legal_holds.release(team["admin"], hold.pk, "it is over")
    second = expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)
    third = expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)

    assert (counts, held) == ({"message": 6}, 2)
    assert (first, second, third) == ((4, 2), (2, 0), (0, 0))
    erased = Event.objects.filter(salt=None).values_list("conversation__key", "seq")
    assert sorted(erased) == [(key, seq) for key in ("expire-a", "expire-b", "expire-c") for seq in (1, 2)]
    assert AuditEntry.objects.filter(verb="expire", outcome="done", reason="30 days").count() == 3
    assert {row.last_line for row in Conversation.objects.all()} == {f"{SECRET} 2"}
    assert chain.verify().ok


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_expiry_goes_by_conversation_and_team_and_by_pages(team):
    for key, handler in (("expire-d", "Ida"), ("expire-e", "")):
        spoken(key, *(f"{SECRET} {n}" for n in range(expiry.PAGE // 2 + 10)))
        Conversation.objects.filter(key=key).update(handler=handler)
    Agent.objects.create(team="desk", name="Ida")
    soon = time.time_ns() // 1000 + DAY

    by_team = expiry.preview(expiry.RetentionScope(soon, team="desk"))[0].total()
    by_key = expiry.preview(expiry.RetentionScope(soon, conversation="expire-e"))[0].total()
    expired, held = expiry.expire(SYSTEM, expiry.RetentionScope(soon), "all of it", lambda *_: None)

    assert by_team == by_key == expiry.PAGE // 2 + 10
    assert (expired, held) == (expiry.PAGE + 20, 0)
    assert everywhere(SECRET) == []
    assert verify_events().ok
    list(rebuild())
    assert everywhere(SECRET) == []


WORDS = [f"Planted{number}Quokka" for number in range(rounds(50, 200))]


@pytest.mark.slow
@pytest.mark.crash
def test_planted_words_are_in_no_file_after_their_redaction_nor_in_an_older_copy_that_is_started(tmp_path):
    server, older, apart = Server(tmp_path / "data"), Server(tmp_path / "older"), Server(tmp_path / "apart")
    server.start()
    secret = server.token()
    for n, word in enumerate(WORDS):
        for m, fields in enumerate(planted(n, f"{word} and {'more ' * 40}")):
            payload = {**fields, "conversation_id": "redact-g"}
            assert server.publish(secret, "stream:redact-g", payload, f"g{n}-{m}")[0] == 201
    head = server.request("GET", "/api/v1/conversations/redact-g", token=secret)[1]["head_seq"]
    until(lambda: server.request("GET", f"/api/v1/search?q={WORDS[0]}", token=secret)[1].get("items"), what="the index")
    for page in ("", "?view=lanes", "?view=timeline"):
        server.request("GET", f"/conversations/redact-g/{page}", token=secret)
    for copy in (older, apart):
        copy_of(server, copy)
        assert raw(copy).issuperset(WORDS)

    dry = server.command("redact", "redact-g", f"1-{head}", "--dry-run")
    server.command("redact", "redact-g", f"1-{head}", "--reason", "asked for")

    each = len(WORDS) // 5
    assert f"{each} message, {each} output, {each} token, {3 * each} tool_step" in dry
    until(lambda: raw(server).isdisjoint(WORDS), within=60, what="every word to be gone from every file")
    assert not server.request("GET", f"/api/v1/search?q={WORDS[0]}", token=secret)[1]["items"]
    events = server.request("GET", "/api/v1/conversations/redact-g/events?limit=300", token=secret)[1]
    assert not any(word in json.dumps(events) for word in WORDS)
    server.terminate()
    assert raw(server).isdisjoint(WORDS)
    assert not any(word in server.log.read_text() for word in WORDS)
    journal = server.data_dir / "redactions.jsonl"
    assert journal.stat().st_mode & 0o777 == 0o600

    shutil.copy2(journal, older.data_dir)
    older.start()
    assert f"{head} events were redacted again" in older.log.read_text()
    until(lambda: raw(older).isdisjoint(WORDS), within=60, what="every word to be gone from the older copy")
    older.terminate()
    assert f"Redacted {head} events again" in apart.command("redact", "--journal", str(journal))
    assert "Redacted 0 events again" in apart.command("redact", "--journal", str(journal))
    for place in (older, apart):
        assert "events are intact" in place.command("verify")
        assert raw(place).isdisjoint(WORDS)
        assert marks_of(place.data_dir / "redactions.jsonl") == marks_of(journal)


def planted(n, words):
    """Return what says these words: a message, a call's arguments, output or error, an answer and its token."""
    call = {"event": "tool_step", "name": "look", "tool_call_id": f"c{n}", "agent": "A"}
    return [
        [{"type": "message", "sender": "agent:A", "recipient": "agent:B", "content": words}],
        [{**call, "status": "start", "args": {"who": [words]}, "args_raw": json.dumps({"who": [words]})}],
        [{**call, "status": "success", "output": {"a": words}, "result_summary": words[:30]}],
        [{**call, "status": "error", "error": words}],
        [
            {"event": "token", "text": words, "index": 0, "agent": "A"},
            {"event": "output", "text": words, "agent": "A"},
        ],
    ][n % 5]


def marks_of(journal):
    """Return which redactions a journal has, and of what."""
    lines = map(json.loads, journal.read_text().splitlines())
    return [(line["mark"], line["conversation"], line["seqs"]) for line in lines]


def copy_of(server, other):
    """Copy a server's database beside its work, as one file."""
    other.data_dir.mkdir()
    places = (each.data_dir / "switchboard.sqlite3" for each in (server, other))
    with closing(sqlite3.connect(next(places))) as source, closing(sqlite3.connect(next(places))) as target:
        source.backup(target)


def raw(server):
    """Return which planted words any file of a data directory holds, in any case."""
    texts = [text.lower() for text in stored_files(server.data_dir)]
    return {word for word in WORDS if any(word.lower().encode() in text for text in texts)}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_expiry", [False, True], ids=["redaction", "expiry"])
def test_what_was_moved_here_loses_its_words_where_it_came_from_too(team, is_expiry):
    trace, by = "0" * 31 + "7", principals.token_principal("collector")
    for number, text in enumerate((f"my name is {SECRET}", "and goodbye")):
        log.append(
            [from_text(f"stream:{trace}", json.dumps({"event": "log", "id": f"{trace}:{number}", "text": text}), by)]
        )
    assert late_names.move(trace, "redact-moved", by)
    index()

    if is_expiry:
        later = Event.objects.latest("at").at + 1
        expiry.expire(team["admin"], expiry.RetentionScope(older_than=later), "too old", lambda _, __: None)
    else:
        redact(team["admin"], "redact-moved", [1], "asked for")
    index()

    assert everywhere(SECRET) == []
    assert verify_events().ok
