"""`log.append`: gapless, once, chained, folded."""

import hashlib
import json
import threading

import pytest
from django.db import connection
from django.utils import timezone

from conversations.core import principals
from conversations.core.errors import Conflict
from conversations.events import commit_listeners, log
from conversations.events.log import hash_chain, sql, token_check
from conversations.events.projections import token_access
from conversations.models import Conversation, Event, Participant, Post, Token, ToolCall
from conversations.redaction.redact import redact
from tests.support.unchecked import from_text, unchecked

pytestmark = pytest.mark.django_db
AGENT = principals.token_principal("robot")


def event(key, topic=None, bus_id=None, principal=AGENT, **payload):
    """Make an event as a door does."""
    return unchecked(key, payload, principal, topic=topic or "", bus_id=bus_id)


def message_event(key, words="hello", sender="agent:A", recipient="user", **more):
    return event(key, topic=f"chat:{key}", type="message", sender=sender, recipient=recipient, content=words, **more)


def test_seq_is_gapless_per_conversation():
    stored = log.append([message_event("a"), message_event("b"), message_event("a"), message_event("a")])

    assert [(s.conversation, s.seq) for s in stored] == [("a", 1), ("b", 1), ("a", 2), ("a", 3)]
    assert log.heads(["a", "b"]) == {"a": 3, "b": 1}


def test_known_id_is_stored_once_and_answers_its_place():
    log.append([message_event("a", id="one", bus_id="x")])

    again, new = log.append([message_event("a", id="one", bus_id="x"), message_event("a", id="two")])

    assert (again.seq, again.is_new, again.clashes) == (1, False, False)
    assert (new.seq, new.is_new) == (2, True)
    assert Event.objects.count() == 2


def test_same_id_twice_in_one_batch_is_stored_once():
    first, second = log.append(
        [event("a", event="log", id="one", text="x"), event("a", event="log", id="one", text="x")]
    )

    assert (first.seq, second.seq, second.is_new) == (1, 1, False)


def test_known_id_with_another_payload_clashes():
    log.append([message_event("a", id="one")])

    (clash,) = log.append([message_event("a", words="other", id="one")])

    assert clash.clashes
    assert Event.objects.count() == 1


def test_one_envelope_on_two_topics_is_one_event_and_two_posts():
    envelope = {"id": "e", "type": "message", "sender": "agent:A", "content": "x"}

    log.append([unchecked("a", envelope, AGENT, topic="chat:a", bus_id="b1")])
    (again,) = log.append([unchecked("a", envelope, AGENT, topic="chat:B", bus_id="b2")])

    assert (again.seq, again.is_new, again.clashes) == (1, False, False)
    assert sorted(Post.objects.values_list("topic", "event_seq")) == [("chat:B", 1), ("chat:a", 1)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("bus_id", [None, "b1"])
def test_a_redacted_event_that_comes_again_is_neither_stored_nor_a_clash(bus_id):
    event = message_event("a", words="my number is 4711", id="e1", bus_id=bus_id)
    log.append([event])
    redact(principals.SYSTEM, "a", [1], "private")

    (again,) = log.append([event])

    assert (again.seq, again.is_new, again.clashes) == (1, False, False)
    assert not Event.objects.filter(body__contains="4711").exists()


def test_bus_id_reused_with_another_payload_clashes():
    log.append([message_event("a", bus_id="b1", id="e1")])

    (clash,) = log.append([message_event("a", bus_id="b1", id="e2", words="other")])

    assert clash.clashes


def test_topic_without_conversation_is_a_post_only():
    (stored,) = log.append([from_text("signal:go", "{}", AGENT, "b1")])

    assert stored.seq == 0
    assert Event.objects.count() == 0
    assert Post.objects.get().body == "{}"


def test_chain_covers_every_event():
    log.append([message_event("a"), message_event("a", words="more", id="two")])

    conversation = Conversation.objects.get(key="a")
    identity = f"\0{hashlib.sha256(bytes(conversation.key_salt) + b'a').hexdigest()}"
    prev = hashlib.sha256(identity.encode()).hexdigest()
    for e in Event.objects.order_by("seq"):
        assert e.digest == hashlib.sha256(bytes(e.salt) + e.body.encode()).hexdigest()
        prev = hash_chain.link(prev, identity, e.seq, e.kind, e.at, e.principal, e.run, e.turn, e.event_id, e.digest)
        assert e.hash == prev
    assert conversation.head_hash == prev


def test_salts_differ():
    log.append([message_event("a"), message_event("a")])

    assert len(set(Event.objects.values_list("salt", flat=True))) == 2


def test_append_inside_writing_is_rolled_back_with_it():
    def work():
        with log.write_transaction():
            log.append([message_event("a")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()

    assert log.head("a") == 0


def test_messages_count_an_output_and_the_envelope_that_repeats_it_once():
    log.append([event("a", event="output", agent="A", text="hi")])
    log.append([message_event("a", words="hi", sender="agent:A"), message_event("a", words="hi", sender="agent:A")])

    assert Conversation.objects.get(key="a").messages == 2


def test_an_envelope_that_names_its_output_is_not_counted_again():
    log.append([event("a", event="output", agent="A", text="hi", id="o1"), message_event("a", words="other")])
    log.append([message_event("a", words="hi there", metadata={"output_id": "o1"})])

    assert Conversation.objects.get(key="a").messages == 2


def test_tool_steps_become_one_call():
    log.append([event("a", event="tool_step", name="t", args={}, status="start", tool_call_id="c1")])
    log.append([event("a", event="tool_step", name="t", status="error", error="no", tool_call_id="c1", duration_ms=5)])

    call = ToolCall.objects.get()
    assert (call.called_seq, call.finished_seq, call.status, call.duration_ms) == (1, 2, "failed", 5)
    assert Conversation.objects.values_list("tool_calls", "errors").get() == (1, 1)


def test_repeated_call_ids_join_in_order():
    start = {"event": "tool_step", "name": "t", "args": {}, "status": "start", "tool_call_id": "same"}
    end = {"event": "tool_step", "name": "t", "status": "success", "tool_call_id": "same", "result_summary": "ok"}

    log.append([event("a", **start), event("a", **start)])
    log.append([event("a", **end), event("a", **start), event("a", **end)])

    calls = ToolCall.objects.order_by("called_seq").values_list("nth", "called_seq", "finished_seq")
    assert list(calls) == [(1, 1, 3), (2, 2, 5), (3, 4, None)]


def test_legacy_steps_without_status_pair_by_name():
    log.append(
        [event("a", event="tool_step", name="t", args={"x": 1}), event("a", event="tool_step", name="u", args={})]
    )
    log.append([event("a", event="tool_step", name="t", args={}, result_summary="done")])

    assert ToolCall.objects.get(name="t").finished_seq == 3
    assert ToolCall.objects.get(name="u").finished_seq is None


def test_participants_are_collected_once_with_their_kind():
    log.append(
        [message_event("a", sender="agent:A", recipient="Rosa"), message_event("a", sender="Rosa", recipient="chat:a")]
    )

    assert set(Participant.objects.values_list("name", "kind")) == {("agent:A", "agent"), ("Rosa", "person")}


def test_claims_from_outside_change_no_title():
    log.append([event("a", event="conversation.opened", title="Mine", handler="agent:Evil")])
    assert Conversation.objects.values_list("title", "handler").get() == ("", "")

    log.append([event("b", event="conversation.opened", title="Theirs", handler="A", principal=principals.SYSTEM)])
    assert Conversation.objects.values_list("title", "handler").get(key="b") == ("Theirs", "A")


@pytest.mark.django_db(transaction=True)
def test_two_threads_on_one_conversation_leave_no_hole():
    def work(name):
        for i in range(50):
            log.append([message_event("a", id=f"{name}-{i}")])
        connection.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in "xy"]
    [t.start() for t in threads]
    [t.join() for t in threads]

    assert list(Event.objects.order_by("seq").values_list("seq", flat=True)) == list(range(1, 101))


@pytest.mark.django_db(transaction=True)
def test_writer_answers_after_commit_and_isolates_a_bad_job():
    from concurrent.futures import Future

    writer, good, bad = log.WriterThreads(), Future(), Future()
    broken = message_event("a")._replace(body="\ud800")
    writer.submit([broken], bad)
    writer.submit([message_event("a", words="fine")], good)
    writer.start()

    assert good.result(60)[0].seq == 1
    with pytest.raises(UnicodeError):
        bad.result(60)
    writer.close()


@pytest.mark.django_db(transaction=True)
def test_our_tokens_join_into_segments_and_flush_before_the_output():
    writer = log.WriterThreads()
    turn = {"run_id": "r1", "turn": 1, "agent": "A"}
    for i in range(50):
        writer.submit(
            [log.from_internal("a", {"event": "token", "text": f"{i} ", "index": i, **turn}, principals.SYSTEM)]
        )
    writer.submit([log.from_internal("a", {"event": "output", "text": "all", **turn}, principals.SYSTEM)])
    writer.start()
    writer.close()

    events = log.read_after("a", 0)
    assert [e.kind for e in events] == ["token", "output"]
    token = json.loads(events[0].body)
    assert token["text"] == "".join(f"{i} " for i in range(50))
    assert (token["index"], token["last_index"]) == (0, 49)


@pytest.mark.django_db(transaction=True)
def test_writer_outlives_a_job_that_breaks_in_an_unheard_of_way():
    from concurrent.futures import Future

    writer, good, bad = log.WriterThreads(), Future(), Future()
    writer.submit([message_event("a")._replace(payload=None)], bad)
    writer.submit([message_event("a", words="fine")], good)
    writer.start()

    assert good.result(60)[0].seq == 1
    assert isinstance(bad.exception(10), AttributeError)
    writer.close()


@pytest.mark.django_db(transaction=True)
def test_a_listener_that_breaks_costs_no_stored_event():
    stop = commit_listeners.on_committed(lambda stored: 1 / 0)
    try:
        (stored,) = log.append([message_event("a")])
    finally:
        stop()

    assert stored.seq == log.head("a") == 1


@pytest.mark.django_db(transaction=True)
def test_what_rides_along_runs_again_with_its_batch_and_takes_it_down_when_it_fails():
    runs = []

    log.append([message_event("a", id="one")], in_same_transaction=lambda: runs.append(Event.objects.count()))
    log.append(
        [message_event("a", id="one"), message_event("a", id="two")],
        in_same_transaction=lambda: runs.append(Event.objects.count()),
    )

    assert runs == [1, 2]
    with pytest.raises(Conflict):
        log.append([message_event("a", id="three")], in_same_transaction=_lose)
    assert Event.objects.count() == 2


def _lose():
    raise Conflict("another one moved it")


def test_the_same_signal_twice_in_one_batch_is_one_post():
    go = from_text("signal:go", "{}", AGENT, "b1")
    stop = from_text("signal:go", '{"n":1}', AGENT, "b1")
    named = event("a", topic="signal:go", bus_id="b1")

    first, again, other, elsewhere = log.append([go, go, stop, named])

    assert [first.is_new, again.is_new, again.clashes] == [True, False, False]
    assert [other.clashes, elsewhere.clashes] == [True, True]
    assert Post.objects.values_list("body", flat=True).get() == "{}"


def test_a_transaction_looks_its_tokens_up_once(monkeypatch):
    looked_up = []
    read = sql.rows_of
    monkeypatch.setattr(token_check, "rows_of", lambda *query: looked_up.append(query[1]) or read(*query))
    monkeypatch.setattr(token_access, "_TOKEN", "no second look")

    log.append([message_event("a"), message_event("b")], checks_tokens=True)

    assert len(looked_up) == 1


def test_tokens_of_a_batch_are_refused_once_they_are_revoked():
    Token.objects.create(name="robot", digest="d" * 64, revoked_at=timezone.now())

    with pytest.raises(token_check.TokenRevoked, match="token:robot"):
        log.append([message_event("a")], checks_tokens=True)

    assert not Conversation.objects.exists()


def test_the_old_secret_of_a_rotated_token_stores_nothing():
    Token.objects.create(name="robot", digest="new")
    old, new = (event("a", principal=principals.token_principal("robot", digest)) for digest in ("old", "new"))

    with pytest.raises(token_check.TokenRevoked) as refused:
        log.append([old, new], checks_tokens=True)
    log.append([new], checks_tokens=True)

    assert refused.value.holders == {("token:robot", "old")}
    assert Event.objects.count() == 1
