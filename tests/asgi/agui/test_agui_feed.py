"""`GET /api/v1/agui/conversations/{id}`: past runs and those to come, with a cursor."""

import pytest
from ag_ui.core import EventType

from conversations.core.principals import SYSTEM, token_principal
from conversations.events import log
from conversations.models import Approval, Run
from conversations.runs.approvals import decide
from tests.support.agui import agui_open, checked, input_of, kinds, pieces, text_of
from tests.support.unchecked import from_text, unchecked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(transactional_db):
    with agui_open("admin") as served:
        yield served


def first_run() -> str:
    return Run.objects.order_by("queued_seq").values_list("id", flat=True).first()


def cursors(writes):
    return [line for write in writes for line in write.decode().split("\n") if line.startswith("id: ")]


def ask(desk, query):
    head = {"authorization": f"Bearer {desk.token}"}
    return desk.ask(b"", f"/api/v1/agui/conversations/{query}", method="GET", headers=head)


def test_a_past_run_is_told_as_it_was_streamed(desk):
    streamed = desk.play("agui-past", "hosted words")

    events = desk.watch("agui-past", f"?run={first_run()}")

    assert kinds(events) == kinds(streamed)
    assert text_of(events) == text_of(streamed)
    assert events[0].input.messages[0].content == "hosted words"
    assert events[0].run_id == first_run()


def test_a_reader_that_comes_back_gets_what_it_missed_and_nothing_twice(desk):
    desk.play("agui-cut", "many 6")
    whole = ask(desk, f"agui-cut?run={first_run()}").writes[:-1]
    places = [cursor.removeprefix("id: ") for cursor in cursors(whole)]
    assert len(places) == len(set(places)) == len(whole)

    for at, place in enumerate(places[:-1]):
        assert ask(desk, f"agui-cut?run={first_run()}&after={place}").writes[:-1] == whole[at + 1 :]
    assert ask(desk, f"agui-cut?run={first_run()}&after={places[-1]}").writes == [b""]


def test_a_wait_for_a_decision_parts_a_run_in_two(desk):
    desk.play("agui-parted", "ask me")
    decide.decide(SYSTEM, Approval.objects.get().id, "approve")
    streamed = desk.play("agui-parted", "", resume=[
        {"interruptId": Approval.objects.get().id, "status": "resolved", "payload": True}
    ])  # fmt: skip

    events = desk.watch("agui-parted", f"?run={first_run()}")

    ends = [event for event in events if event.type == EventType.RUN_FINISHED]
    assert [(end.run_id, end.outcome.type) for end in ends] == [
        (first_run(), "interrupt"),
        (f"{first_run()}.2", "success"),
    ]
    assert text_of(events) == text_of(streamed) == "It is decided."


def test_past_and_coming_runs_are_one_stream(desk):
    count = len(desk.play("agui-live", "one thing"))

    async def watch():
        async with desk.asking(b"", "/api/v1/agui/conversations/agui-live", method="GET") as reading:
            await reading.writes(count)
            async with desk.asking(input_of("agui-live", "other thing", run="front-run-2")) as answer:
                await answer.answer()
            return pieces(await reading.writes(2 * count))

    texts = [text_of(part) for part in _runs(checked(desk.run(watch)))]

    assert texts == ["You said: one thing", "You said: other thing"]


@pytest.mark.parametrize("odd", ["1e999", "9" * 5_000, '"\\ud800"'])
def test_a_message_with_what_python_has_no_value_for_ends_no_stream(desk, odd):
    text = f'{{"type":"message","sender":"user:x","recipient":"chat:agui-odd","content":"hm","a":{odd}}}'
    log.append([from_text("stream:agui-odd", text)])
    count = len(desk.play("agui-odd", "hosted words"))

    async def watch():
        async with desk.asking(b"", "/api/v1/agui/conversations/agui-odd", method="GET") as reading:
            return pieces(await reading.writes(count))

    assert kinds(checked(desk.run(watch)))[-1] == "RUN_FINISHED"


def test_a_reader_comes_back_amid_a_run_that_was_streamed_after_another(desk):
    steps = (
        ("run.queued", "b", {"input_seq": 1}),
        ("run.queued", "a", {"input_seq": 2}),
        ("run.started", "a", {"attempt": 1, "worker": "w"}),
        ("output", "a", {"turn": 0, "text": "a. "}),
        ("run.cancelled", "b", {}),
        ("run.done", "a", {}),
    )
    for kind, run, fields in steps:
        body = {"event": kind, "id": f"{kind}-{run}", "run_id": run, "agent": "Unserved", **fields}
        log.append([log.from_internal("agui-beside", body, SYSTEM)])
    whole = watched(desk, "agui-beside", 9)
    places = [cursor.removeprefix("id: ") for cursor in cursors(whole)]
    assert kinds(pieces(whole))[-4:] == ["STEP_FINISHED", "RUN_FINISHED", "RUN_STARTED", "RUN_FINISHED"]

    for at, place in enumerate(places[:-1]):
        assert watched(desk, f"agui-beside?after={place}", len(whole) - at - 1) == whole[at + 1 :]


def watched(desk, query, count):
    """Return so many writes of a stream that goes on."""

    async def watch():
        async with desk.asking(b"", f"/api/v1/agui/conversations/{query}", method="GET") as reading:
            return await reading.writes(count)

    return desk.run(watch)


def _runs(events):
    runs = []
    for event in events:
        if event.type == EventType.RUN_STARTED:
            runs.append([])
        runs[-1].append(event)
    return runs


def test_what_others_say_about_runs_is_no_run(desk):
    desk.play("agui-claims", "hello")
    for kind in ("run.queued", "output"):
        claim = {"event": kind, "run_id": "theirs", "agent": "Elsewhere", "text": "boo"}
        log.append([unchecked("agui-claims", claim, token_principal("outsider"))])

    events = desk.watch("agui-claims", f"?run={first_run()}")

    assert "boo" not in text_of(events)
    assert ask(desk, "agui-claims?run=theirs").status == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("agui-nowhere", 404),
        ("agui-known?run=nobody", 404),
        ("agui-known?after=x", 400),
        ("agui-known?after=-1", 400),
        ("agui-known?after=1.x", 400),
        (f"agui-known?after={'9' * 30}", 400),
        ("agui-known?when=now", 400),
    ],
)
def test_a_wrong_address_is_refused(desk, query, status):
    desk.play("agui-known", "hello")

    assert ask(desk, query).status == status


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "auditor"])
def test_everybody_who_may_view_may_watch(role):
    with agui_open(role) as viewer:
        assert ask(viewer, "agui-nowhere").status == 404
