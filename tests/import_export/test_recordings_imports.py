"""Import and export: whole or not at all, the same page elsewhere, and hashes that are checked."""

import json

import pytest

from conversations.conversation import fork as forks
from conversations.core import principals
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.import_export import import_file, player, staged_import
from conversations.import_export.destination import LocalDatabase
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportRefused, ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import Conversation, Event, Post, ToolCall
from tests.support.recorded import OWN
from tests.support.redacted import redact

pytestmark = pytest.mark.django_db(transaction=True)
PRINCIPAL = principals.import_principal("test")
RUN = "run-1"


def bring_file(path, *, key="", is_strict=False, report=None):
    import_report = ImportReport((report if report is not None else []).append, is_strict=is_strict)
    return import_recordings(
        recordings(path, import_report), StagedImport(PRINCIPAL), import_report, key=key, progress=lambda *_: None
    )


def nothing_is_left():
    return not (Conversation.objects.exists() or Event.objects.exists() or ToolCall.objects.exists())


def ours(key="town"):
    """Store a conversation as our own agents write one: runs, turns, tokens, a repeated output, a failed call."""
    mine = {"run_id": RUN, "agent": "A", "turn": 1}
    payloads = [
        {"event": "conversation.opened", "id": "o", "title": "Town"},
        {"type": "message", "id": "m1", "sender": "user:Ida", "recipient": "agent:A", "content": "hi", "metadata": {}},
        {"event": "token", "text": "hel", "index": 0, **mine},
        {"event": "token", "text": "lo", "index": 1, **mine},
        {"event": "output", "id": "out", "text": "hello", "final": True, **mine},
        {"type": "message", "sender": "agent:A", "recipient": "user:Ida", "content": "hello", "id": "m2"},
        {
            "event": "tool_step",
            "id": "s",
            "name": "t",
            "args": {"n": 1.0},
            "status": "start",
            "tool_call": f"{key}-c",
            **mine,
        },
        {
            "event": "tool_step",
            "id": "e",
            "name": "t",
            "status": "error",
            "error": "no",
            "tool_call": f"{key}-c",
            **mine,
        },
        {"event": "agent.handoff", "id": "h", "from_agent": "A", "to_agent": "B", **mine},
        {"event": "weather", "id": "w", "deep": {"n": 10000000000000000000000.5}},
    ]
    log.append([log.from_internal(key, payload, principals.SYSTEM) for payload in payloads])
    return key


def exported(key, path):
    """Export to a file; return it."""
    path.write_bytes(b"".join(export(key)))
    return path


def counters(key):
    c = Conversation.objects.get(key=key)
    return c.head_seq, c.messages, c.tool_calls, c.errors, c.title, c.last_line


def history(key):
    """Return what a page is drawn from, without what belongs to one record alone."""
    alone = ("conversation_id", "imported", "created_at")
    events = [(e, json.loads(e.body)) for e in log.read_after(key, 0)]
    return [(e.seq, e.kind, {name: value for name, value in body.items() if name not in alone}) for e, body in events]


def test_file_appears_whole_under_names_of_its_own():
    items = bring_file(OWN / "simulations.json")

    assert [item.conversation_id for item in items] == ["simulations-0a1b", "simulations-0a1c"]
    assert [item.events for item in items] == [log.head(item.conversation_id) for item in items]
    assert Conversation.objects.visible().count() == 2


def test_second_import_is_refused_with_nothing_half_done():
    bring_file(OWN / "simulations.json", key="x-2")
    before = Event.objects.count()

    with pytest.raises(Conflict, match="'x-2' already exists"):
        bring_file(OWN / "simulations.json", key="x")

    assert Event.objects.count() == before
    assert not Conversation.objects.filter(key="x").exists()


def test_strict_import_of_a_bad_file_leaves_nothing(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text((OWN / "chat.jsonl").read_text() + "{broken\n")

    with pytest.raises(ImportRefused, match="line 6"):
        bring_file(path, is_strict=True)

    assert nothing_is_left()


def test_nothing_is_seen_while_a_file_comes_in(monkeypatch):
    monkeypatch.setattr(import_file, "CHUNK", 2)
    monkeypatch.setattr(staged_import, "CHUNK", 2)
    seen = []

    def look(*_):
        seen.append((Conversation.objects.visible().count(), Event.objects.exists()))

    report = ImportReport(pytest.fail)
    import_recordings(recordings(OWN / "simulations.json", report), StagedImport(PRINCIPAL), report, progress=look)

    assert {visible for visible, _ in seen} == {0}
    assert seen[-1][1], "it was staged before the end"
    assert Conversation.objects.visible().count() == 2


def test_live_writer_goes_on_between_two_chunks(monkeypatch):
    monkeypatch.setattr(import_file, "CHUNK", 2)
    monkeypatch.setattr(staged_import, "CHUNK", 2)
    report = ImportReport(pytest.fail)

    import_recordings(
        recordings(OWN / "chat.json", report), StagedImport(PRINCIPAL), report, progress=lambda *_: ours_once()
    )

    assert log.head("live") > 1


def ours_once():
    log.append([log.from_internal("live", {"event": "log", "message": "on it goes"}, principals.SYSTEM)])


def test_import_without_its_end_is_discarded():
    door = StagedImport(PRINCIPAL)
    door.receive([b'{"conversation": "x"}', b'{"payload": {"type": "message", "conversation_id": "x"}}'])

    with pytest.raises(Invalid, match="the end line is missing"):
        door.finish()
    door.discard()

    assert nothing_is_left()


def test_an_import_whose_permission_has_ended_is_not_published():
    def require_still():
        raise NotAllowed("the token was revoked")

    door = StagedImport(PRINCIPAL, require_still)
    message = b'{"payload": {"type": "message", "conversation_id": "x", "content": "hello"}}'
    door.receive([b'{"conversation": "x"}', message, b'{"end": 1}'])

    with pytest.raises(NotAllowed):
        door.finish()
    assert not Conversation.objects.visible().exists()


@pytest.mark.parametrize(
    "lines",
    [
        [b'{"payload": {"conversation_id": "x"}}'],
        [b'{"conversation": "x"}', b'{"payload": {"conversation_id": "another"}}'],
        [b'{"conversation": "x"}', b'{"payload": []}'],
        [b'{"conversation": ""}'],
        [b'{"conversation": "x", "end": 1}'],
        [b'{"end": 1}'],
        [b"nonsense"],
    ],
)
def test_lines_that_are_no_import_are_refused(lines):
    with pytest.raises(Invalid):
        StagedImport(PRINCIPAL).receive(lines)


def test_an_event_that_is_too_large_is_told_and_left_out(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"role": "user", "content": "x" * (1 << 20)}, {"role": "user", "content": "small"}]))
    report = []

    (item,) = bring_file(path, report=report)

    assert item.messages == 1
    assert report[0].startswith("[0]: must be at most 1,048,576 bytes")


def test_imported_events_are_kept_as_no_posts_and_start_nothing():
    bring_file(OWN / "chat.json")

    assert not Post.objects.exists()
    assert set(Event.objects.values_list("run", "turn")) == {(None, None)}


def test_export_imported_under_another_id_gives_the_same_page(tmp_path):
    path = exported(ours(), tmp_path / "town.jsonl")

    bring_file(path, key="copy", is_strict=True)

    assert history("copy") == history("town")
    assert counters("copy") == counters("town") == (10, 2, 1, 1, "Town", "hello")
    assert log.newest_page("copy").first_seq == log.newest_page("town").first_seq


def test_export_played_gives_the_same_counters(tmp_path):
    path = exported(ours(), tmp_path / "town.jsonl")
    recording = next(recordings(path, ImportReport(pytest.fail)))

    player.play([player.part_of(recording, "copy", speed=10_000, tokens=True)], LocalDatabase("test").publish)

    assert counters("copy") == counters("town")
    assert [kind for _, kind, _ in history("copy")] == [kind for _, kind, _ in history("town")]


def test_text_that_no_column_can_hold_is_imported(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"role": "user", "name": "\0 \ud83d", "content": "a\0b \udfff \u202e"}]))

    (item,) = bring_file(path, is_strict=True)

    body = json.loads(log.read_after(item.conversation_id, 1, 1)[0].body)
    assert (body["sender"], body["content"]) == ("\0 \ud83d", "a\0b \udfff \u202e")
    bring_file(exported("x", tmp_path / "x.jsonl"), key="copy", is_strict=True)
    assert history("copy") == history("x")


def test_rebuild_changes_no_id_of_an_imported_call():
    bring_file(OWN / "simulations.json")
    before = list(ToolCall.objects.order_by("id").values())

    list(rebuild())

    assert before
    assert list(ToolCall.objects.order_by("id").values()) == before


@pytest.mark.parametrize("bad", ["\\u0000", "\\ud800"])
def test_id_that_no_column_can_hold_is_made_fit(bad):
    intake = StagedImport(PRINCIPAL)
    event = f'{{"payload":{{"event":"log","conversation_id":"x","text":"a"}},"id":"a{bad}b"}}'

    intake.receive([b'{"conversation":"x"}', event.encode(), b'{"end":1}'])
    intake.finish()

    assert Event.objects.get().event_id == "a\ufffdb"


def test_import_keeps_who_said_it_and_when(tmp_path):
    path = exported(ours(), tmp_path / "town.jsonl")
    bring_file(path, key="copy")
    bring_file(exported("copy", tmp_path / "copy.jsonl"), key="again")

    first = json.loads(log.read_after("again", 0, 1)[0].body)["imported"]

    assert first["principal"] == "import:test"
    assert first["before"] == {"principal": "system", "at": log.read_after("town", 0, 1)[0].at}


def test_import_leaves_state_to_our_own(tmp_path):
    payload = {"event": "conversation.opened", "title": "T", "handler": "agent:A", "demo": True}
    log.append([log.from_internal("own", payload, principals.SYSTEM)])

    bring_file(exported("own", tmp_path / "own.jsonl"), key="copy")

    copy = Conversation.objects.get(key="copy")
    assert (copy.title, copy.handler, copy.is_demo) == ("T", "", False)


def test_tombstone_is_imported_as_one(tmp_path):
    ours()
    redact("town", 2, body='{"type":"message","sender":"user:Ida"}', by="user:eve")
    path = exported("town", tmp_path / "x.jsonl")

    bring_file(path, key="copy", is_strict=True)

    assert json.loads(log.read_after("copy", 1, 1)[0].body)["imported"]["erased_by"] == "user:eve"


def test_an_erased_line_that_no_event_names_is_told(tmp_path):
    path = exported(ours(), tmp_path / "x.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[2] |= {"body": '{"event":"log","text":"forged"}', "salt": None, "erased_by": "user:eve"}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    with pytest.raises(Invalid, match="event 2 must have a salt, or an"):
        bring_file(path, key="copy", is_strict=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"body": '{"event":"log"}'}, "digest of event 3 must match its body"),
        ({"principal": "user:eve"}, "hash of event 3 must match its contents and the previous hash"),
        ({"at": 1}, "hash of event 3 must match its contents and the previous hash"),
        ({"salt": None}, "event 3 must have a salt"),
        ({"seq": 4}, "must be event 3; got 4"),
        ({"hash": "0" * 64}, "hash of event 3 must match its contents and the previous hash"),
        ({"seq": "three"}, "must be an event of an export"),
    ],
)
def test_changed_export_is_found_out(tmp_path, change, expected):
    path = exported(ours(), tmp_path / "x.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[3] |= change
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    with pytest.raises(ImportRefused, match=f"line 4: {expected}"):
        bring_file(path, key="copy", is_strict=True)


@pytest.mark.parametrize("lines_left", [slice(0, -1), slice(0, 1)], ids=["last line gone", "header alone"])
def test_cut_export_is_found_out(tmp_path, lines_left):
    path = exported(ours(), tmp_path / "x.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[lines_left]))

    with pytest.raises(ImportRefused, match="the end: the last event must be 10"):
        bring_file(path, key="copy", is_strict=True)


def test_several_exports_in_one_file_are_several_conversations(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join([*export(ours("a")), *export(ours("b"))]))
    Event.objects.all().delete()
    ToolCall.objects.all().delete()
    Conversation.objects.all().delete()

    assert [(i.conversation_id, i.events) for i in bring_file(path, is_strict=True)] == [("a", 10), ("b", 10)]


def test_export_ends_at_its_head(monkeypatch, tmp_path):
    monkeypatch.setattr("conversations.events.log.bounded_reads.PAGE", 3)
    ours()
    lines = export("town")
    first = json.loads(next(lines))

    ours_once()
    log.append([log.from_internal("town", {"event": "log"}, principals.SYSTEM)])
    rest = [json.loads(line)["seq"] for line in lines]

    assert rest == list(range(1, first["head_seq"] + 1))


def test_export_of_nothing_is_refused():
    with pytest.raises(NotFound):
        next(export("nobody"))


@pytest.mark.django_db(transaction=True)
def test_a_fork_of_an_import_is_not_updated(team):
    def lines(key, *texts, update=False):
        yield json.dumps({"conversation": key, "update": update}).encode()
        for text in texts:
            message = {"type": "message", "id": text, "sender": "user", "recipient": "agent:A", "content": text}
            yield json.dumps({"payload": {**message, "conversation_id": key}}).encode()
        yield b'{"end": 1}'

    imported = StagedImport(principals.import_principal("file"))
    imported.receive(list(lines("talk", "one", "two")))
    imported.finish()
    fork = forks.fork(team["admin"], "talk", 1).conversation
    head = log.head(fork)

    with pytest.raises(Conflict, match="was not created by an import"):
        StagedImport(principals.import_principal("file")).receive(list(lines(fork, "one", "three", update=True)))

    assert log.head(fork) == head
