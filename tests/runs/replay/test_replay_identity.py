"""A tool is found again by its registered identity alone; every other call says what it can do and why not."""

import pytest
from agents import Agent, function_tool, tool_namespace
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from conversations.core import principals, ttl_cache
from conversations.core.errors import Conflict, Invalid, NotAllowed
from conversations.core.json_diff import diff
from conversations.events import log
from conversations.models import Agent as Row
from conversations.models import Approval, Policy, Run, ToolCall
from conversations.runs.approvals import decide
from conversations.runs.policy import evaluate
from conversations.runs.policy.edit_policy import set_policy
from conversations.runs.policy.evaluate import PolicyRule
from conversations.runs.replay import eligibility, request_replay
from conversations.tool_calls import call_record
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.replay_desk import ARGS, ended
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


def today(call):
    recorded = call_record.find(call.id)
    return eligibility.eligibility_of(recorded.row, recorded.called_body)


def recorded(made):
    with working(made):
        send_message()
        ended_runs(1)
    return ToolCall.objects.order_by("called_seq").first()


def namespaced(desk, *names):
    return [tool for name in names for tool in tool_namespace(name=name, description="d", tools=[desk.tool("look")])]


def called(name, namespace=None):
    call = function_call(name, ARGS, call_id="c1")
    return call.model_copy(update={"namespace": namespace}) if namespace else call


@pytest.mark.slow
def test_of_two_tools_of_one_name_the_one_in_the_calls_namespace_is_called(people, desk):
    old = recorded(desk.team([called("look", "b")], [assistant_message("ok")], tools=namespaced(desk, "a", "b")))
    assert (old.namespace, old.lookup_key) == ("b", "namespaced:b.look")

    run, new = desk.again(people["admin"], old, made=desk.team(tools=namespaced(desk, "a", "b")), **SURE("b.look"))
    assert (run.status, new.namespace, new.lookup_key) == ("done", "b", "namespaced:b.look")

    with working(desk.team(tools=namespaced(desk, "a"))), pytest.raises(Conflict, match="in another namespace"):
        request_replay.request_replay(people["admin"], old.id, **SURE("b.look"))
    with working(desk.team(tools=[desk.tool("look")])), pytest.raises(Conflict, match="in another namespace"):
        request_replay.request_replay(people["admin"], old.id, **SURE("look"))
    assert len(desk.ran) == 2


def SURE(tool):
    return {"reason": "why", "tool": tool}


@pytest.mark.slow
def test_a_deferred_tool_is_called_without_the_search(people, desk):
    made = [desk.team([called("look", "look")], [assistant_message("ok")], tools=deferred(desk)) for _ in range(2)]
    old = recorded(made[0])
    assert old.lookup_key == "deferred_top_level:look"

    run, new = desk.again(people["operator"], old, made=made[1])

    assert (run.status, new.lookup_key, len(desk.ran)) == ("done", "deferred_top_level:look", 2)
    with working(desk.team(tools=[desk.tool("look")])):
        assert "another namespace" in today(old).why_not


def deferred(desk):
    from agents import ToolSearchTool

    return [desk.tool("look", defer_loading=True), ToolSearchTool()]


CHANGES = {
    "removed": (lambda desk: [desk.tool("send")], "no longer has this tool"),
    "renamed": (lambda desk: [desk.tool("look", name_override="see")], "no longer has this tool"),
    "switched off": (lambda desk: [desk.tool("look", is_enabled=False)], "The tool is disabled"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_tool_that_is_not_there_any_more_is_not_called(people, desk, name):
    old = desk.recorded("look")["look"]
    make, why = CHANGES[name]

    with working(desk.team(tools=make(desk))), pytest.raises(Conflict, match=why.replace("(", r"\(")):
        request_replay.request_replay(people["admin"], old.id)

    assert len(desk.ran) == 1


@pytest.mark.slow
def test_a_tool_that_changed_takes_arguments_that_fit_it_today(people, desk):
    old = desk.recorded("look")["look"]
    with working(desk.team(tools=[desk.wider("look")])):
        assert "Its schema has changed since then: the arguments must match today’s schema." in today(old).notes
        with pytest.raises(Invalid, match="'house' is a required property"):
            request_replay.request_replay(people["operator"], old.id)
        replay = request_replay.request_replay(people["operator"], old.id, arguments={"street": "Elm", "house": 4})
        assert ended(replay.run).status == "done"

    assert desk.ran[1:] == ["look Elm 4"]
    assert ToolCall.objects.get(id=replay.call).schema != old.schema


def test_without_a_worker_or_a_team_nothing_is_begun(people, desk):
    old = desk.recorded("look")["look"]

    with pytest.raises(Conflict, match="Clerk is not available now: no worker runs it"):
        request_replay.request_replay(people["operator"], old.id)
    with working(desk.team(tools=[], name="other")), pytest.raises(Conflict, match="Team test no longer has Clerk"):
        request_replay.request_replay(people["operator"], old.id)


def nest(desk, *, asks=False, called="send"):
    inner = Agent(
        name="Inner", tools=[desk.tool("send", needs_approval=asks)],
        model=ScriptedModel([[function_call(called, ARGS, call_id="i1")], [assistant_message("inner said")]]),
    )  # fmt: skip
    tool = agent_tool(inner, "ask_inner", "Ask.")
    model = ScriptedModel([[function_call("ask_inner", {"input": "go"}, call_id="o1")], [assistant_message("ok")]])
    clerk = Agent(name="Clerk", model=model, tools=[tool])
    return Team(name="test", agents=[clerk], entry=["Clerk"], effects={"ask_inner": "read"})


@pytest.mark.slow
def test_an_agent_as_a_tool_runs_anew_and_what_is_inside_is_told_under_the_new_call(people, desk):
    old = recorded(nest(desk))
    with working(nest(desk)):
        assert "It starts a nested run: Inner works again and calls its model." in today(old).notes
        replay = request_replay.request_replay(people["operator"], old.id)
        run = ended(replay.run)

    inside = [event for event in event_bodies() if event.get("parent_call") == replay.call]
    assert (run.status, len(desk.ran)) == ("done", 2)
    assert {"model.turn", "tool_step", "output"} <= {event["event"] for event in inside}
    assert all("replay_of" not in event for event in inside)
    (own,) = list(ToolCall.objects.filter(run=replay.run, name="send"))
    assert desk.ran[1] == f"send Elm {own.id}"  # a call inside has a key of its own
    assert "only runs inside another call" in today(own).why_not


@pytest.mark.slow
def test_an_agent_inside_that_asks_for_an_approval_makes_the_replay_a_failed_call(people, desk):
    old = recorded(nest(desk))

    run, new = desk.again(people["operator"], old, made=nest(desk, asks=True))

    assert (run.status, new.status, len(desk.ran)) == ("failed", "failed", 1)
    assert "which a replay cannot wait for" in event_bodies("tool_step")[-1]["error"]


def test_a_model_inside_that_calls_an_unknown_tool_is_told_as_it_was_at_first(people, desk):
    old = recorded(nest(desk, called="nope"))

    run, new = desk.again(people["operator"], old, made=nest(desk, called="nope"))

    assert (run.status, new.status) == ("done", "done"), event_bodies("tool_step")[-1]
    assert [body["parent_call"] for body in event_bodies("policy.refused")] == [old.id, new.id]


def observed(principal, key="f", **more):
    step = {"event": "tool_step", "name": "look", "args": ARGS, "tool_call_id": "f1", "agent": "Clerk", **more}
    for status in ("start", "success"):
        log.append([unchecked(key, step | {"status": status, "output": "seen"}, principal)])
    return ToolCall.objects.get(conversation__key=key, run=None)


@pytest.mark.parametrize(
    "principal", [principals.token_principal("robot"), principals.REDIS, principals.import_principal("x")], ids=str
)
def test_what_was_only_observed_is_not_made_however_it_names_itself(people, desk, principal):
    ours = desk.recorded("look")["look"]
    foreign = observed(
        principal, lookup_key="bare:look", origin="function", run_id=ours.run, tool_call=ours.id, replay_of=ours.id
    )
    observed(principal, "c", replay_of=ours.id)
    with working(desk.team()), pytest.raises(Conflict, match="Its agent runs elsewhere"):
        request_replay.request_replay(people["admin"], foreign.id)

    assert call_record.replays(call_record.find(ours.id)) == []
    assert call_record.original(call_record.find(foreign.id)) is None
    assert len(desk.ran) == 1


def test_the_policy_tightens_the_effect_that_the_code_declares(people, desk):
    old = desk.recorded("look")["look"]
    with working(desk.team()):
        assert (today(old).effect, today(old).is_one_click(is_edited=True)) == ("read", True)
        set_policy(people["admin"], PolicyRule("", "look", "allow", "destructive"))
        with pytest.raises(Invalid, match="a reason is required: look is destructive"):
            request_replay.request_replay(people["admin"], old.id)


def test_a_second_person_decides_on_what_destroys_where_a_person_is_asked(people, desk):
    old = desk.recorded("look")["look"]
    needs = {}
    with working(desk.team()):
        for rule, effect in (("ask", "read"), ("allow", "destructive"), ("ask", "destructive")):
            set_policy(people["admin"], PolicyRule("", "look", rule, effect))
            needs[rule, effect] = today(old).needs_second

    assert needs == {("ask", "read"): False, ("allow", "destructive"): False, ("ask", "destructive"): True}


def test_a_tool_that_another_process_just_made_destructive_needs_a_second_person(people, desk, monkeypatch):
    monkeypatch.setattr(ttl_cache, "FRESH", 600)  # seconds
    old = desk.recorded("look")["look"]
    set_policy(people["admin"], PolicyRule("", "look", "ask"))
    desk.again(people["admin"], old)
    evaluate.rows()  # which this process keeps from now on
    Policy.objects.filter(tool="look").update(effect="destructive")

    with pytest.raises(NotAllowed, match="requested this destructive replay"):
        decide.decide(people["admin"], Approval.objects.get().id, "approve")


def test_the_difference_of_a_replay_is_the_real_one(people, desk):
    old = desk.recorded("look")["look"]
    _, new = desk.again(people["operator"], old)

    difference = diff(call_record.find(old.id).output, call_record.find(new.id).output)

    assert [(change.path, change.before[0].text, change.after[0].text) for change in difference.changes] == [
        ("$.nth", "1", "2")
    ]
    assert difference.same == 1


def of_team(ran, name, entry, *steps):
    """A team of its own with an agent Helper, whose tool has the same name and schema in every team."""

    @function_tool
    def look(street: str) -> str:
        """Look."""
        ran.append(name)
        return name

    helper = Agent(name="Helper", model=ScriptedModel(steps), tools=[look])
    front = Agent(
        name=entry, model=ScriptedModel([[function_call("transfer_to_helper", {}, call_id="h1")]]), handoffs=[helper]
    )
    return Team(name=name, agents=[front, helper], entry=[entry], effects={"look": "read"})


def test_of_two_teams_with_an_agent_of_one_name_the_one_that_made_the_call_makes_it_again(people):
    ran = []
    zeta = of_team(ran, "zeta", "Front", [function_call("look", ARGS, call_id="c1")], [assistant_message("Done.")])
    with working(zeta, of_team(ran, "alpha", "Boss")):
        send_message(to="agent:Front")
        ended_runs(1)
        old = ToolCall.objects.get(name="look")
        replay = request_replay.request_replay(people["operator"], old.id)
        run = ended(replay.run)

    assert (ran, run.status, run.team) == (["zeta", "zeta"], "done", "zeta")


def test_another_teams_agent_of_that_name_does_not_make_the_call(people):
    ran = []
    zeta = of_team(ran, "zeta", "Front", [function_call("look", ARGS, call_id="c1")], [assistant_message("Done.")])
    with working(zeta):
        send_message(to="agent:Front")
        ended_runs(1)
    old = ToolCall.objects.get(name="look")
    Row.objects.filter(team="zeta").delete()

    with working(of_team(ran, "alpha", "Boss")), pytest.raises(Conflict, match="Team zeta no longer has Helper"):
        request_replay.request_replay(people["operator"], old.id)

    assert ran == ["zeta"]


def test_a_call_whose_team_is_unknown_is_made_again_if_one_team_has_its_agent(people):
    ran = []
    zeta = of_team(ran, "zeta", "Front", [function_call("look", ARGS, call_id="c1")], [assistant_message("Done.")])
    with working(zeta, of_team(ran, "alpha", "Boss")):
        send_message(to="agent:Front")
        ended_runs(1)
        old = ToolCall.objects.get(name="look")
        Run.objects.filter(id=old.run).update(team="")  # it began before the record had teams
        assert "which of the teams alpha and zeta made it" in today(old).why_not
        Row.objects.filter(team="alpha").delete()
        assert (today(old).why_not, today(old).team) == ("", "zeta")
