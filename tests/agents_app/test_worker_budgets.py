"""A run that has spent what it may stops before its next step and asks; with more it goes on, else it ends."""

import asyncio
import json
from decimal import Decimal

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.memory import fork_memory
from agents_app.teams import agent_tool
from agents_app.teams.definition import Team
from conversations.conversation import fork
from conversations.core.errors import Conflict, Invalid
from conversations.core.principals import SYSTEM, token_principal
from conversations.events import log
from conversations.models import Approval, BudgetRaise, Conversation, Run, ToolCall
from conversations.runs.approvals import auto_approval_rules, decide, external_approvals, overdue_requests
from conversations.runs.budgets import edit_budgets, evaluate
from conversations.runs.claims import Claim
from tests.agents_app.test_worker_heard import clerks, memory, shown
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, send_message, working
from tests.support.live import until
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)
REPORTER = token_principal("coder")


@function_tool
async def work() -> str:
    """Work."""
    return "worked"


@function_tool(name_override="work")
async def long_work() -> str:
    """Work for longer than the 0.0001 minutes that a budget may have."""
    await asyncio.sleep(0.1)
    return "worked"


class Spender(ScriptedModel):
    """A scripted model each of whose answers takes 60 tokens in and 40 out."""

    async def stream_response(self, *given, **named):
        async for event in super().stream_response(*given, **named):
            if event.type == "response.completed":
                event.response.usage = _usage()
            yield event


def _usage():
    from openai.types.responses import ResponseUsage
    from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

    details = {"input_tokens_details": InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
               "output_tokens_details": OutputTokensDetails(reasoning_tokens=0)}  # fmt: skip
    return ResponseUsage(input_tokens=60, output_tokens=40, total_tokens=100, **details)


def spender(calls=3, last="Done."):
    steps = [[function_call("work", {}, call_id=f"c{n}")] for n in range(calls)]
    return Spender([*steps, [assistant_message(last)]])


def budget(amount, measure="tokens", scope="run", **more):
    return edit_budgets.set_budget(SYSTEM, scope=scope, measure=measure, amount=str(amount), **more)


def reported_event(kind, id_, **fields):
    """Make an event with which a program elsewhere reports what an agent Clerk did."""
    return unchecked("other", {"event": kind, "id": id_, "agent": "Clerk", **fields}, REPORTER)


def reported(kind, id_, **fields):
    log.append([reported_event(kind, id_, **fields)])


def question(n=1):
    def pending():
        open_ones = Approval.objects.filter(status="pending")
        return open_ones.first() if Approval.objects.count() == n and open_ones else None

    return until(pending, what=f"question {n}: {list(Run.objects.values('status', 'reason'))}")


def why(n=1):
    return event_bodies("approval.requested")[n - 1]["why"]


@pytest.mark.slow
def test_it_asks_before_its_next_step_and_goes_on_with_as_much_again(people):
    budget(200)
    with working(clerks(spender(calls=4), work)):
        send_message("hello")
        first = question()
        assert ToolCall.objects.filter(name="work").count() == 2
        assert why() == "Budget reached: 200 of 200 tokens per run. Continue with 200 more tokens?"
        decide.decide(people["approver"], first.id, "approve")
        second = question(2)
        assert why(2) == "Budget reached: 400 of 400 tokens per run. Continue with 200 more tokens?"
        decide.decide(people["approver"], second.id, "approve")
        ended_runs(1)

    assert Run.objects.get().status == "done"
    assert memory() == ["user: hello", *["function_call", "function_call_output"] * 4, "assistant: Done."]
    assert list(ToolCall.objects.filter(origin="budget").values_list("status", flat=True)) == ["done", "done"]
    assert [row.amount for row in BudgetRaise.objects.all()] == [Decimal(200), Decimal(200)]
    with pytest.raises(Conflict, match="already decided"):
        decide.decide(people["admin"], first.id, "approve")


@pytest.mark.slow
def test_the_agent_that_has_spent_it_asks_and_not_the_one_that_handed_over(people):
    budget(100, scope="agent", agent="Desk")
    desk = Agent(name="Desk", model=spender(calls=2), tools=[work])
    hand_over = ScriptedModel([[function_call("transfer_to_desk", {}, call_id="h")]])
    clerk = Agent(name="Clerk", model=hand_over, handoffs=[desk])
    with working(Team(name="test", agents=[clerk, desk], entry=["Clerk"])):
        send_message("hello")
        question()

    (request,) = event_bodies("approval.requested")
    assert (request["args"]["place"], request["agent"]) == ("Desk", "Desk")


def test_a_last_answer_is_given_whatever_it_took(people):
    budget(50)
    with working(clerks(spender(calls=0), work)):
        send_message("hello")
        ended_runs(1)

    assert Run.objects.get().status == "done"
    assert not Approval.objects.exists()


@pytest.mark.parametrize("how", ["reject", "expire"])
def test_a_run_that_gets_no_more_ends_and_says_so(people, how, settings):
    budget(100)
    with working(clerks(spender(), work)):
        send_message("hello")
        request = question()
        if how == "reject":
            decide.decide(people["approver"], request.id, "reject", message="enough")
        else:
            settings.CONFIG = settings.CONFIG.model_copy(update={"approval_s": 0.001, "approval_expiry": "reject"})
            until(overdue_requests.handle_due, what="its time to be up")
        until(lambda: Run.objects.get().status == "cancelled", what="the run to end")

    assert Run.objects.get().reason == "a budget was reached, and no more was approved"
    assert ToolCall.objects.filter(name="work").count() == 1
    assert not BudgetRaise.objects.exists()


def test_a_conversation_that_has_spent_it_begins_no_run_before_somebody_gives_more(people):
    budget(100, scope="conversation")
    with working(clerks(Spender([[assistant_message("One.")], [assistant_message("Two.")]]))):
        send_message("hello")
        ended_runs(1)
        send_message("again")
        request = question()
        assert event_kinds().count("model.turn") == 1
        decide.decide(people["approver"], request.id, "approve")
        ended_runs(2)

    assert memory() == ["user: hello", "assistant: One.", "user: again", "assistant: Two."]
    assert [run.status for run in Run.objects.order_by("queued_seq")] == ["done", "done"]


@pytest.mark.parametrize(
    ("measure", "amount", "words"),
    [("calls", "2", "2 of 2 tool calls per run"), ("minutes", "0.0001", "minutes of work per run")],
)
def test_calls_and_minutes_are_measured_too(people, measure, amount, words):
    budget(amount, measure)
    with working(clerks(spender(), long_work)):
        send_message("hello")
        question()

    assert words in why()
    assert ToolCall.objects.filter(origin="budget").get().status == "waiting"


def test_cost_is_measured_as_far_as_it_is_known(people, settings, tmp_path):
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"scripted": {"input": 10_000, "output": 10_000}}))
    settings.CONFIG = settings.CONFIG.model_copy(update={"prices": file})
    settings.CONFIG.__dict__.pop("price_table", None)
    budget("1.50", "cost")
    model = spender()
    model.model = "scripted"
    with working(clerks(model, work)):
        send_message("hello")
        until(lambda: Approval.objects.exists() or Run.objects.get().status == "done", what="either")
    label = event_bodies("model.turn")[0]["model"]

    if label == "scripted":
        assert why() == "Budget reached: $2.00 of $1.50 per run. Continue with $1.50 more?"
    else:  # its label is of nobody's price
        assert not Approval.objects.exists()


def test_an_agents_day_counts_over_all_conversations(people):
    budget(150, scope="agent", agent="Clerk")
    budget(1, scope="agent", agent="Somebody")
    steps = [[assistant_message(text)] for text in ("One.", "Two.", "Three.")]
    with working(clerks(Spender(steps))):
        send_message("hello", key="a")
        ended_runs(1)
        send_message("hello", key="b")
        ended_runs(2)
        send_message("hello", key="c")
        question()

    assert why() == ("Budget reached: 200 of 150 tokens per agent in 24 hours. Continue with 150 more tokens?")
    assert Conversation.objects.get(key="c").id == Approval.objects.get().conversation_id


def test_what_programs_report_of_an_agent_of_the_same_name_does_not_count_for_its_day(people):
    """A trace, a gateway or an import can name any agent: only what our runs did is its budget's."""
    for measure in ("tokens", "calls", "minutes"):
        budget(1, scope="agent", agent="Clerk", measure=measure)
    usage = {"input_tokens": 60_000, "output_tokens": 40_000}
    step = {"event": "tool_step", "name": "Bash", "args_raw": "{}", "duration_ms": 90_000}
    for n in (1, 2):
        reported("output", f"o{n}", text="hi", usage=usage)
        reported("tool_step", f"s{n}", **step, status="start", tool_call_id=f"t{n}")
        reported("tool_step", f"e{n}", **step, status="success", tool_call_id=f"t{n}")
    request = external_approvals.ExternalRequest(
        "other", "Clerk", "Bash", "x", {}, "{}", "claude-code", ("approve", "reject"), "it asks"
    )
    start = reported_event("tool_step", "x", **step, status="start", tool_call_id="x")
    assert external_approvals.request_approval(REPORTER, request, start) is not None
    with working(clerks(Spender([[assistant_message("Done.")]]))):
        send_message("hello")
        until(lambda: Run.objects.get(kind="agent").status in ("done", "waiting"), what="the run to end")

    assert Run.objects.get(kind="agent").status == "done"
    assert ToolCall.objects.filter(agent="Clerk").count() == 3
    assert not event_bodies("approval.requested")


@pytest.mark.slow
def test_an_agent_that_has_spent_its_day_is_asked_about_before_it_acts_after_a_handoff(people):
    budget(100, scope="agent", agent="Desk")
    desk = Agent(name="Desk", model=Spender([[assistant_message("Done.")]] * 2))
    hand_over = ScriptedModel([[function_call("transfer_to_desk", {}, call_id=f"h{n}")] for n in range(2)])
    clerk = Agent(name="Clerk", model=hand_over, handoffs=[desk])
    with working(Team(name="test", agents=[clerk, desk], entry=["Clerk"])):
        send_message("hello", key="a")
        ended_runs(1)
        send_message("hello", key="b")
        request = question()
        assert (request.conversation.key, event_bodies("approval.requested", "b")[0]["agent"]) == ("b", "Desk")
        assert not event_bodies("output", "b")
        decide.decide(people["approver"], request.id, "approve")
        until(lambda: Run.objects.filter(status="done").count() == 2, what="both runs to end")

    assert [event["text"] for event in event_bodies("output", "b")] == ["Done."]


@pytest.mark.slow
def test_an_agent_inside_a_call_is_asked_about_when_the_call_has_ended(people):
    budget(150, scope="agent", agent="Inner")
    inner = Agent(name="Inner", model=Spender([[assistant_message("In.")]] * 3))
    calls = [[function_call("ask", {"input": "x"}, call_id=f"h{n}")] for n in range(3)]
    model = ScriptedModel([*calls, [assistant_message("Done.")]])
    clerk = Agent(name="Clerk", model=model, tools=[agent_tool(inner, "ask", "Ask.")])
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        send_message("hello")
        request = question()
        assert ToolCall.objects.filter(name="ask", status="done").count() == 2
        assert why() == "Budget reached: 200 of 150 tokens per agent in 24 hours. Continue with 150 more tokens?"
        assert event_bodies("approval.requested")[0]["args"]["place"] == "Inner"
        decide.decide(people["approver"], request.id, "approve")
        assert until(lambda: Run.objects.get().status == "waiting" and question(2), what="the next question")
        decide.decide(people["approver"], question(2).id, "reject")
        until(lambda: Run.objects.get().status == "cancelled", what="the run to end")

    assert ToolCall.objects.filter(name="ask", status="done").count() == 3


@pytest.mark.slow
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_its_question_is_no_call_that_a_forks_agents_remember(people, decision):
    budget(200)
    with working(clerks(spender(calls=3), work)):
        send_message("hello")
        decide.decide(people["approver"], question().id, decision)
        until(lambda: Run.objects.get().status in ("done", "cancelled"), what="the run to end")
    made = fork.fork(people["operator"], "c", Conversation.objects.get().head_seq).conversation

    remembered = fork_memory.build_fork_memory(Conversation.objects.get(key=made), 1 << 40, newest=200)

    assert [shown(item) for item in remembered] == memory()
    assert {item["name"] for item in remembered if item.get("type") == "function_call"} == {"work"}


def test_minutes_of_a_run_count_what_happens_inside_a_call_once(people):
    inner_model = ScriptedModel([[function_call("work", {}, call_id="n")], [assistant_message("In.")]])
    inner = Agent(name="Inner", model=inner_model, tools=[long_work])
    model = ScriptedModel([[function_call("ask", {"input": "x"}, call_id="h")], [assistant_message("Done.")]])
    clerk = Agent(name="Clerk", model=model, tools=[agent_tool(inner, "ask", "Ask.")])
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        send_message("hello")
        ended_runs(1)
    ms = dict(ToolCall.objects.values_list("name", "duration_ms"))
    claimed = Claim(Run.objects.get().id, 1, "c", "Clerk", "agent", 1, None, None, None)

    budget(round((ms["ask"] + ms["work"] / 2) / 60_000, 4), "minutes")
    assert evaluate.reached(claimed, "Clerk") is None

    budget(round((ms["ask"] - ms["work"] / 2) / 60_000, 4), "minutes")
    assert evaluate.reached(claimed, "Clerk") is not None


def test_its_question_takes_no_edit_no_answer_and_no_rule(people):
    budget(100)
    with working(clerks(spender(), work)):
        send_message("hello")
        request = question()
        for wrong, more in (("edit", {"arguments": {}}), ("respond", {"output": "go on"})):
            with pytest.raises(Invalid, match="approve or reject"):
                decide.decide(people["approver"], request.id, wrong, **more)

    assert Approval.objects.get().status == "pending"
    assert auto_approval_rules.call_of(event_bodies("approval.requested")[0]).tool == "continue_over_budget"


@pytest.mark.parametrize(("spent_by", "request_agents"), [("Desk", ["Desk"]), ("Clerk", [])])
def test_a_run_that_goes_on_is_asked_about_the_agent_that_acts_now(people, spent_by, request_agents):
    risky = function_tool(lambda: "worked", name_override="work", needs_approval=True)
    desk = Agent(name="Desk", model=spender(calls=1), tools=[risky])
    hand_over = Spender([[function_call("transfer_to_desk", {}, call_id="h")]])
    clerk = Agent(name="Clerk", model=hand_over, handoffs=[desk])
    with working(Team(name="test", agents=[clerk, desk], entry=["Clerk"])):
        send_message("hello")
        call = question()
        budget(100, scope="agent", agent=spent_by)
        decide.decide(people["approver"], call.id, "approve")
        until(lambda: Approval.objects.count() > 1 or Run.objects.get().status == "done", what=f"{event_kinds()}")
        has_run = ToolCall.objects.get(name="work").status == "done"

    assert [request["agent"] for request in event_bodies("approval.requested")[1:]] == request_agents
    assert has_run is not bool(request_agents)
