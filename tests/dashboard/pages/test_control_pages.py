"""Steering over pages and API: the bar over a transcript, the list's filter by state, boxes and alarms."""

import json
import time

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.conversation import control, conversation_list
from conversations.core.errors import Invalid
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Agent, AuditEntry, Conversation, Event
from conversations.runs import claims, stuck_detection
from conversations.runs.approvals import decide
from tests.support import held_run, teamwork

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]


def post(client, body, address="/api/v1/conversations/flood/control"):
    return client.post(address, body, content_type="application/json")


def bar(client, key="flood"):
    return client.get(f"/conversations/{key}/standing/").content.decode()


def test_the_waiting_state_links_to_the_oldest_open_request(browsers, otto):
    request = teamwork.ask(otto)
    place = f"?event={request.asked_seq}#e{request.asked_seq}"

    assert f'href="{place}">Waiting for approval</a>' in bar(browsers["operator"])
    decide.decide(SYSTEM, request.id, "approve")
    assert place not in bar(browsers["operator"])


# the API


def test_the_api_steers_and_tells_how_it_stands(browsers, otto):
    teamwork.say(otto)

    answer = post(browsers["operator"], {"action": "take_over", "reason": "I know her"})

    stands = {"conversation_id": "flood", "state": "person", "paused": False, "owner": "user:otto"}
    assert (answer.status_code, answer.json()) == (200, stands)


def test_the_api_tells_the_second_who_was_first(browsers, otto):
    teamwork.say(otto)
    post(browsers["operator"], {"action": "pause"})

    answer = post(browsers["admin"], {"action": "pause"})

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["by"], error["did"]) == (409, "paused", "user:otto", "paused")
    assert error["at"].endswith("+00:00")


@pytest.mark.parametrize("body", [{}, {"action": "explode"}, {"action": "pause", "reason": "x" * 2001}])
def test_what_is_no_verb_is_refused(browsers, otto, body):
    teamwork.say(otto)

    assert post(browsers["operator"], body).status_code == 400
    assert post(browsers["operator"], {"action": "pause"}, "/api/v1/conversations/none/control").status_code == 404
    assert not Conversation.objects.get().is_held


def test_several_are_steered_each_with_its_own_answer(browsers, otto):
    teamwork.say(otto, "a")
    teamwork.say(otto, "b")
    control.pause(otto, "b")

    body = {"action": "pause", "conversations": ["a", "b", "none"]}
    items = post(browsers["admin"], body, "/api/v1/control").json()["items"]

    assert [(item["conversation_id"], item["status"]) for item in items] == [("a", 200), ("b", 409), ("none", 404)]
    assert items[1]["error"]["by"] == "user:otto"
    assert post(browsers["admin"], body | {"conversations": []}, "/api/v1/control").status_code == 400
    assert post(browsers["viewer"], body, "/api/v1/control").status_code == 403


def test_forms_without_scripts_lead_back(browsers, otto):
    teamwork.say(otto, "a")
    answer = browsers["operator"].post(reverse("api-control", args=["a"]), {"action": "pause", "reason": " storm "})
    many = {"action": "take_over", "conversation": ["a"], "back": "/?state=paused"}

    back = browsers["operator"].post("/api/v1/control", many)

    assert (answer["Location"], back["Location"]) == ("/conversations/a/", "/?state=paused")
    assert json.loads(Event.objects.get(kind="conversation.paused").body)["reason"] == "storm"
    late = browsers["admin"].post("/api/v1/control", many | {"back": "//elsewhere.example"})
    assert late.status_code == 409
    assert "1 of 1 not done. a: someone has already taken over: user:otto took over" in late.content.decode()
    many["action"] = "hand_back"
    assert browsers["operator"].post("/api/v1/control", many | {"back": "//x.example"})["Location"] == "/"
    assert browsers["operator"].post(reverse("api-control", args=["a"]), {"action": "hand_back"}).status_code == 409


# the bar


def verbs_of(html):
    return [part.split('"')[0] for part in html.split('name="action" value="')[1:]]


def test_the_bar_has_the_verbs_of_the_moment(browsers, team, otto):
    teamwork.say(otto)
    operator, admin = browsers["operator"], browsers["admin"]
    assert verbs_of(bar(operator)) == ["pause", "take_over", "stop"]
    teamwork.claim()
    assert verbs_of(bar(operator)) == ["pause", "take_over", "stop", "abort"]
    control.stop(otto, "flood")
    assert verbs_of(bar(operator)) == ["pause", "take_over", "abort"]
    control.take_over(otto, "flood")
    control.pause(team["admin"], "flood", "a <b>storm</b>")

    mine, theirs = bar(operator), bar(admin)

    assert verbs_of(mine) == verbs_of(theirs) == ["resume", "hand_back", "abort"]
    assert "data-needs-reason" in theirs
    assert "data-needs-reason" not in mine
    assert "You took over" in mine
    assert "a &lt;b&gt;storm&lt;/b&gt;" in theirs
    assert "is finishing its turn, then stops" in mine


@pytest.mark.parametrize("role", ["viewer", "approver", "auditor"])
def test_who_may_not_steer_sees_how_it_stands_and_no_button(browsers, otto, role):
    teamwork.say(otto)
    control.take_over(otto, "flood")

    for html in (bar(browsers[role]), browsers[role].get("/conversations/flood/").content.decode()):
        assert "took over" in html
        assert verbs_of(html) == []


def test_what_waits_for_an_answer_is_counted(browsers, otto):
    teamwork.say(otto)
    control.take_over(otto, "flood")
    teamwork.say(otto, client_id="2")

    assert "2 unanswered" in bar(browsers["viewer"])


def test_how_it_was_steered_stands_in_the_transcript(browsers, otto):
    teamwork.say(otto)
    for verb in ("pause", "resume", "take_over", "hand_back", "stop"):
        control.perform(otto, verb, "flood", "the <i>dam</i>")

    page = browsers["viewer"].get("/conversations/flood/").content.decode()

    for words in ("paused", "resumed", "took over", "handed control back to the agents", "was stopped"):
        assert words in page
    assert page.count("the &lt;i&gt;dam&lt;/i&gt;") == 6  # the last: under the message whose run it ended


# the list


def test_the_list_is_filtered_by_state(browsers, team, otto):
    for key in ("open", "paused", "his", "hers"):
        teamwork.say(otto, key)
    control.pause(otto, "paused")
    control.take_over(otto, "his")
    control.pause(otto, "his")
    control.take_over(team["admin"], "hers")
    teamwork.ask(otto, "asking")

    def keys(state):
        return {row.key for row in conversation_list.newest_conversations(state=state, reader=otto).rows}

    assert keys("open") == {"open", "asking"}
    assert keys("paused") == {"paused"}
    assert keys("person") == {"his", "hers"}
    assert keys("mine") == {"his"}
    assert keys("waiting") == {"asking"}
    with pytest.raises(Invalid):
        keys("odd")
    page = browsers["operator"].get("/?state=mine").content.decode()
    assert 'data-key="his"' in page
    assert 'data-key="hers"' not in page
    assert '<option value="mine" selected>' in page
    assert browsers["operator"].get("/?state=odd").status_code == 400
    for role, state, listed in (
        ("viewer", "paused", ["paused"]),
        ("operator", "mine", ["his"]),
        ("viewer", "mine", []),
    ):
        items = browsers[role].get(f"/api/v1/conversations?state={state}").json()["items"]
        assert [item["conversation_id"] for item in items] == listed


def test_only_who_may_steer_has_verbs_over_a_selection(browsers, otto):
    teamwork.say(otto)

    assert "data-bulk" in browsers["operator"].get("/").content.decode()
    assert "data-bulk" not in browsers["viewer"].get("/").content.decode()
    assert 'id="bulk"' in browsers["operator"].get("/?part=bulk").content.decode()


# what looks stuck


def call(claimed, n, args):
    payload = {
        "event": "tool_step",
        "name": "file_incident",
        "tool_call": f"{claimed.run[:20]}-{n}",
        "agent": "Dialogue",
    }
    claims.begin_execution(claimed, {**payload, "tool_call_id": f"c{n}", "status": "start", "args": args, "turn": n})


def alarm():
    return stuck_detection.stuck_runs([Conversation.objects.get().pk]).get(Conversation.objects.get().pk)


def test_the_same_call_over_and_over_looks_stuck(browsers, otto):
    teamwork.say(otto)
    claimed = teamwork.claim()
    for n in range(settings.CONFIG.stuck_same_calls - 1):
        call(claimed, n, {"street": "Elm"})
    call(claimed, 90, {"street": "Oak"})
    assert alarm() is None

    call(claimed, 99, {"street": "Elm"})

    assert (alarm().kind, alarm().words) == ("repeats", "called file_incident 5 times with the same arguments")
    assert "Looks stuck" in bar(browsers["viewer"])
    row = browsers["operator"].get("/").content.decode()
    assert "looks stuck" in row
    assert 'formaction="/api/v1/conversations/flood/control"' in row


def test_the_same_turn_over_and_over_looks_stuck(otto):
    """A loop in which no tool is called: two agents that hand over to each other."""
    teamwork.say(otto)
    claimed = teamwork.claim()
    for turn in range(1, settings.CONFIG.stuck_same_calls):
        write_turn(claimed, turn, "I hand you over.")
        write_turn(claimed, turn, f"I am in turn {turn}.")
        write_turn(claimed, turn, "")
        write_turn(claimed, turn, "I hand you over.", agent="Triage")
    assert alarm() is None

    write_turn(claimed, 99, "I hand you over.")

    assert (alarm().kind, alarm().words) == ("repeats", "said the same 5 times")


def write_turn(claimed, turn, text, agent="Dialogue"):
    log.append([claimed.event({"event": "output", "text": text, "turn": turn, "agent": agent})])


def test_a_run_without_progress_looks_stuck_whoever_else_speaks(otto):
    teamwork.say(otto)
    claimed = teamwork.claim()
    long_ago = time.time_ns() // 1000 - int(settings.CONFIG.stuck_silence_s * 1e6) - 10_000_000
    Event.objects.filter(run=claimed.run).update(at=long_ago)
    teamwork.say(otto, client_id="2")

    assert alarm().kind == "silent"
    assert alarm().words == "has made no progress for 3 min"
    log.append([claimed.event({"event": "token", "text": "x", "index": 0, "turn": 1})])
    assert alarm() is None


def test_few_turns_left_looks_stuck(otto):
    Agent.objects.filter(name="Dialogue").update(max_turns=20)
    teamwork.say(otto)
    claimed = teamwork.claim()
    log.append([claimed.event({"event": "model.turn", "turn": n, "model": "demo"}) for n in range(1, 18)])
    assert alarm() is None

    log.append([claimed.event({"event": "model.turn", "turn": 18, "model": "demo"})])

    assert alarm().words == "is on turn 18 of 20"


def test_turns_inside_calls_and_further_messages_of_an_answer_are_none_of_the_runs_limit(otto):
    Agent.objects.filter(name="Dialogue").update(max_turns=20)
    teamwork.say(otto)
    claimed = teamwork.claim()
    inner = {"event": "model.turn", "model": "demo", "parent_call": "ask", "agent": "Triage"}
    log.append([claimed.event(inner | {"turn": n}) for n in range(1, 18)])
    write_turn(claimed, 18, "One more thing.")
    log.append([claimed.event({"event": "model.turn", "turn": n, "model": "demo"}) for n in range(19, 36)])
    assert alarm() is None

    log.append([claimed.event({"event": "model.turn", "turn": 36, "model": "demo"})])

    assert alarm().words == "is on turn 18 of 20"


def test_what_does_not_run_never_looks_stuck(otto):
    teamwork.ask(otto)
    Event.objects.update(at=1)

    assert alarm() is None


def test_alarms_of_many_take_as_many_queries_as_of_one(otto):
    for n in range(9):
        teamwork.say(otto, f"c{n}")
        teamwork.claim(f"c{n}")

    with CaptureQueriesContext(
        connection,
    ) as queries:
        stuck_detection.stuck_runs(list(Conversation.objects.values_list("id", flat=True)))

    assert len(queries) == 1 + 4


def test_a_refused_verb_is_in_the_audit_log_once(browsers, otto):
    teamwork.say(otto)

    post(browsers["viewer"], {"action": "abort"})

    assert AuditEntry.objects.filter(outcome="refused", principal="user:vera").count() == 1


# one question for what a page draws as a conversation goes on


def test_one_answer_has_the_state_the_panel_and_what_becomes_of_words(browsers, otto):
    seq = teamwork.say(otto)

    html = browsers["operator"].get(f"/conversations/flood/standing/?of={seq}&as=&to=Dialogue&when=&panel=1")
    page = html.content.decode()

    assert f'data-head="{Conversation.objects.get(key="flood").head_seq}"' in page
    assert all(part in page for part in ("data-standing", "data-sections", "data-prospect-answer", f'data-of="{seq}"'))


def test_only_what_is_asked_for_is_answered_and_nobody_who_may_not_send_hears_what_would_become(browsers, otto):
    teamwork.say(otto)

    plain = bar(browsers["operator"])
    viewer = browsers["viewer"].get("/conversations/flood/standing/?as=&to=Dialogue&when=").content.decode()

    assert not any(part in plain for part in ("data-sections", "data-prospect-answer"))
    assert "data-prospect-answer" not in viewer


def test_an_agent_elsewhere_whose_run_has_ended_is_not_active(browsers):
    teamwork.claim_from_outside("elsewhere", {"event": "run.done", "run_id": "theirs", "agent": "Robot"})

    assert ">Idle</b>" in bar(browsers["viewer"], "elsewhere")
    assert "data-working" not in bar(browsers["viewer"], "elsewhere")


def test_an_agent_elsewhere_is_active_while_its_events_come(browsers):
    teamwork.claim_from_outside("elsewhere", {"event": "output", "agent": "Robot", "text": "one moment"})

    assert ">Robot is active</b>" in bar(browsers["viewer"], "elsewhere")
    assert "data-working" in bar(browsers["viewer"], "elsewhere")
    Conversation.objects.filter(key="elsewhere").update(last_at=F("last_at") - 31_000_000)
    assert ">Idle</b>" in bar(browsers["viewer"], "elsewhere")
    assert "data-working" not in bar(browsers["viewer"], "elsewhere")


def test_an_agent_elsewhere_goes_on_being_active_when_somebody_else_says_something(browsers):
    teamwork.claim_from_outside("elsewhere", {"event": "token", "agent": "Robot", "text": "one mo", "turn": 1})
    teamwork.claim_from_outside("elsewhere", {"event": "user_message", "sender": "user:Rosa", "content": "well?"})

    assert ">Robot is active</b>" in bar(browsers["viewer"], "elsewhere")
    teamwork.claim_from_outside("elsewhere", {"event": "run.done", "run_id": "theirs", "agent": "Robot"})
    teamwork.claim_from_outside("elsewhere", {"event": "user_message", "sender": "user:Rosa", "content": "thanks"})
    assert ">Idle</b>" in bar(browsers["viewer"], "elsewhere")


def test_an_agent_of_ours_is_not_called_active_after_its_run(browsers, otto):
    teamwork.say(otto)
    output = {"event": "output", "text": "It is filed.", "turn": 1, "final": True}
    held_run.finish(teamwork.claim(), output, {"event": "run.done", "duration_ms": 1200})

    assert ">Idle</b>" in bar(browsers["viewer"])
