"""Forks: the same history under another key, linked, and nothing done by copying (§3.4, 5)."""

import gzip
import json
import random
from functools import partial

import pytest

from conversations.conversation import control
from conversations.conversation import fork as forks
from conversations.core import principals
from conversations.core.errors import Invalid
from conversations.events import log, verify_chains
from conversations.events.log import bounded_reads, fork_copy
from conversations.events.log.rebuild import rebuild
from conversations.import_export import import_file
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.models import Agent, Approval, Conversation, Event, Participant, Post, Response, Run, ToolCall, Turn
from tests.events.test_projections import rows
from tests.support.cast import audit_summary, last_entry
from tests.support.event_types import EXAMPLES
from tests.support.recorded import THEIRS
from tests.support.redacted import redact
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
COPIED = ("seq", "kind", "at", "principal", "run", "turn", "event_id", "body", "erased_by")
DEEDS = (Run, Approval, ToolCall, Response, Post, Turn)


def prefix(key, upto):
    return list(Event.objects.filter(conversation__key=key, seq__lte=upto).order_by("seq").values(*COPIED))


def deeds():
    return [list(model.objects.order_by("pk").values()) for model in DEEDS]


def is_whole(key):
    return verify_chains.verify_conversation(Conversation.objects.get(key=key)).ok


def everything(key="parent"):
    """A conversation with an example of every kind, ours and claimed."""
    payloads = [payload for some in EXAMPLES.values() for payload in some]
    who = [
        principals.SYSTEM,
        principals.token_principal("robot"),
        principals.import_principal("file"),
        principals.user_principal("maria"),
    ]
    dice = random.Random(7)
    for payload in payloads:
        fields = {k: v for k, v in payload.items() if k not in ("id", "tool_call", "approval_id")}
        log.append([unchecked(key, fields, dice.choice(who))])
    return Conversation.objects.get(key=key)


@pytest.fixture
def hello(otto):
    """A conversation in which a person spoke and an agent of ours answered."""
    Agent.objects.create(team="t", name="Clerk", is_entry=True)
    body = {"type": "message", "sender": "user:otto", "recipient": "agent:Clerk", "content": "Refund Ada.", "id": "m1"}
    log.append([unchecked("hello", body, principals.user_principal("otto"))])
    answer = {"type": "message", "sender": "agent:Clerk", "recipient": "user:otto", "content": "Done.", "id": "m2"}
    log.append([unchecked("hello", answer, principals.run_principal("Clerk"))])
    return Conversation.objects.get(key="hello")


def test_a_fork_equals_its_prefix_event_by_event_whatever_the_kind(otto):
    parent = everything()
    before, done = rows(), deeds()

    for at in (1, 17, parent.head_seq):
        made = forks.fork(otto, "parent", at)

        assert prefix(made.conversation, at) == prefix("parent", at)
        assert (made.seq, made.run) == (at + 1, "")
        assert is_whole(made.conversation)

    assert deeds() == done
    assert [row for row in rows()[0] if row["key"] == "parent"] == [r for r in before[0] if r["key"] == "parent"]
    now = rows()
    list(rebuild())
    assert rows() == now


def test_a_fork_copies_large_bodies_a_few_at_a_time(otto, monkeypatch):
    body = {"type": "message", "sender": "ada", "content": "x" * 1000}
    log.append([unchecked("large", body, principals.token_principal("robot")) for _ in range(20)])
    pages, insert = [], fork_copy.sql.insert_copies
    monkeypatch.setattr(bounded_reads, "rows", partial(bounded_reads.rows, most=3000))
    monkeypatch.setattr(fork_copy.sql, "insert_copies", lambda *of: (pages.append(len(of[1]) // 13), insert(*of)))

    made = forks.fork(otto, "large", 20)

    assert pages == [3] * 6 + [2]
    assert prefix(made.conversation, 20) == prefix("large", 20)
    assert is_whole(made.conversation)


def test_a_fork_folds_messages_participants_and_the_last_line_as_its_parent_did(otto):
    parent = everything()

    fork = Conversation.objects.get(key=forks.fork(otto, "parent", parent.head_seq).conversation)

    assert (fork.messages, fork.last_sender, fork.last_line) == (parent.messages, parent.last_sender, parent.last_line)
    assert (fork.tool_calls, fork.errors, fork.state, fork.owner) == (0, 0, "open", "")
    assert set(Participant.objects.filter(conversation=parent).values_list("name", "kind")) >= set(
        Participant.objects.filter(conversation=fork).values_list("name", "kind")
    )
    assert (fork.parent_id, fork.forked_at, fork.copied_seq) == (parent.pk, parent.head_seq, parent.head_seq)
    assert list(parent.forks.all()) == [fork]


def test_what_a_model_spent_there_is_not_counted_once_more(otto):
    output = {"event": "output", "agent": "A", "text": "Done.", "usage": {"input_tokens": 7, "output_tokens": 2}}
    log.append([unchecked("c", output, principals.token_principal("robot"))])
    assert Turn.objects.count() == 1

    forks.fork(otto, "c", 1)

    assert Turn.objects.count() == 1
    list(rebuild())
    assert Turn.objects.count() == 1


def test_a_fork_of_a_fork_is_whole_and_rebuilt_as_it_was(otto):
    parent = everything()
    first = forks.fork(otto, "parent", parent.head_seq - 5)
    second = forks.fork(otto, first.conversation, first.seq)

    assert prefix(second.conversation, first.seq) == prefix(first.conversation, first.seq)
    assert is_whole(second.conversation)
    before = rows()
    list(rebuild())
    assert rows() == before


def test_a_message_is_in_other_words_and_the_old_ones_are_kept(otto, hello):
    made = forks.fork(otto, "hello", 1, words="Refund Bo.", reason="the wrong person")

    first, second = Event.objects.filter(conversation__key=made.conversation).order_by("seq")
    forked, body = json.loads(first.body), json.loads(second.body)
    assert (first.kind, forked["parent"], forked["forked_at"], forked["changed"]) == (
        "conversation.forked",
        "hello",
        0,
        1,
    )
    assert (second.principal, body["sender"], body["content"]) == ("user:otto", "user:otto", "Refund Bo.")
    assert body["recipient"] == "agent:Clerk"
    was = {"conversation_id": "hello", "seq": 1, "sender": "user:otto", "content": "Refund Ada."}
    assert body["metadata"]["changed"] == was
    assert not Run.objects.filter(conversation__key=made.conversation).exists()
    assert not Post.objects.filter(conversation__key=made.conversation).exists()  # nobody elsewhere is asked
    assert audit_summary(last_entry()) == ("user:otto", "fork", "conversation:hello", "done")
    assert last_entry().reason == "the wrong person"


@pytest.mark.parametrize(
    ("at", "words", "title"),
    [(1, "**Refund** Bo.", "Refund Bo."), (3, "Not done.", "Refund Ada."), (3, None, "Refund Ada.")],
)
def test_a_fork_whose_first_message_is_changed_has_a_title_of_its_own(otto, hello, at, words, title):
    fork = Conversation.objects.get(key=forks.fork(otto, "hello", at, words=words).conversation)
    assert fork.title == title

    list(rebuild())
    fork.refresh_from_db()
    assert fork.title == title


def test_a_fork_of_a_titled_conversation_is_renamed_with_its_first_message(otto):
    events = [{"event": "conversation.opened", "title": "Refunds"}, {"type": "message", "content": "Refund Ada."}]
    log.append(
        [
            unchecked("named", {"sender": "user:otto", **payload}, principals.user_principal("otto"))
            for payload in events
        ]
    )

    changed, whole = (forks.fork(otto, "named", 2, words=words).conversation for words in ("Refund Bo.", None))

    assert [Conversation.objects.get(key=key).title for key in (changed, whole)] == ["Refund Bo.", "Refunds"]


def test_a_fork_copies_what_stands_in_place_of_redacted_words(otto, hello):
    redact("hello", 1, body='{"type":"message"}')

    forked = forks.fork(otto, "hello", 1).conversation

    copy = Event.objects.get(conversation__key=forked, seq=1)
    assert (copy.body, copy.erased_by, is_whole(forked)) == ('{"type":"message"}', "user:ida", True)


def test_a_message_that_was_erased_is_not_said_in_other_words(otto, hello):
    Event.objects.filter(conversation=hello, seq=1).update(erased_by=2)

    with pytest.raises(Invalid, match="event 1 is not a message that can be edited"):
        forks.fork(otto, "hello", 1, words="Refund Bo.")


def test_a_paused_conversations_fork_is_free(otto, hello):
    control.pause(otto, "hello")

    fork = Conversation.objects.get(key=forks.fork(otto, "hello", 4).conversation)

    assert (fork.state, Conversation.objects.get(key="hello").state) == ("open", "paused")


def test_a_claimed_fork_changes_no_state():
    payload = {
        "event": "conversation.forked",
        "parent": "victim",
        "forked_at": 0,
        "title": "x",
        "handler": "agent:Evil",
    }
    log.append(
        [unchecked("victim", {"type": "message", "sender": "R", "content": "x"}, principals.token_principal("robot"))]
    )

    log.append([unchecked("c", payload, principals.token_principal("robot"))])

    row = Conversation.objects.get(key="c")
    assert (row.parent_id, row.forked_at, row.copied_seq, row.title, row.handler) == (None, None, 0, "", "")


@pytest.mark.parametrize(
    ("payload", "who", "handler"),
    [
        ({"event": "conversation.opened", "handler": "agent:Evil"}, principals.run_principal("Clerk"), ""),
        ({"event": "conversation.forked", "handler": "agent:Evil"}, principals.run_principal("Clerk"), ""),
        ({"event": "conversation.handler", "handler": "agent:Evil"}, principals.token_principal("robot"), ""),
        (
            {"event": "conversation.handler", "handler": "agent:Billing"},
            principals.run_principal("Clerk"),
            "agent:Billing",
        ),
        ({"event": "conversation.opened", "handler": "agent:Clerk"}, principals.user_principal("otto"), "agent:Clerk"),
    ],
)
def test_a_fork_is_answered_by_whom_its_parent_is(otto, payload, who, handler):
    log.append([unchecked("parent", {"id": "first", **payload}, who)])

    fork = Conversation.objects.get(key=forks.fork(otto, "parent", 1).conversation)

    assert (Conversation.objects.get(key="parent").handler, fork.handler) == (handler, handler)


def bring(path):
    trouble = ImportReport(lambda _: None)
    import_file.import_recordings(
        recordings(path, trouble), StagedImport(principals.import_principal("file")), trouble, progress=lambda *_: None
    )


def test_an_exported_fork_keeps_where_it_was_forked_from(otto, hello, tmp_path):
    made = forks.fork(otto, "hello", 1)
    lines = list(export(made.conversation))
    origin = {"conversation_id": "hello", "seq": 1}
    assert json.loads(lines[0])["forked_from"] == origin

    path = tmp_path / "fork.jsonl"
    path.write_bytes(b"".join(lines))
    log.remove(Conversation.objects.get(key=made.conversation))
    Conversation.objects.filter(key="hello").update(key="elsewhere")
    bring(path)

    assert json.loads(next(export(made.conversation)))["forked_from"] == origin
    row = Conversation.objects.get(key=made.conversation)
    assert (row.parent, row.forked_at, row.copied_seq) == (None, 1, 0)
    assert is_whole(made.conversation)


def samples():
    patterns = ("tau2-bench/*_20sims.json.gz", "who-and-when/*/*.json")
    return [path for pattern in patterns for path in sorted(THEIRS.glob(pattern))[:2]]


def long_session():
    """A recorded coding session of another program, as its agent would have published it."""
    for line in gzip.decompress((THEIRS / "pi-sessions/large-session.jsonl.gz").read_bytes()).splitlines():
        body = json.loads(line).get("message") or {}
        if body.get("role") == "toolResult":
            end = {"event": "tool_step", "status": "success", "name": body["toolName"], "output": body["content"]}
            yield end | {"tool_call_id": body["toolCallId"], "agent": "Pi"}
        for part in body.get("content", ()) if body.get("role") in ("user", "assistant") else ():
            if part["type"] == "text":
                who = {"sender": "user"} if body["role"] == "user" else {"sender": "agent:Pi"}
                yield {"type": "message", "content": part["text"], **who}
            elif part["type"] == "toolCall":
                start = {"event": "tool_step", "status": "start", "name": part["name"], "args": part["arguments"]}
                yield start | {"tool_call_id": part["id"], "agent": "Pi"}


@pytest.mark.slow
@pytest.mark.skipif(not samples(), reason="SWITCHBOARD_SAMPLES_DIR has no samples")
def test_forks_of_the_samples_equal_their_prefixes_at_random_points(otto):
    dice = random.Random(20)
    for path in samples():
        bring(path)
    log.append([unchecked("session", payload, principals.token_principal("robot")) for payload in long_session()])
    longest = list(Conversation.objects.order_by("-head_seq")[:6])
    assert longest[0].head_seq > 1000

    for parent in longest:
        for at in (dice.randint(1, parent.head_seq), parent.head_seq):
            made = forks.fork(otto, parent.key, at)
            assert prefix(made.conversation, at) == prefix(parent.key, at)
            assert is_whole(made.conversation)

    before = rows()
    list(rebuild())
    assert rows() == before


def test_a_fork_has_no_handler_whom_only_a_run_named_at_an_opening(otto):
    hello = {"type": "message", "sender": "user:ada", "recipient": "chat:first", "content": "hello"}
    log.append([log.from_internal("first", hello, principals.user_principal("ada"))])
    payload = {"event": "conversation.opened", "title": "Mine", "handler": "agent:Mallory"}
    log.append([log.from_internal("first", payload, principals.run_principal("Dialogue"))])

    fork = forks.fork(otto, "first", 2)

    assert Conversation.objects.get(key=fork.conversation).handler == ""
