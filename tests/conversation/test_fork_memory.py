"""What a fork's agents remember: what a model is given in the fork is what it was given there (§3.4)."""

import json

import pytest
from agents import Agent, GuardrailFunctionOutput, OutputGuardrail, RunContextWrapper, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from agents_app.memory import fork_memory, session
from agents_app.teams.definition import Team
from conversations.conversation import fork
from conversations.core import principals
from conversations.events import log
from conversations.models import Agent as Served
from conversations.models import Conversation, Event, Run, SessionItem, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.replay import request_replay
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, send_message, working
from tests.support.cast import cast
from tests.support.unchecked import from_text, unchecked

pytestmark = pytest.mark.django_db(transaction=True)
IDS = ("id", "status", "created_at")


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def model_inputs(model):
    """What a scripted model was given, call by call, without the ids that a server makes."""
    return [plain(call.input) for call in model.calls]


def plain(items):
    return [{k: v for k, v in item.items() if k not in IDS} for item in items]


def remembered(key, answers=1 << 40):
    conversation = Conversation.objects.get(key=key)
    return fork_memory.build_fork_memory(conversation, answers, newest=200)


@pytest.mark.slow
def test_an_agent_goes_on_in_a_fork_with_what_it_was_given_there():
    steps = [function_call("add", {"a": 2, "b": 3}, call_id="c1")], [assistant_message("5")], [assistant_message("8")]
    again = [assistant_message("Eight.")]
    model = ScriptedModel(
        [*steps, again, [function_call("add", {"a": 2, "b": 3}, call_id="c9")], [assistant_message("five")]]
    )
    clerk = Agent(name="Clerk", model=model, tools=[add])
    otto = cast()["operator"]
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        send_message("2 + 3?")
        ended_runs(1)
        send_message("and 3 more?")
        first, second = ended_runs(2)

        rerun = fork.rerun(otto, second.id)
        ended_runs(3)
        from_the_start = fork.rerun(otto, first.id)
        ended_runs(4)

    given = model_inputs(model)
    assert given[3] == given[2]
    assert given[4] == given[0]
    assert event_kinds(rerun.conversation)[-1] == "run.done"
    assert event_bodies("output", rerun.conversation)[-1]["text"] == "Eight."
    assert event_bodies("tool_step", from_the_start.conversation)[-1]["output"] == 5
    assert Run.objects.filter(conversation__key="c").count() == 2


def test_a_fork_in_the_middle_of_a_run_goes_on_from_there():
    steps = (
        [function_call("add", {"a": 2, "b": 3}, call_id="c1")],
        [assistant_message("5")],
        [assistant_message("Five.")],
    )
    model = ScriptedModel(steps)
    otto = cast()["operator"]
    with working(Team(name="test", agents=[Agent(name="Clerk", model=model, tools=[add])], entry=["Clerk"])):
        send_message("2 + 3?")
        ended_runs(1)
        end = Event.objects.filter(kind="tool_step").latest("seq").seq

        made = fork.fork(otto, "c", end, run=True)
        ended_runs(2)

    given = model_inputs(model)
    assert given[2] == given[1]
    assert event_bodies("output", made.conversation)[-1]["text"] == "Five."


def test_what_is_said_in_other_words_takes_the_place_of_the_old_ones_and_is_kept_for_later():
    model = ScriptedModel([[assistant_message(words)] for words in ("one", "two", "three", "four")])
    otto = cast()["operator"]
    with working(Team(name="test", agents=[Agent(name="Clerk", model=model)], entry=["Clerk"])):
        send_message("first")
        ended_runs(1)
        send_message("second")
        ended_runs(2)
        at = Event.objects.filter(kind="message").latest("seq").seq

        made = fork.fork(otto, "c", at, words="second, in other words", run=True)
        ended_runs(3)
        send_message("third", key=made.conversation)
        ended_runs(4)

    texts = [[item.get("content") for item in given if item.get("role") == "user"] for given in model_inputs(model)]
    assert texts[2] == ["first", "second, in other words"]
    assert texts[3] == ["first", "second, in other words", "third"]
    rows = SessionItem.objects.filter(conversation=made.conversation).exclude(payload__startswith=session.CONTEXT)
    assert rows.count() == 6


def test_what_waited_for_its_own_run_stands_where_that_began():
    served = Served.objects.create(team="t", name="Clerk", is_entry=True)
    ada, clerk = principals.user_principal("ada"), principals.run_principal(served.name)
    for words in ("first", "second"):
        log.append(
            [unchecked("c", {"type": "message", "sender": "ada", "recipient": "agent:Clerk", "content": words}, ada)]
        )
    first, second = Run.objects.order_by("queued_seq")
    for run, words in ((first, "one"), (second, "two")):
        started = {"event": "run.started", "run_id": run.id, "agent": "Clerk", "attempt": 1, "worker": "w"}
        output = {"event": "output", "run_id": run.id, "agent": "Clerk", "text": words, "turn": 1}
        done = {"event": "run.done", "run_id": run.id, "agent": "Clerk"}
        log.append([unchecked("c", payload, clerk) for payload in (started, output, done)])
    otto, head = cast()["operator"], Conversation.objects.get().head_seq

    whole, early = (fork.fork(otto, "c", at).conversation for at in (head, 4))

    assert [text_of(item) for item in remembered(whole)] == ["first", "one", "second", "two"]
    assert [text_of(item) for item in remembered(early)] == ["first", "second"]
    assert [text_of(item) for item in remembered(early, answers=1)] == ["first"]


def text_of(item):
    content = item["content"]
    return content if isinstance(content, str) else content[0]["text"]


def test_an_imported_history_is_remembered_with_its_calls_and_no_call_without_an_output():
    payloads = [
        {"type": "message", "sender": "system", "recipient": "agent:A", "content": "Be brief."},
        {"type": "message", "sender": "user", "recipient": "agent:A", "content": "Refund Ada."},
        {
            "event": "tool_step",
            "status": "start",
            "name": "find",
            "args": {"name": "Ada"},
            "tool_call_id": "c",
            "agent": "A",
        },
        {
            "event": "tool_step",
            "status": "success",
            "name": "find",
            "output": {"id": 4},
            "tool_call_id": "c",
            "agent": "A",
        },
        {"event": "tool_step", "status": "start", "name": "find", "args": {}, "tool_call_id": "c", "agent": "A"},
        {
            "event": "tool_step",
            "status": "error",
            "name": "find",
            "error": "no name",
            "tool_call_id": "c",
            "agent": "A",
        },
        {"event": "tool_step", "status": "start", "name": "refund", "args": {"id": 4}, "agent": "A"},
        {"event": "output", "agent": "A", "text": "Done."},
        {"type": "message", "sender": "agent:A", "recipient": "user", "content": "Done."},
    ]
    log.append([unchecked("c", payload, principals.import_principal("file")) for payload in payloads])
    made = fork.fork(cast()["operator"], "c", len(payloads))

    system, user, call, output, bad, error, answer = remembered(made.conversation)

    assert (system["role"], user["role"], user["content"]) == ("system", "user", "Refund Ada.")
    assert (call["call_id"], call["name"], json.loads(call["arguments"])) == ("c", "find", {"name": "Ada"})
    assert (output["call_id"], json.loads(output["output"])) == ("c", {"id": 4})
    assert (bad["call_id"], error["call_id"], error["output"]) == ("event_5", "event_5", "no name")
    assert text_of(answer) == "Done."


class Counter(BaseModel):
    conversation_id: str = ""
    count: int = 0


@function_tool
def count(context: RunContextWrapper[Counter]) -> int:
    """Count."""
    context.context.count += 1
    return context.context.count


@pytest.mark.slow
def test_a_teams_context_goes_on_as_it_was_where_the_fork_begins():
    steps = [[function_call("count", {}, call_id=f"c{n}")] if n % 2 else [assistant_message("ok")] for n in range(1, 9)]
    clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[count])
    otto = cast()["operator"]
    with working(Team(name="test", agents=[clerk], entry=["Clerk"], context=Counter)):
        for n in (1, 2):
            send_message("count")
            ended_runs(n)
        head = Conversation.objects.get().head_seq
        whole = fork.fork(otto, "c", head, run=True).conversation
        ended_runs(3)
        early = fork.rerun(otto, Run.objects.filter(conversation__key="c").latest("queued_seq").id).conversation
        ended_runs(4)

    assert event_bodies("tool_step", whole)[-1]["output"] == 3
    assert event_bodies("tool_step", early)[-1]["output"] == 2
    contexts = [session.load(key).context["test"] for key in ("c", whole)]
    assert [json.loads(text) for text in contexts] == [
        {"conversation_id": "c", "count": 2},
        {"conversation_id": whole, "count": 3},
    ]


def test_a_forks_first_run_that_fails_keeps_the_context_for_what_comes_next():
    calls = [[function_call("count", {}, call_id=f"c{n}")] for n in range(3)]
    ok = [assistant_message("ok")]
    clerk = Agent(name="Clerk", model=ScriptedModel([calls[0], ok, calls[1], RuntimeError("down"), calls[2], ok]),
                  tools=[count])  # fmt: skip
    otto = cast()["operator"]
    with working(Team(name="test", agents=[clerk], entry=["Clerk"], context=Counter, effects={"count": "read"})):
        send_message("count")
        ended_runs(1)
        made = fork.fork(otto, "c", Conversation.objects.get().head_seq, run=True)
        assert ended_runs(2)[-1].status == "failed"
        again = stop_and_rerun.run_again(otto, made.run)
        ended_runs(3)

    counted = [step["output"] for step in event_bodies("tool_step", made.conversation) if step["status"] == "success"]
    assert (Run.objects.get(id=again).status, counted) == ("done", [1, 2, 2])  # the first is copied
    assert json.loads(session.load(made.conversation).context["test"]) == {
        "conversation_id": made.conversation,
        "count": 2,
    }


def test_an_answer_that_an_output_guardrail_stopped_is_not_remembered():
    def refuse(context, agent, output):
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered="secret" in output)

    model = ScriptedModel([[assistant_message(words)] for words in ("The secret is 7.", "Sorry.", "Again.")])
    clerk = Agent(name="Clerk", model=model, output_guardrails=[OutputGuardrail(refuse)])
    with working(Team(name="test", agents=[clerk], entry=["Clerk"])):
        send_message("Tell me.")
        assert ended_runs(1)[-1].status == "failed"
        send_message("And now?")
        ended_runs(2)
        made = fork.fork(cast()["operator"], "c", Conversation.objects.get().head_seq)

    assert [body["text"] for body in event_bodies("output")] == ["The secret is 7.", "Sorry."]
    spoken = [item for item in remembered(made.conversation) if item.get("role") == "assistant"]
    assert [item["content"][0]["text"] for item in spoken] == ["Sorry."]
    stored = SessionItem.objects.filter(conversation="c").values_list("payload", flat=True)
    assert [item for item in stored if "secret" in item] == []


@pytest.mark.slow
def test_a_call_of_a_forks_failed_run_is_replayed_with_the_context_of_the_fork():
    calls = [[function_call("count", {}, call_id=f"c{n}")] for n in range(2)]
    model = ScriptedModel([calls[0], [assistant_message("ok")], calls[1], RuntimeError("down")])
    clerk = Agent(name="Clerk", model=model, tools=[count])
    otto = cast()["operator"]
    with working(Team(name="test", agents=[clerk], entry=["Clerk"], context=Counter, effects={"count": "read"})):
        send_message("count")
        ended_runs(1)
        made = fork.fork(otto, "c", Conversation.objects.get().head_seq, run=True)
        ended_runs(2)
        replayed = request_replay.request_replay(otto, ToolCall.objects.get(run=made.run).id)
        ended_runs(3)

    ends = [step for step in event_bodies("tool_step", made.conversation) if step["status"] == "success"]
    assert [step["output"] for step in ends if step["run_id"] == replayed.run] == [2]


@pytest.mark.slow
def test_another_teams_run_in_a_fork_does_not_cost_a_team_its_context():
    steps = [[function_call("count", {}, call_id=f"c{n}")] if n % 2 else [assistant_message("ok")] for n in range(1, 7)]
    clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[count])
    desk = Agent(name="Desk", model=ScriptedModel([[assistant_message("ok")]] * 2))
    otto = cast()["operator"]
    teams = [Team(name=name, agents=[agent], entry=[agent.name], context=Counter) for name, agent in
             (("counting", clerk), ("desk", desk))]  # fmt: skip
    with working(*teams):
        send_message("count")
        ended_runs(1)
        made = fork.fork(otto, "c", Conversation.objects.get().head_seq).conversation
        send_message("hello", key=made, to="agent:Desk")
        ended_runs(2)
        again = fork.fork(otto, made, Conversation.objects.get(key=made).head_seq).conversation
        for n, key in enumerate((made, again)):
            send_message("count", key=key)
            ended_runs(3 + n)

    assert [event_bodies("tool_step", key)[-1]["output"] for key in (made, again)] == [2, 2]


@pytest.mark.thorough
def test_every_place_of_a_fork_and_of_its_fork_has_the_context_of_its_time():
    steps = [
        [function_call("count", {}, call_id=f"c{n}")] if n % 2 else [assistant_message("ok")] for n in range(1, 19)
    ]
    clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[count])
    otto = cast()["operator"]

    def in_a_fork(key: str, at: int) -> int | None:
        made = Conversation.objects.get(key=fork.fork(otto, key, at).conversation)
        text = fork_memory.context_of(made, "test")
        assert text is None or json.loads(text)["conversation_id"] == made.key
        return None if text is None else json.loads(text)["count"]

    with working(Team(name="test", agents=[clerk], entry=["Clerk"], context=Counter)):
        for n in (1, 2, 3):
            send_message("count")
            ended_runs(n)
        events = list(Event.objects.filter(conversation__key="c").order_by("seq").values_list("seq", "kind"))
        answers = [seq for seq, kind in events if kind == "output"]
        middle = Run.objects.filter(conversation__key="c").order_by("queued_seq")[1].input_seq
        branch = fork.fork(otto, "c", middle, run=True).conversation
        ended_runs(4)
        head = Conversation.objects.get(key=branch).head_seq

    for seq, _ in events:
        assert in_a_fork("c", seq) == (sum(answer <= seq for answer in answers) or None), seq
    assert [in_a_fork(branch, at) for at in (answers[0] - 1, answers[0], middle, head)] == [None, 1, 1, 2]


def test_what_a_gateway_tells_after_the_first_step_is_remembered_once():
    typed = {"event": "user_message", "sender": "user:ada", "text": "Refund me."}
    payloads = [
        {"type": "message", "sender": "user:ada", "recipient": "agent:A", "content": "Refund me."},
        {"event": "tool_step", "status": "start", "name": "find", "args": {}, "tool_call_id": "c", "agent": "A"},
        typed,
        {"event": "tool_step", "status": "success", "name": "find", "output": 1, "tool_call_id": "c", "agent": "A"},
        typed,
    ]
    log.append([unchecked("late", payload, principals.import_principal("file")) for payload in payloads])
    made = fork.fork(cast()["operator"], "late", len(payloads))

    texts = [item["content"] for item in remembered(made.conversation) if item.get("role") == "user"]

    assert texts == ["Refund me."] * 2


def test_a_number_that_python_does_not_read_is_remembered_as_it_was_written():
    digits, ends = "9" * 5_000, '"event":"tool_step","agent":"Clerk","name":"count","tool_call_id":"c-1"'
    asks = '"type":"message","conversation_id":"c","sender":"Rosa","recipient":"agent:Clerk","content":"count"'
    for fields in (f'{asks},"a":{digits}', f'{ends},"status":"start"', f'{ends},"status":"success","output":{digits}'):
        log.append([from_text("stream:c", f"{{{fields}}}")])

    copy = fork.fork(cast()["operator"], "c", 3).conversation

    assert [item.get("content") or item.get("output") for item in remembered(copy)][::2] == ["count", digits]
