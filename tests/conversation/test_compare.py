"""Two sequences side by side: where they part, whatever ids and times they have."""

import json
import re

import pytest

from conversations.conversation import compare
from conversations.conversation import fork as forks
from conversations.core import principals
from conversations.core.errors import NotFound
from conversations.events import log
from conversations.models import Agent, Conversation, Event, Run, ToolSchema
from conversations.runs.approvals import decide
from tests.support import teamwork
from tests.support.cast import client_of
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
ROBOT, RUN = principals.token_principal("robot"), principals.run_principal("Dialogue")


def message_payload(words, sender="user", **more):
    return {"type": "message", "sender": sender, "recipient": "agent:A", "content": words, **more}


def call(tool, call_id, output, **args):
    step = {"event": "tool_step", "name": tool, "tool_call_id": call_id, "agent": "A"}
    yield step | {"status": "start", "args": args}
    yield step | {"status": "success", "output": output, "duration_ms": len(call_id)}


def tell(key, *payloads):
    log.append([unchecked(key, payload, ROBOT) for payload in payloads])


def decided(team, key, kind, decision, **more):
    """Have Dialogue ask to file an incident of a kind, and April decide; an edit changes the kind to gas."""
    parameters = {"type": "object", "properties": {"kind": {"type": "string"}}}
    body = json.dumps({"params_json_schema": parameters})
    ToolSchema.objects.get_or_create(hash="cd" * 32, defaults={"name": "file_incident", "body": body})
    if not Agent.objects.exists():
        teamwork.team()
    approval = teamwork.ask(team["operator"], key=key, schema="cd" * 32, args={"kind": kind})
    edits = {"arguments": {"kind": "gas"}} if decision == "edit" else {}
    decide.decide(team["approver"], approval.id, decision, **edits, **more)


def compared(a, b):
    return compare.compare(compare.side_of(a), compare.side_of(b))


def test_the_same_steps_under_other_ids_and_times_do_not_part():
    for key, number in (("a", 1), ("b", 22)):
        tell(
            key,
            message_payload("Refund Ada."),
            *call("find", f"c{number}", {"id": 4, "n": 1}, name="Ada"),
            message_payload("Done.", "agent:A"),
        )

    comparison = compared("a", "b")

    assert (comparison.is_divided, comparison.same) == (False, 3)


def test_steps_with_half_a_character_are_compared_like_others():
    for key, words in (("a", "one"), ("b", "two")):
        log.append([unchecked(key, message_payload(f"{words} half \ud83d"), ROBOT)])

    assert compared("a", "b").is_divided


def test_the_order_of_arguments_and_late_outputs_make_no_difference():
    left, other = list(call("f", "1", "x", a=1, b=2)), list(call("g", "2", "y"))
    tell("a", *left, *other)
    swapped = [left[0] | {"args": {"b": 2, "a": 1}}, other[0], other[1], left[1]]
    tell("b", *swapped)

    assert not compared("a", "b").is_divided


@pytest.mark.parametrize(
    ("steps", "parts"),
    [
        (list(call("refund", "c", "ok", to="Bo")), ("arguments",)),
        (list(call("refund", "c", "gone", to="Ada")), ("output",)),
        (list(call("charge", "c", "ok", to="Ada")), ("tool",)),
        ([message_payload("No.", "agent:A")], ()),
    ],
)
def test_the_first_difference_is_found_and_named(steps, parts):
    tell("a", message_payload("Refund Ada."), *call("refund", "c", "ok", to="Ada"), message_payload("Done.", "agent:A"))
    tell("b", message_payload("Refund Ada."), *steps, message_payload("Done.", "agent:A"))

    comparison = compared("a", "b")

    first = next(pair for pair in comparison.pairs if not pair.is_same)
    assert (comparison.same, comparison.is_divided, first.parts) == (1, True, parts)
    assert comparison.pairs[0].is_same
    assert comparison.pairs[-1].is_same  # what is the same again later stands beside itself


def test_one_that_goes_on_parts_where_the_other_ends():
    tell("a", message_payload("one"), message_payload("two"))
    tell("b", message_payload("one"))

    comparison = compared("a", "b")

    assert (comparison.same, comparison.is_divided) == (1, True)
    assert (comparison.pairs[-1].first.words, comparison.pairs[-1].second) == ("two", None)


def test_a_fork_is_compared_from_where_it_begins(team):
    tell("a", *[message_payload(f"{n}") for n in range(100)])
    fork = forks.fork(team["operator"], "a", 90, words="other words").conversation

    comparison = compared("a", fork)

    first = next(pair for pair in comparison.pairs if not pair.is_same)
    assert (comparison.shared, first.first.words, first.second.words) == (89, "89", "other words")
    assert first.parts == ("sender", "text")
    assert compared(fork, "a").shared == 89
    assert compared("a", forks.fork(team["operator"], "a", 100).conversation).is_divided is False


def test_arguments_that_a_person_changed_are_compared_as_they_ran(team):
    for key, kind, decision in (("a", "gas", "approve"), ("b", "water", "edit"), ("c", "water", "approve")):
        decided(team, key, kind, decision)

    calls = [pair.second for pair in compared("a", "b").pairs if pair.second and pair.second.kind == "call"]
    parts = [pair.parts for pair in compared("b", "c").pairs if pair.first and pair.first.kind == "call"]

    assert [(step.is_edited, json.loads(step.words)) for step in calls] == [(True, {"kind": "gas"})]
    assert parts == [("arguments",)]


def test_decisions_are_compared_by_what_was_decided_and_by_whom(team):
    decided(team, "a", "water", "approve")
    decided(team, "b", "water", "reject", message="Too late.")
    decided(team, "c", "water", "edit")
    april = client_of(team["approver"])

    html = april.get("/compare/?a=a&b=b").content.decode()
    edited = april.get("/compare/?a=c&b=c").content.decode()

    words = " ".join(re.sub(r"<[^>]*>", " ", html).split())
    assert "april approved" in words
    assert "april rejected" in words
    assert "First difference: decision, reason" in words
    assert "Too late." in words
    assert "april approved with edits" in " ".join(re.sub(r"<[^>]*>", " ", edited).split())
    assert "args_raw" not in edited


def test_what_differs_in_arguments_and_texts_is_marked(team):
    tell("a", *call("file", "c", "ok", kind="water", street="Elm"), message_payload("It is about water.", "agent:A"))
    tell("b", *call("file", "c", "ok", kind="gas", street="Elm"), message_payload("It is about gas.", "agent:A"))

    html = client_of(team["viewer"]).get("/compare/?a=a&b=b").content.decode()

    assert re.findall(r"<del>(.*?)</del>", html) == ["water", "water"]
    assert re.findall(r"<ins>(.*?)</ins>", html) == ["gas", "gas"]


def test_a_replay_is_no_step_of_what_it_replays(team):
    decided(team, "a", "water", "approve")
    decided(team, "b", "water", "approve")
    run = {"run_id": "r2", "agent": "Dialogue", "tool_call": "t2", "tool_call_id": "c2", "name": "file_incident"}
    request = {"event": "replay.requested", **run, "replay_of": "t1", "team": "t", "effect": "read", "args_raw": "{}"}
    later = [
        {"event": "approval.requested", **run, "approval_id": "again", "replay_of": "t1", "args": {"kind": "fire"}},
        {"event": "approval.decided", **run, "approval_id": "again", "decision": "reject"},
        {"event": "run.failed", "run_id": "r2", "agent": "Dialogue", "error": "no"},
    ]
    otto = principals.user_principal("otto")
    log.append([unchecked("b", request, otto)])
    log.append([unchecked("b", payload, otto if "decided" in payload["event"] else RUN) for payload in later])
    tell("a", message_payload("Done.", "agent:A"))
    tell("b", message_payload("Done.", "agent:A"))

    assert not compared("a", "b").is_divided
    tell("b", {**request, "run_id": "r3"}, message_payload("More.", "agent:A") | {"run_id": "r3"})
    assert compared("a", "b").is_divided, "a replay that is only claimed hides nothing"


def test_two_forks_share_what_both_have_copied(team):
    tell("a", message_payload("1"), message_payload("2"), message_payload("3"))
    short, long = (forks.fork(team["operator"], "a", at).conversation for at in (1, 3))

    assert compared(short, long).shared == compared(long, short).shared == 1


def test_two_runs_are_compared_with_what_they_answered(team):
    Agent.objects.create(team="t", name="A", is_entry=True)
    otto = principals.user_principal("otto")
    for words, answer in (("same", "yes"), ("same", "no")):
        log.append([unchecked("c", message_payload(words, "user:otto"), otto)])
        run = Run.objects.latest("queued_seq")
        facts = {"run_id": run.id, "agent": "A"}
        payloads = [
            {"event": "run.started", "attempt": 1, "worker": "w"},
            {"event": "output", "text": answer, "turn": 1},
        ]
        log.append(
            [
                unchecked("c", payload | facts, principals.run_principal("A"))
                for payload in [*payloads, {"event": "run.done"}]
            ]
        )

    first, second = Run.objects.order_by("queued_seq")
    panel = client_of(team["viewer"]).get("/conversations/c/panel/").content.decode()
    assert f'href="/compare/?a=c%40{first.id}&amp;b=c%40{second.id}"' in panel
    comparison = compared(f"c@{first.id}", f"c@{second.id}")

    assert [(p.first.words, p.second.words, p.is_same) for p in comparison.pairs] == [
        ("same", "same", True),
        ("yes", "no", False),
    ]


@pytest.mark.parametrize("name", ["none", "c@none", "@", "none@none"])
def test_what_is_not_there_is_said(name):
    tell("c", message_payload("one"))

    with pytest.raises(NotFound):
        compare.side_of(name)


def test_an_id_with_an_at_is_an_id():
    tell("ada@example", message_payload("one"))

    assert compare.side_of("ada@example").conversation.key == "ada@example"


def test_the_page_shows_both_sides_and_marks_where_they_part(team):
    tell("a", message_payload("Refund Ada."), *call("refund", "c", "ok", to="Ada"))
    tell("b", message_payload("Refund Ada."), *call("refund", "c", "ok", to="Bo"))
    vera = client_of(team["viewer"])

    html = vera.get("/compare/?a=a&b=b").content.decode()

    assert html.count('id="parting"') == 1
    assert "First difference: arguments" in html
    assert "They differ after 1 equal step." in html
    assert "/conversations/b/?event=2#e2" in html
    assert re.findall(r'<input class="input" id="side-(\w)"', vera.get("/compare/").content.decode()) == ["a", "b"]
    assert vera.get("/compare/?a=a&b=none").status_code == 404
    assert "No difference in 2 steps." in vera.get("/compare/?a=a&b=a").content.decode()


def test_what_is_not_there_is_told_over_the_form_that_asked_for_it(team):
    tell("a", message_payload("Refund Ada."))

    answer = client_of(team["viewer"]).get("/compare/?a=a&b=none")

    html = answer.content.decode()
    assert answer.status_code == 404
    assert "There is no conversation or run &#39;none&#39;" in html
    assert 'name="a" required maxlength="400" value="a"' in html
    assert 'name="b" required maxlength="400" value="none"' in html


def test_each_side_offers_its_runs_and_chooses_its_own(team):
    Agent.objects.create(team="t", name="A", is_entry=True)
    for words in ("one", "two", "three"):
        log.append([unchecked("c", message_payload(words, "user:otto"), principals.user_principal("otto"))])
    run = Run.objects.earliest("queued_seq")
    tell("d", message_payload("one"))

    html = client_of(team["viewer"]).get(f"/compare/?a=d&b=c@{run.id}").content.decode()

    first, second = html.split('<select class="input" id="side-b"')
    assert re.findall(r'value="(\S+?)" selected', first) == ["d"]
    assert re.findall(r'value="(\S+?)" selected', second) == [f"c@{run.id}"]
    assert second.count('<option value="c@') == 3


def test_what_lies_between_a_run_and_its_end_is_looked_at_to_a_bound(monkeypatch):
    tell(
        "c", message_payload("one"), *[{"event": "token", "text": f"{n} ", "index": n, "agent": "A"} for n in range(50)]
    )
    tell("c", *[message_payload(f"{n}") for n in range(600)], message_payload("last"))
    tell("d", message_payload("one"), *[message_payload(f"{n}") for n in range(600)], message_payload("another"))

    assert compared("c", "d").same == 601  # tokens are neither here nor there
    monkeypatch.setattr(compare, "MAX_LOOKED", 500)
    comparison = compared("c", "d")

    assert (comparison.is_cut, comparison.is_divided) == (True, False)


def test_comparing_changes_nothing(team):
    tell("a", message_payload("one"))
    before = Event.objects.count(), Conversation.objects.values_list("head_seq", flat=True).get()

    client_of(team["viewer"]).get("/compare/?a=a&b=a")

    assert before == (Event.objects.count(), Conversation.objects.values_list("head_seq", flat=True).get())
