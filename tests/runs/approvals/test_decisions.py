"""Decisions through the real worker: answers by people, edited arguments, what was approved is what runs; four eyes."""

import json
import re

import pytest
from agents import Agent, ToolGuardrailFunctionOutput, function_tool, tool_input_guardrail
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from agents_app.town_hall import TEAM as TOWN_HALL
from conversations.access.accounts import tokens
from conversations.conversation import post_message
from conversations.core.errors import Conflict, Invalid, NotAllowed
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Approval, Event, Run, Token, ToolCall
from conversations.runs import claims, stop_and_rerun
from conversations.runs.approvals import decide
from conversations.runs.policy.edit_policy import set_policy
from conversations.runs.policy.evaluate import PolicyRule
from dashboard.pages.conversation_entries import entries_of
from tests.support import teamwork
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.cast import audit_summary, client_of, last_entry
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)

SO = [assistant_message("Done so.")]


class Office:
    """A team whose `file` waits for approval; each `team()` is the same one as another process would make it."""

    def __init__(self):
        self.filed = []

    def tool(self):
        @tool_input_guardrail
        def no_gardens(data):
            place = json.loads(data.context.tool_arguments)["street"]
            if place == "Garden":
                return ToolGuardrailFunctionOutput.reject_content("Not in gardens.")
            return ToolGuardrailFunctionOutput.allow()

        @function_tool(needs_approval=True, tool_input_guardrails=[no_gardens])
        def file(street: str, house: int = 1) -> str:
            """File it."""
            self.filed.append((street, house))
            return f"filed at {street} {house}"

        return file

    def team(self, *steps):
        clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[self.tool()])
        return Team(name="office", agents=[clerk], entry=["Clerk"])

    def request_approval(self, call_id="c1"):
        with working(self.team([function_call("file", {"street": "Mill", "house": 1}, call_id=call_id)])):
            send_message()
            ended_runs()
        return Approval.objects.get()

    def goes_on(self):
        team = self.team(SO)
        with working(team):
            (run,) = ended_runs()
        model = team.agents[0].model
        return run, json.dumps(model.first_call.input, default=str) if model.calls else ""


def heard_output(model_input):
    (output,) = [item["output"] for item in json.loads(model_input) if item.get("type") == "function_call_output"]
    return output


def step(status):
    (step,) = [body for body in event_bodies("tool_step") if body["status"] == status]
    return step


@pytest.mark.slow
def test_a_person_answers_and_the_function_is_never_entered(people):
    office = Office()
    approval = office.request_approval()

    decide.decide(people["approver"], approval.id, "respond", output="It was filed by hand.", reason="The tool is slow")
    run, model_input = office.goes_on()

    assert (run.status, office.filed) == ("done", [])
    assert "It was filed by hand." in model_input
    assert [body["status"] for body in event_bodies("tool_step")] == ["success"]
    assert (step("success")["output"], step("success")["answered_by"]) == ("It was filed by hand.", "user:april")
    assert ToolCall.objects.get().status == "done"


@pytest.mark.slow
def test_a_call_runs_with_the_arguments_a_person_wrote_and_the_model_is_told(people):
    office = Office()
    approval = office.request_approval()

    decide.decide(people["approver"], approval.id, "edit", arguments={"street": "Elm", "house": 7})
    run, model_input = office.goes_on()

    assert (run.status, office.filed) == ("done", [("Elm", 7)])
    assert json.loads(heard_output(model_input)) == {
        "output": "filed at Elm 7",
        "changed_by_person": {
            "note": "A person changed the arguments of this call before it ran; the output is of what ran.",
            "ran_with": {"street": "Elm", "house": 7},
            "instead_of": {"street": "Mill", "house": 1},
        },
    }
    assert event_bodies("approval.requested")[0]["args"] == {"street": "Mill", "house": 1}
    assert event_bodies("approval.decided")[0]["args"] == {"street": "Elm", "house": 7}
    assert (step("start")["args"], step("start")["edited_by"]) == ({"street": "Elm", "house": 7}, "user:april")
    assert step("success")["output"] == "filed at Elm 7"
    assert ToolCall.objects.get().status == "done"


@pytest.mark.slow
def test_the_citizen_is_told_what_was_filed_after_an_edit(people):
    with working(TOWN_HALL):
        send_message("A hydrant burst, water everywhere, at Market Square.", to="agent:Dialogue")
        ended_runs()
        (request,) = event_bodies("approval.requested")
        given = request["args"] | {"severity_level": 5, "location": "Elm Street 7"}
        decide.decide(people["approver"], request["approval_id"], "edit", arguments=given)
        until(lambda: Run.objects.filter(status="done"), what="the run to be done")

    filed = next(
        body["output"] for body in event_bodies("tool_step") if body["name"] == "file_incident" and body.get("output")
    )
    answer = event_bodies("output")[-1]["text"]
    assert (request["args"]["severity_level"], set(filed)) == (4, {"reference", "status"})
    assert f"(water, Elm Street 7) is with the city. The reference is {filed['reference']}." in answer
    assert "severity level 5 instead of 4" in answer
    assert "call the emergency services" in answer
    assert "not filed" not in answer


@pytest.mark.slow
def test_a_token_decides_by_its_right_and_is_named(people):
    office = Office()
    approval = office.request_approval()
    tokens.make_token(SYSTEM, "duty", "approver")

    decide.decide(Token.objects.get(name="duty"), approval.id, "approve")
    run, _ = office.goes_on()

    assert (run.status, office.filed) == ("done", [("Mill", 1)])
    assert Approval.objects.get().decided_by == "token:duty"
    assert event_bodies("approval.decided")[0]["by"] == "token:duty"
    assert Event.objects.get(kind="approval.decided").principal == "system"  # from a token it would be a claim
    drawn = "".join(map(str, entries_of(log.newest_page("c"))))
    assert '>approved</span><span>by <b class="name clip" dir="auto" title="duty">duty</b>' in drawn


def test_the_teams_guardrails_look_at_what_a_person_wrote(people):
    office = Office()
    approval = office.request_approval()

    decide.decide(people["approver"], approval.id, "edit", arguments='{"street": "Garden", "house": 7}')
    run, model_input = office.goes_on()

    assert (run.status, office.filed) == ("done", [])
    assert "Not in gardens." in model_input


@pytest.mark.slow
def test_a_rule_that_denies_wins_over_an_approval(people):
    office = Office()
    approval = office.request_approval()
    decide.decide(people["approver"], approval.id, "approve")

    set_policy(people["admin"], PolicyRule("", "file", "deny"))
    run, _ = office.goes_on()

    assert (run.status, office.filed, ToolCall.objects.get().status) == ("done", [], "blocked")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"street": 3, "house": 1}, "street: 3 is not of type 'string'"),
        ({"street": "Elm"}, "'house' is a required property"),
        ({"street": "Elm", "house": 1, "more": 1}, "Additional properties"),
        ('{"street": "Elm", "house": NaN}', "NaN is not valid JSON"),
        ("[1]", "must be a JSON object"),
        ("{", "must be a JSON object"),
        ('{"street": "•••", "house": 1}', "masks a secret"),
        (None, "must be the arguments"),
    ],
)
def test_arguments_that_do_not_fit_the_schema_are_refused_and_the_question_stays(people, arguments, words):
    approval = Office().request_approval()

    with pytest.raises(Invalid, match=words) as wrong:
        decide.decide(people["approver"], approval.id, "edit", arguments=arguments)

    assert wrong.value.field == "arguments"
    assert Approval.objects.get().status == "pending"


def test_what_was_approved_is_what_runs(people):
    office = Office()
    approval = office.request_approval()
    decide.decide(people["approver"], approval.id, "approve")
    event = Event.objects.get(kind="approval.requested")
    other = json.loads(event.body) | {"digest": "0" * 64}
    Event.objects.filter(id=event.id).update(body=json.dumps(other))

    run, _ = office.goes_on()

    assert (run.status, office.filed, ToolCall.objects.get().status) == ("incompatible", [], "blocked")
    assert "the arguments of file differ from those that user:april decided on" in run.reason


@pytest.mark.slow
def test_a_nested_call_runs_with_edited_arguments(people):
    office = Office()

    def house(outer, inner):
        desk = Agent(name="Desk", model=ScriptedModel(inner), tools=[office.tool()])
        clerk = Agent(name="Clerk", model=ScriptedModel(outer), tools=[agent_tool(desk, "ask_desk", "Ask.")])
        return Team(name="office", agents=[clerk], entry=["Clerk"])

    inner = [function_call("file", {"street": "Mill", "house": 1}, call_id="same")]
    with working(house([[function_call("ask_desk", {"input": "file it"}, call_id="same")]], [inner])):
        send_message()
        ended_runs()
    decide.decide(people["approver"], Approval.objects.get().id, "edit", arguments={"street": "Elm", "house": 2})
    with working(house([SO], [[assistant_message("inner says filed")]])):
        (run,) = ended_runs()

    assert (run.status, office.filed) == ("done", [("Elm", 2)])
    assert dict(ToolCall.objects.values_list("name", "status")) == {"ask_desk": "done", "file": "done"}


@pytest.mark.slow
def test_rebuild_changes_nothing_of_decisions(people):
    office = Office()
    decide.decide(people["approver"], office.request_approval().id, "edit", arguments={"street": "Elm", "house": 7})
    office.goes_on()
    before = [list(model.objects.order_by("id").values()) for model in (Run, Approval, ToolCall)]

    list(rebuild())

    assert [list(model.objects.order_by("id").values()) for model in (Run, Approval, ToolCall)] == before


def test_with_four_eyes_nobody_decides_on_what_they_wrote(people, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    teamwork.team()
    post_message.post(people["admin"], "flood", recipient="agent:Dialogue", content="Water", client_id="1")
    claimed = teamwork.claim()
    facts = {"event": "approval.requested", "approval_id": "ask", "tool_call": "t", **teamwork.ASKED}
    claims.suspend(claimed, "approval", facts, **teamwork.SEALED)

    with pytest.raises(NotAllowed, match="four eyes") as refused:
        decide.decide(people["admin"], "ask", "approve")

    assert refused.value.code == "four_eyes"
    assert audit_summary(last_entry()) == ("user:ada", "decide", "approval:ask", "refused")
    assert decide.decide(people["approver"], "ask", "approve").decided_by == "user:april"


def test_who_ran_it_again_does_not_decide_with_four_eyes(people, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    teamwork.team()
    stop_and_rerun.run_again(people["admin"], teamwork.fail(people["operator"]))
    claimed = teamwork.claim()
    facts = {"event": "approval.requested", "approval_id": "ask", "tool_call": "t", **teamwork.ASKED}
    claims.suspend(claimed, "approval", facts, **teamwork.SEALED)

    with pytest.raises(NotAllowed, match="four eyes"):
        decide.decide(people["admin"], "ask", "reject")


def post(person, approval, body):
    address = f"/api/v1/approvals/{approval.id}/decision"
    return client_of(person).post(address, body, "application/json")


def test_the_door_takes_every_decision_and_says_which_field_is_wrong(people):
    teamwork.team()
    approval = teamwork.ask(people["operator"])

    assert post(people["operator"], approval, {"decision": "approve"}).status_code == 403
    for body, field in (
        ({"decision": "maybe"}, "decision"),
        ({"decision": "respond"}, "output"),
        ({"decision": "approve", "output": "x"}, "output"),
        ({"decision": "reject", "arguments": {}}, "arguments"),
        ({"decision": "edit", "arguments": {}}, "arguments"),
    ):
        answer = post(people["approver"], approval, body)
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    answer = post(people["approver"], approval, {"decision": "respond", "output": ""})
    assert (answer.status_code, answer.json()["decision"]) == (200, "respond")


def test_a_run_that_does_not_wait_takes_no_decision(people):
    teamwork.team()
    approval = teamwork.ask(people["operator"])
    Run.objects.update(status="done")

    with pytest.raises(Conflict, match="is no longer waiting: it is done") as refused:
        decide.decide(people["approver"], approval.id, "approve")
    assert refused.value.code == "run_over"


def words(seq):
    (entry,) = [str(row) for row in entries_of(log.newest_page("c")) if f'id="e{seq}"' in row]
    return " ".join(re.sub(r"<[^>]*>", " ", entry).split())


@pytest.mark.slow
def test_both_arguments_are_drawn_in_the_calls_block(people):
    office = Office()
    approval = office.request_approval()
    decide.decide(people["approver"], approval.id, "edit", arguments={"street": "Elm", "house": 7}, reason="Wrong")
    between = words(approval.asked_seq)
    office.goes_on()

    drawn = words(approval.asked_seq)

    assert "approved with edits by april" in between
    assert "Runs with" in between
    assert "Mill" in drawn
    assert "Ran with" in drawn
    assert "Elm" in drawn
    assert "filed at Elm 7" in drawn


@pytest.mark.slow
def test_an_answer_by_a_person_is_drawn_as_one(people):
    office = Office()
    approval = office.request_approval()
    decide.decide(people["approver"], approval.id, "respond", output="<b>By hand</b>")
    between = words(approval.asked_seq)
    assert "responded" in between.partition("Response")[0]
    assert "approved" not in between
    office.goes_on()

    drawn = words(approval.asked_seq)

    for told_of_it in (between, drawn):
        assert "responded without running by april" in told_of_it
        assert "&lt;b&gt;By hand&lt;/b&gt;" in told_of_it
