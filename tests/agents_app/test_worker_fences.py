"""Two workers on one run: the stale one's writes all fail, its tool is not entered, its messages are not sent."""

import asyncio
import threading

import pytest
from agents import Agent, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

import switchboard
from agents_app.teams.chat_tool import chat_send
from agents_app.teams.definition import Team
from agents_app.worker import run_bus
from agents_app.worker import worker as workers
from conversations.core import principals
from conversations.core.db_threads import POOL_SIZE
from conversations.core.principals import Principal
from conversations.events import log
from conversations.models import Agent as Row
from conversations.models import AuditEntry, Conversation, Event, Run, ToolCall
from conversations.runs import claims, leases
from tests.support import toolcalls
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, send_message, team, working
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


def taken_away():
    """Do what another worker does once this one's lease has ended."""
    Run.objects.filter(status="running").update(lease_until=1)
    assert len(leases.interrupt_expired()) == 1


def test_a_worker_whose_run_was_taken_enters_no_tool_and_writes_nothing():
    entered = []

    @function_tool
    def act() -> str:
        """Act."""
        entered.append(1)
        return "acted"

    was_asked, go = threading.Event(), threading.Event()

    async def late(call):
        was_asked.set()
        await asyncio.to_thread(go.wait, 10)
        return [function_call("act", {}, call_id="c1")]

    with working(team(ModelStep.respond(late), [assistant_message("never")], tools=[act])) as worker:
        send_message()
        until(was_asked.is_set, what="the model to be asked")
        taken_away()
        before = event_kinds()
        go.set()
        until(lambda: worker.finished_runs == 1, what="the attempt to end")

    assert (entered, ToolCall.objects.count()) == ([], 0)
    assert event_kinds() == before
    assert before[-1] == "run.interrupted"


def test_a_tool_that_outlives_its_run_cannot_record_its_end_or_send():
    inside, go = threading.Event(), threading.Event()
    refused = []

    @function_tool
    def act() -> str:
        """Act."""
        inside.set()
        go.wait(60)
        try:
            switchboard.send_message("chat:c", "from the grave", context={"agent": "Clerk"})
        except Exception as error:
            refused.append(type(error).__name__)
        return "acted"

    with working(team([function_call("act", {}, call_id="c1")], [assistant_message("never")], tools=[act])) as worker:
        send_message()
        until(inside.is_set, what="the tool to be entered")
        taken_away()
        before = event_kinds()
        go.set()
        until(lambda: worker.finished_runs == 1, what="the attempt to end")

    assert refused == ["Fenced"]
    assert event_kinds() == before
    assert ToolCall.objects.get().status == "unknown"


def test_a_run_posts_to_its_own_conversation_its_children_and_where_its_team_may_and_counts_the_hop():
    child = Conversation.objects.create(key="child")
    Conversation.objects.create(key="stranger")
    sent = [
        function_call("chat_send", {"recipient": to, "content": "psst", "conversation_id": None}, call_id=to)
        for to in ("chat:c", "chat:child", "chat:duty-7", "chat:stranger")
    ]

    clerk = Agent(
        name="Clerk",
        model=ScriptedModel(
            [[function_call("wait", {}, call_id="w")], *[[s] for s in sent], [assistant_message("so")]]
        ),
    )

    @function_tool
    def wait() -> str:
        """Make the child this conversation's."""
        Conversation.objects.filter(id=child.id).update(parent=Conversation.objects.get(key="c"))
        return "ok"

    clerk.tools = [wait, chat_send]
    with working(Team(name="t", agents=[clerk], entry=["Clerk"], may_post_to=["duty-*"])):
        send_message(metadata={"hop": 3})
        ended_runs()

    (message_,) = [m for m in event_bodies("message") if m["sender"] == "agent:Clerk"]
    assert (message_["content"], message_["metadata"]) == ("psst", {"hop": 4})
    assert Event.objects.get(conversation__key="c", kind="message", principal="agent:Clerk")
    assert [[m["content"] for m in event_bodies("message", key)] for key in ("child", "duty-7")] == [["psst"], ["psst"]]
    assert event_bodies("message", "stranger") == []
    refused = [step for step in event_bodies("tool_step") if step["status"] == "error"]
    assert [step["tool_call_id"] for step in refused] == ["chat:stranger"]
    why = (
        "a run of t may only post to its own conversation, its child conversations, and those its team allows; "
        "not to stranger"
    )
    assert refused[0]["error"] == f"NotAllowed: {why}"
    assert refused[0]["output"] == f"Error, not sent: {why}"
    entry = AuditEntry.objects.get(outcome="refused")
    assert (entry.principal, entry.verb, entry.target) == ("agent:Clerk", "publish", "conversation:stranger")


@pytest.mark.parametrize(
    ("by", "is_child"),
    [(principals.user_principal("ada"), True), (principals.import_principal("file"), False)],
    ids=str,
)
def test_a_child_conversation_is_one_that_people_made(by: Principal, is_child: bool):
    origin = {"event": "conversation.forked", "parent": "c", "forked_at": 1}
    log.append([toolcalls.event("c", {"event": "log"}), toolcalls.event("fork", origin, by)])

    assert Conversation.objects.get(key="fork").parent.key == "c"
    assert run_bus._is_child("fork", "c") is is_child


@pytest.mark.slow
def test_agents_who_answer_each_other_end_at_twenty_hops():
    def speaker(name, other):
        step = [
            function_call(
                "chat_send",
                {"recipient": f"agent:{other}", "content": "and you?", "conversation_id": None},
                call_id="x",
            )
        ]
        return Agent(name=name, model=ScriptedModel([step, [assistant_message("sent")]] * 15), tools=[chat_send])

    with working(Team(name="pair", agents=[speaker("Ann", "Bob"), speaker("Bob", "Ann")], entry=["Ann", "Bob"])):
        send_message(to="agent:Ann")
        ended_runs(21, within=60)
        until(lambda: not Run.objects.filter(status__in=("queued", "running")).exists(), what="quiet")

    last = Run.objects.order_by("-queued_seq").first()
    assert (last.status, last.reason) == ("failed", "hop_limit")
    assert Run.objects.filter(status="done").count() == 20
    assert {row.name for row in Row.objects.filter(team="pair")} == {"Ann", "Bob"}


@pytest.mark.parametrize("what", ["looking after waiting runs takes long", "all other threads are busy"])
def test_leases_are_renewed_while(monkeypatch, what):
    entered, is_looking, go = threading.Event(), threading.Event(), threading.Event()

    @function_tool
    def act() -> str:
        """Act."""
        entered.set()
        go.wait(60)
        return "acted"

    def take_long(*_):
        is_looking.set()
        go.wait(60)

    monkeypatch.setattr(workers, "RENEW_EVERY_S", 0.05)
    with working(team([function_call("act", {}, call_id="c1")], [assistant_message("so")], tools=[act])) as worker:
        try:
            send_message()
            until(entered.is_set, what="the tool to be entered")
            if "threads" in what:
                [worker._threads.submit(take_long) for _ in range(POOL_SIZE["runs"])]
            else:
                monkeypatch.setattr(leases, "interrupt_expired", take_long)
            until(is_looking.is_set, what="the worker to be busy")
            before = Run.objects.get().lease_until

            until(lambda: Run.objects.get().lease_until > before + 1_000_000, within=10, what="the lease to be renewed")
        finally:
            go.set()
        ended_runs()


def test_a_worker_that_was_starved_does_not_end_its_own_runs(monkeypatch):
    entered, go, looks = threading.Event(), threading.Event(), []
    renew, interrupt_expired = claims.renew, leases.interrupt_expired

    @function_tool
    def act() -> str:
        """Act."""
        entered.set()
        go.wait(60)
        return "acted"

    def renew_late(held):
        """As when the lease ends between its renewal and the look after it."""
        renewed = renew(held)
        Run.objects.filter(status="running").update(lease_until=1)
        return renewed

    def look(*args):
        looks.append(interrupt_expired(*args))

    monkeypatch.setattr(workers, "RENEW_EVERY_S", 0.05)
    monkeypatch.setattr(leases, "interrupt_expired", look)
    with working(team([function_call("act", {}, call_id="c1")], [assistant_message("so")], tools=[act])):
        try:
            send_message()
            until(entered.is_set, what="the tool to be entered")
            monkeypatch.setattr(claims, "renew", renew_late)
            before = len(looks)
            until(lambda: len(looks) > before + 2 or Run.objects.get().status != "running", what="three looks")
        finally:
            go.set()
        (run,) = ended_runs()

    assert (run.status, ToolCall.objects.get().status) == ("done", "done")
