"""One call's page, two calls compared, the form that makes a call again, and what a question would be today."""

import json
import re
import sys

import pytest

from conversations.access.accounts.edit_grants import give_grant
from conversations.core import principals
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Agent, Approval, Run, ToolCall
from conversations.models.approval import DECISION_WORDS
from conversations.runs.approvals import auto_approval, auto_approval_edit, decide
from conversations.runs.policy.edit_policy import set_policy
from conversations.runs.policy.evaluate import PolicyRule
from conversations.runs.replay import request_replay
from conversations.tool_calls import call_record
from tests.support import toolcalls
from tests.support.cast import client_of
from tests.support.live import until
from tests.support.replay_desk import Desk, ended, working
from tests.support.visits import text_of, words

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def test_a_page_tells_all_of_a_call(people, desk):
    calls = desk.recorded("look", "send")
    answer = client_of(people["viewer"]).get(f"/calls/{calls['look'].id}/")

    page_text = text_of(answer)
    assert answer.status_code == 200
    for text in ("Public name look", "Lookup key bare:look", "Origin function", "Call ID from the provider c-look"):
        assert text in page_text
    for text in ("street string yes", "Verbatim", "Timing next to other calls of its run", "tool_step, event"):
        assert text in page_text
    assert f'href="/calls/{calls["send"].id}/"' in words(answer), "its sibling"
    assert "memory, function_call" in page_text
    assert "Replaying calls requires the operator" not in page_text  # nobody serves it: that is said first
    assert "Clerk is not available now: no worker runs it" in page_text


def test_of_a_call_that_needed_no_approval_the_outcome_comes_first(people, desk):
    call = desk.recorded("look")["look"]

    headings = re.findall(r"<h2[^>]*>(\w+)", words(client_of(people["viewer"]).get(f"/calls/{call.id}/")))

    assert headings.index("Outcome") < headings.index("Decision")


@pytest.mark.slow
def test_the_head_leads_to_the_calls_that_one_may_be_compared_with(people, desk):
    calls = desk.recorded("look", "send")
    call, lone = calls["look"], calls["send"]
    _, replay = desk.again(people["operator"], call)
    viewer = client_of(people["viewer"])

    head = words(viewer.get(f"/calls/{call.id}/?part=outcome")).partition("</h1>")[2].partition('<p class="lede">')[0]
    offered = {old.id: viewer.get(f"/calls/compare/?a={old.id}") for old in (call, replay, lone)}

    assert f'href="/calls/compare/?a={call.id}">Compare</a>' in head
    assert f'?a={call.id}&b={replay.id}"' in words(offered[call.id])
    assert f'?a={replay.id}&b={call.id}"' in words(offered[replay.id])
    assert ["event" in text_of(offered[call.id]), "original" in text_of(offered[replay.id])] == [True, True]
    assert "There is no other call of this tool" in text_of(offered[lone.id])


def test_two_calls_compared_say_which_is_the_replay(people, desk):
    calls = desk.recorded("look", "send")
    _, replay = desk.again(people["operator"], calls["look"])
    viewer = client_of(people["viewer"])

    def sides(first, second):
        html = words(viewer.get(f"/calls/compare/?a={first.id}&b={second.id}"))
        assert '="ago"' in html
        return re.findall(r'aria-label="(\w+) call"', html)

    assert sides(calls["look"], replay) == ["Original", "Replay"]
    assert sides(replay, calls["look"]) == ["Replay", "Original"]
    assert sides(calls["look"], calls["send"]) == ["First", "Second"]


@pytest.mark.parametrize("decision", decide.DECISIONS)
def test_a_call_names_the_decision_as_every_other_page_does(people, decision):
    log.append(toolcalls.ours("desk", "run", 1, decision=decision, args_raw='{"amount": 2}'))

    answer = client_of(people["viewer"]).get(f"/calls/{ToolCall.objects.get().id}/")

    assert f"Decision {DECISION_WORDS[decision].capitalize()} by" in text_of(answer)


def test_what_happens_while_a_page_is_drawn_is_told_after_it(people, desk, monkeypatch):
    call = desk.recorded("look")["look"]
    read, meanwhile = call_record.replays, {"event": "log", "message": "It rains.", "id": "rain"}

    def replays_(call_row):
        log.append([log.from_internal("c", meanwhile, SYSTEM)])
        return read(call_row)

    before = log.head("c")
    monkeypatch.setattr(call_record, "replays", replays_)
    page = words(client_of(people["viewer"]).get(f"/calls/{call.id}/"))

    assert log.head("c") == before + 1
    assert f'data-after="{before}"' in page


@pytest.mark.slow
def test_calls_anywhere_lead_to_their_page(people, desk):
    call, viewer = desk.recorded("look")["look"], client_of(people["viewer"])

    for page in ("/conversations/c/", "/tools/test/look/"):
        assert f'href="/calls/{call.id}/"' in words(viewer.get(page)), page


def test_a_page_of_nothing_is_not_found(people):
    viewer = client_of(people["viewer"])

    assert [viewer.get(f"/calls/{id}/").status_code for id in ("nowhere", "%00", "x" * 300)] == [404] * 3
    compared = viewer.get("/calls/compare/?a=x&b=y")
    assert compared.status_code == 404
    assert "There is no tool call &#39;x&#39;" in compared.content.decode()
    assert 'name="b" data-code value="y"' in compared.content.decode()
    assert viewer.get("/calls/compare/").status_code == 200


@pytest.mark.slow
def test_the_form_shows_it_dry_then_makes_the_call_and_goes_to_the_new_one(people, desk):
    old, otto = desk.recorded("look")["look"], client_of(people["operator"])
    with working(desk.team()):
        dry = otto.post(f"/calls/{old.id}/replays/", {"do": "dry", "arg.street": "Oak"})
        assert "Request to send, with edited arguments" in text_of(dry)
        assert "± changed: street" in text_of(dry)
        assert not Run.objects.filter(kind="replay").exists()

        begun = otto.post(f"/calls/{old.id}/replays/", {"do": "run", "arg.street": "Oak"})
        new = ToolCall.objects.get(replay_of=old.id)
        assert begun["Location"] == f"/calls/{new.id}/#main", "not the form, whose fragment a browser would keep"
        ended(new.run)

    text = text_of(otto.get(f"/calls/{new.id}/"))
    assert "a replay of the call at event" in text
    assert "Call ID of this replay" in text
    assert "Output compared with the recording 2 differences" in text
    assert f'href="/calls/{new.id}/"' in words(otto.get(f"/calls/{old.id}/")), "its replays"
    assert "Output compared with the recording" in text_of(otto.get(f"/calls/{new.id}/?part=outcome"))


@pytest.mark.slow
def test_replay_that_waits_says_so_at_its_head(people, desk):
    old, otto = desk.recorded("look")["look"], client_of(people["operator"])
    set_policy(people["admin"], PolicyRule("", "look", "ask"))
    Agent.objects.update(served_until=1 << 62)  # its worker is busy
    page = otto.post(f"/calls/{old.id}/replays/", {"do": "run"})["Location"].partition("#")[0]
    queued = text_of(otto.get(page))
    with working(desk.team()):
        ended(Run.objects.get(kind="replay").id)
    waiting = text_of(otto.get(page))
    first = text_of(otto.get(f"/calls/{old.id}/"))

    assert "Replay requested; it has not run yet." in queued
    assert "Replay requested; it waits for approval." in waiting
    assert "Replay requested" not in first


@pytest.mark.slow
def test_approver_of_a_replay_reads_who_requested_it_why_and_what_was_changed(people, desk):
    old = desk.recorded("look")["look"]
    set_policy(people["admin"], PolicyRule("", "look", "ask"))
    desk.again(people["operator"], old, arguments={"street": "Oak"}, reason="check that Oak is accepted")
    approval, april = Approval.objects.get(), client_of(people["approver"])

    card, transcript = april.get(f"/approvals/{approval.id}/"), april.get("/conversations/c/")

    for page in (text_of(card), text_of(transcript)):
        assert "otto wants to replay a call of look" in page
        assert "Reason: check that Oak is accepted" in page
        assert f'Arguments changed from the call at event {old.called_seq} : street was "Elm" "Oak"' in page
        assert "Clerk wants to call" not in page
    assert f'<a href="/calls/{old.id}/">a call</a>' in words(card)
    assert '<span class="clip" dir="auto">otto</span><span class="tag">replay</span>' in words(card)
    listed = text_of(april.get("/"))
    assert "Replay of look waits for approval" in listed
    assert "wants to call" not in listed


@pytest.mark.slow
def test_a_dry_press_says_that_nothing_was_started(people, desk):
    old, otto = desk.recorded("look")["look"], client_of(people["operator"])
    with working(desk.team()):
        as_it_was, other = (
            text_of(otto.post(f"/calls/{old.id}/replays/", {"do": "dry", "arg.street": street}))
            for street in ("Elm", "Oak")
        )
        untouched = text_of(otto.get(f"/calls/{old.id}/"))

    assert "Dry run: nothing was called. Below is the request with the recorded arguments." in as_it_was
    assert "Dry run: nothing was called. Below is the request with the edited arguments." in other
    assert "nothing was called" not in untouched


def test_a_call_that_nobody_was_asked_about_says_so(people, desk):
    ours = desk.recorded("look")["look"]
    log.append(toolcalls.call("theirs", 1))
    theirs = ToolCall.objects.get(conversation__key="theirs")
    vera = client_of(people["viewer"])

    assert "Decision This call needed no approval." in text_of(vera.get(f"/calls/{ours.id}/"))
    assert "Decision Not decided here: the agent runs elsewhere" in text_of(vera.get(f"/calls/{theirs.id}/"))


def test_an_imported_call_says_when_it_happened_and_when_it_came_here(people):
    step = {"event": "tool_step", "name": "refund", "args": {}, "created_at": "2025-08-01T16:22:31Z"}
    log.append([toolcalls.event("old", step, principals.import_principal("file"))])

    text = text_of(client_of(people["viewer"]).get(f"/calls/{ToolCall.objects.get().id}/"))

    assert re.search(r"event 1 , 16:22:31 , imported now", text)


def test_an_untouched_form_sends_what_was_recorded(people, desk):
    old, otto = desk.recorded("put")["put"], client_of(people["operator"])
    with working(desk.team()):
        answer = otto.post(f"/calls/{old.id}/replays/", {"do": "run", "arg.street": "Elm", "reason": "", "tool": ""})
        assert answer.status_code == 302
        ended(ToolCall.objects.get(replay_of=old.id).run)

    assert desk.ran == [f"put Elm {old.id}"] * 2


@pytest.mark.slow
def test_what_is_missing_is_told_beside_the_form(people, desk):
    old = desk.recorded("send")["send"]
    with working(desk.team()):
        ada, otto = client_of(people["admin"]), client_of(people["operator"])
        no_reason = ada.post(f"/calls/{old.id}/replays/", {"do": "run", "arg.street": "Elm"})
        no_grant = otto.post(f"/calls/{old.id}/replays/", {"do": "run-raw", "raw": '{"street": "Elm"}'})
        unfit = ada.post(f"/calls/{old.id}/replays/", {"do": "dry-raw", "raw": '{"street": 1}'})

    assert (no_reason.status_code, no_grant.status_code, unfit.status_code) == (422, 403, 200)
    assert "A reason is required: send is unsafe" in text_of(no_reason)
    assert "this requires a grant; an admin can grant it" in text_of(no_grant)
    assert "street: 1 is not of type 'string'" in text_of(unfit)
    assert len(desk.ran) == 1


def test_whether_a_grant_is_missing_is_said_to_those_who_lack_it(people, desk):
    calls = desk.recorded("send", "put")
    ada, otto = client_of(people["admin"]), client_of(people["operator"])

    def page_of(client, name="send"):
        text = words(client.get(f"/calls/{calls[name].id}/"))
        return re.findall(r'value="(run[^"]*)"[^>]*disabled', text), text[text.index('id="replay"') :]

    with working(desk.team()):
        of_admin, without, keyed = page_of(ada), page_of(otto), page_of(otto, "put")
        give_grant(people["admin"], "otto", "replay", "send", reason="covers for the desk")
        granted = page_of(otto)

    assert without[0] == ["run", "run-raw"]
    assert "You have no grant for this; an admin can give you one on the People page." in without[1]
    assert (keyed[0], "also need a grant, which you do not have" in keyed[1]) == ([], True)
    assert [(off, "grant" in text) for off, text in (of_admin, granted)] == [([], False)] * 2


def test_a_browser_asks_for_reason_and_name_of_a_call_but_not_of_a_dry_look(people, desk):
    calls, ada = desk.recorded("send", "put"), client_of(people["admin"])
    with working(desk.team()):
        unsafe, free = (words(ada.get(f"/calls/{calls[name].id}/")) for name in ("send", "put"))

    fields = [re.search(rf'<input class="input" name="{name}"[^>]*>', unsafe) for name in ("reason", "tool")]
    assert all(field and " required" in field[0] for field in fields)
    assert not re.search(r'name="(reason|tool)"[^>]* required', free)
    assert 'value="dry" formnovalidate>' in unsafe


@pytest.mark.slow
def test_programs_read_a_call_and_make_it_again(people, desk):
    old, ada = desk.recorded("look")["look"], client_of(people["admin"])
    with working(desk.team()):
        item = ada.get(f"/api/v1/tool-calls/{old.id}").json()
        dry = ada.post(f"/api/v1/tool-calls/{old.id}/replays", "{}", content_type="application/json").json()
        edited = ada.post(
            f"/api/v1/tool-calls/{old.id}/replays", '{"arguments": {"street": "Oak"}}', content_type="application/json"
        ).json()
        body = json.dumps({"dry": False, "arguments": {"street": "Oak"}})
        begun = ada.post(f"/api/v1/tool-calls/{old.id}/replays", body, content_type="application/json")
        ended(begun.json()["run_id"])
        again = ada.get(f"/api/v1/tool-calls/{old.id}").json()

    assert (item["arguments"], item["output"]["nth"], item["today"]["takes"]) == ({"street": "Elm"}, 1, [])
    assert (dry["request"]["key"], dry["recorded"]["id"]) == (old.id, old.id)
    assert (dry["request"]["edited"], edited["request"]["edited"], edited["request"]["key"]) == (False, True, "")
    assert begun.status_code == 201
    assert again["replays"] == [{"id": begun.json()["tool_call"], "run_id": begun.json()["run_id"], "status": "done"}]


@pytest.mark.slow
def test_a_question_says_what_would_happen_today_and_starts_nothing(people, desk):
    set_policy(people["admin"], PolicyRule("", "look", "ask"))
    desk.recorded("look")
    (approval,) = Approval.objects.all()
    april = client_of(people["approver"])

    with working(desk.team()):
        asks = text_of(april.get(f"/approvals/{approval.id}/"))
        set_policy(people["admin"], PolicyRule("", "look", "deny", note="closed"))
        denies = text_of(april.get(f"/approvals/{approval.id}/"))
    with working(desk.team(tools=[desk.tool("send")])):
        gone = text_of(april.get(f"/approvals/{approval.id}/"))

    assert "What would happen today" in asks
    assert "It would need approval Policy requires approval (set by user:ada)" in asks
    assert "It would be denied without asking" in denies
    assert "It cannot be called" in gone
    assert (len(desk.ran), Approval.objects.count()) == (0, 1)


@pytest.mark.slow
def test_a_question_that_a_rule_would_answer_today_says_so_and_no_rule_answers_a_replay(people, desk):
    set_policy(people["admin"], PolicyRule("", "look", "ask"))
    desk.recorded("look")
    (approval,) = Approval.objects.all()
    april = client_of(people["approver"])

    with working(desk.team()):
        auto_approval_edit.approve_and_make_rule(
            people["approver"], approval.id, auto_approval_edit.AutoApprovalScope()
        )
        until(lambda: ToolCall.objects.get().status == "done", what="the call")
        text = text_of(april.get(f"/approvals/{approval.id}/"))
        replay = request_replay.request_replay(people["operator"], ToolCall.objects.get().id)
        assert ended(replay.run).status == "waiting"
        assert auto_approval.approve_waiting() == []

    assert "It would run: an auto-approval rule applies" in text
    assert "The rule was created by user:april" in text
    assert len(desk.ran) == 1


_events_received: list[str] = []
_is_listening = False
STARTS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.fork", "os.exec", "socket.connect", "socket.bind")


def _hear(event, _):
    if _is_listening and event in STARTS:
        _events_received.append(event)


@pytest.mark.slow
def test_looking_comparing_and_dry_replays_start_nothing_and_ask_nobody(people, desk):
    global _is_listening
    calls = desk.recorded("look", "send")
    Agent.objects.update(served_until=1 << 62)  # as if a worker served it: none runs
    first, other, ada = calls["look"].id, calls["send"].id, client_of(people["admin"])
    sys.addaudithook(_hear)  # none can be taken away: this one listens for a moment
    before = Run.objects.count(), desk.ran, ToolCall.objects.count()

    _is_listening = True
    try:
        answers = [
            ada.get(f"/calls/{first}/"), ada.get(f"/calls/{other}/?part=outcome"),
            ada.get(f"/calls/compare/?a={first}&b={other}"),
            ada.post(f"/calls/{other}/replays/", {"do": "dry", "arg.street": "Oak"}),
            ada.get(f"/api/v1/tool-calls/{first}"),
            ada.post(f"/api/v1/tool-calls/{other}/replays", "{}", content_type="application/json"),
        ]  # fmt: skip
    finally:
        _is_listening = False

    assert [answer.status_code for answer in answers] == [200] * 6
    assert _events_received == []
    assert (Run.objects.count(), desk.ran, ToolCall.objects.count()) == before
