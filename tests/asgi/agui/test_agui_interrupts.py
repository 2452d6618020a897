"""Our approvals are AG-UI's interrupts: asked at the end of a run, answered in the next, decided once by who may."""

import json

import pytest
from ag_ui.core import EventType, ResumeEntry

from conversations.access.accounts import tokens
from conversations.asgi.agui.interrupt_answers import answer_of
from conversations.asgi.agui.run_encoder import RunEncoder, RunSegment
from conversations.core.principals import SYSTEM
from conversations.events.log.records import Stored
from conversations.events.response_ids import message_item_id
from conversations.models import Approval, Run
from conversations.runs.approvals import decide
from tests.support.agui import AguiDesk, agui_open, events_in, input_of, kinds, text_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(transactional_db):
    with agui_open("admin") as served:
        yield served


def ask(desk: AguiDesk, thread: str):
    """Have a run stop before a call; return its interrupt."""
    events = desk.play(thread, "ask me")
    assert events[-1].outcome.type == "interrupt"
    (interrupt,) = events[-1].outcome.interrupts
    return interrupt


def answer(desk: AguiDesk, thread: str, *entries: dict, run: str = "front-run-2", **more):
    """Answer interrupts."""
    return desk.post(input_of(thread, "ask me", run=run, resume=list(entries)), **more)


def resolved(interrupt, payload) -> dict:
    return {"interruptId": getattr(interrupt, "id", interrupt), "status": "resolved", "payload": payload}


def on(desk: AguiDesk, thread: str, *entries: dict, run: str = "front-run-2"):
    return events_in(answer(desk, thread, *entries, run=run))


def test_a_question_ends_the_run_and_its_answer_begins_the_next(desk):
    interrupt = ask(desk, "agui-ask")

    assert (interrupt.reason, interrupt.id) == ("tool_call", Approval.objects.get().id)
    assert interrupt.tool_call_id == Approval.objects.get().tool_call
    assert set(interrupt.response_schema["properties"]) == {"approved", "editedArgs", "message", "output"}

    events = on(desk, "agui-ask", resolved(interrupt, {"approved": True}))

    assert (events[0].type, events[0].run_id) == (EventType.RUN_STARTED, "front-run-2")
    assert "TOOL_CALL_START" not in kinds(events)
    assert text_of(events) == "It is decided."
    assert events[-1].outcome.type == "success"
    row = Approval.objects.get()
    assert (row.decision, row.decided_by) == ("approve", "token:asker-admin")
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("payload", "decision"),
    [
        ({"approved": False, "message": "no"}, "reject"),
        (False, "reject"),
        ({"approved": True, "output": "done by hand"}, "respond"),
        (True, "approve"),
    ],
)
def test_each_answer_is_its_decision(desk, payload, decision):
    thread = f"agui-{decision}-{type(payload).__name__}"
    interrupt = ask(desk, thread)

    events = on(desk, thread, resolved(interrupt, payload))

    assert Approval.objects.get().decision == decision
    results = [event.content for event in events if event.type == EventType.TOOL_CALL_RESULT]
    is_told = decision == "reject" and isinstance(payload, dict)
    assert not is_told or results == ["The tool was not run: rejected: no"]


def test_a_dismissed_question_is_rejected(desk):
    interrupt = ask(desk, "agui-dismissed")

    on(desk, "agui-dismissed", {"interruptId": interrupt.id, "status": "cancelled"})

    assert Approval.objects.get().decision == "reject"


@pytest.mark.parametrize(
    "payload", [None, "yes", 1, {}, {"approved": "true"}, {"approved": 1}, {"approved": True, "editedArgs": "x"}, []]
)
def test_an_unclear_answer_decides_nothing(desk, payload):
    interrupt = ask(desk, "agui-unclear")

    refused = answer(desk, "agui-unclear", resolved(interrupt, payload))

    assert refused.status == 400
    assert refused.json["error"]["field"].startswith("resume[0].payload")
    assert Approval.objects.get().status == "pending"


def test_what_was_decided_in_the_inbox_stays_decided_and_is_told(desk):
    interrupt = ask(desk, "agui-first-come")
    decide.decide(SYSTEM, interrupt.id, "reject", message="not today")

    events = on(desk, "agui-first-come", resolved(interrupt, {"approved": True}))

    assert Approval.objects.get().decision == "reject"
    warnings = [event.value for event in events if event.type == EventType.CUSTOM]
    assert warnings[0].startswith("system already decided: reject")
    assert text_of(events) == "It is decided."


def test_an_answer_that_is_sent_again_decides_nothing_more(desk):
    interrupt = ask(desk, "agui-twice")
    once = on(desk, "agui-twice", resolved(interrupt, True))

    again = on(desk, "agui-twice", resolved(interrupt, True), run="front-run-3")

    assert text_of(again) == text_of(once) == "It is decided."
    assert Run.objects.count() == Approval.objects.filter(status="decided").count() == 1


def test_a_question_inside_a_call_is_answered_like_any_other(desk):
    (interrupt,) = desk.play("agui-inside", "ask inside")[-1].outcome.interrupts
    assert (interrupt.id, interrupt.tool_call_id) == (Approval.objects.get().id, None)

    events = on(desk, "agui-inside", resolved(interrupt, {"approved": False, "message": "no"}))

    assert Approval.objects.get().decision == "reject"
    assert text_of(events) == "It is decided."
    assert not any("TOOL_CALL" in kind for kind in kinds(events))


@pytest.mark.parametrize("refused", [0, 1])
def test_an_answer_that_is_refused_beside_another_is_reported_and_stays_open(desk, refused):
    thread = f"agui-refused-{refused}"
    interrupts = desk.play(thread, "ask twice")[-1].outcome.interrupts
    payloads = [True, True]
    payloads[refused] = {"approved": True, "output": "x" * (decide.MAX_OUTPUT + 1)}

    events = on(desk, thread, *map(resolved, interrupts, payloads))

    assert [Approval.objects.get(id=interrupt.id).status for interrupt in interrupts].index("pending") == refused
    assert [event.value for event in events if event.type == EventType.CUSTOM] == [
        f"resume[{refused}]: output must be at most {decide.MAX_OUTPUT:,} characters"
    ]
    assert [interrupt.id for interrupt in events[-1].outcome.interrupts] == [interrupts[refused].id]


def test_answers_that_are_all_refused_decide_nothing(desk):
    interrupts = desk.play("agui-all-refused", "ask twice")[-1].outcome.interrupts
    too_long = {"approved": True, "output": "x" * (decide.MAX_OUTPUT + 1)}

    refused = answer(desk, "agui-all-refused", *(resolved(interrupt, too_long) for interrupt in interrupts))

    assert (refused.status, refused.json["error"]["field"]) == (400, "resume[0].payload")
    assert set(Approval.objects.values_list("status", flat=True)) == {"pending"}


def test_a_thread_that_waits_takes_no_other_message(desk):
    interrupt = ask(desk, "agui-waits")

    refused = desk.post(input_of("agui-waits", "something else"))

    assert (refused.status, refused.json["error"]["code"]) == (409, "interrupt_open")
    assert interrupt.id in refused.json["error"]["message"]
    assert Run.objects.count() == 1


def test_a_question_of_another_thread_is_no_interrupt_here(desk):
    interrupt = ask(desk, "agui-there")

    events = desk.play("agui-here", "hello", resume=[resolved(interrupt, True)])

    assert Approval.objects.get().status == "pending"
    assert events[1].name == "switchboard:warning"
    assert text_of(events) == "You said: hello"


def test_an_answer_with_arguments_of_its_own_is_an_edit():
    given = {"approved": True, "editedArgs": {"street": "Oak"}}
    entry = ResumeEntry(interrupt_id="a", status="resolved", payload=given)

    assert answer_of(entry, "resume[0]") == {"decision": "edit", "arguments": {"street": "Oak"}}


def test_who_may_ask_may_not_decide_for_that(desk):
    interrupt = ask(desk, "agui-operator")
    operator = {"authorization": f"Bearer {tokens.make_token(SYSTEM, 'agui-operator', 'operator')}"}

    refused = answer(desk, "agui-operator", resolved(interrupt, True), headers=operator)

    assert refused.status == 403
    assert Approval.objects.get().status == "pending"


def test_a_payload_that_names_somebody_gives_no_right(desk):
    interrupt = ask(desk, "agui-claims")
    operator = {"authorization": f"Bearer {tokens.make_token(SYSTEM, 'agui-operator', 'operator')}"}
    claim = {"approved": True, "by": "user:admin", "principal": "system", "role": "admin"}
    entry = resolved(interrupt, claim) | {"metadata": {"principal": "system"}}

    refused = answer(desk, "agui-claims", entry, headers=operator)

    assert refused.status == 403
    assert Approval.objects.get().status == "pending"


def test_what_was_said_before_a_question_is_not_said_again_after_it():
    response = f"resp_{'0' * 32}"
    messages = [
        {"type": "message", "id": message_item_id(response, turn), "content": [{"type": "output_text", "text": words}]}
        for turn, words in ((1, "May I?"), (2, "Done."))
    ]
    body = json.dumps({"event": "response.completed", "output": messages})
    completed = Stored("agui-said", 9, "response.completed", 0, "agent:A", "run-1", None, None, body)
    encoder = RunEncoder(RunSegment("agui-said", "front-run-2", "run-1", response, "A", turns=frozenset({1})))

    assert text_of(encoder.encode(completed)) == "Done."
