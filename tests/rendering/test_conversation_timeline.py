"""The timeline of a conversation: its rows and how they nest, the scale, folded pauses, failures alone, one window."""

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from conversations.core import principals
from conversations.core.micros import to_micros
from conversations.events import log
from conversations.events.log import timeline_reads
from conversations.events.log.records import Stored
from conversations.events.log.timeline_reads import CallTimes, RunTimes, TimelineEvents
from conversations.models import Conversation
from conversations.rendering import conversation_timeline, timeline_drawing
from conversations.rendering.timeline_scale import WIDTH, scale_of
from conversations.runs.approvals import decide
from dashboard.pages.timeline import FIRST_ROWS, ROWS
from tests.support import large_talks, teamwork
from tests.support.cast import client_of
from tests.support.unchecked import unchecked

SECOND = 1_000_000


def at(seconds):
    return int(seconds * SECOND)


def events(*kinds_and_bodies, run="r"):
    return [
        Stored(
            "c", seq, kind, at(when), "agent:Dialogue", None if kind == "message" else run, None, None, json.dumps(body)
        )
        for seq, when, kind, body in kinds_and_bodies
    ]


def call(id_, name, agent, seqs, when, ms, *, run="r", status="done", approver=None):
    return CallTimes(id_, run, agent, name, *seqs, status, at(when), ms, approver, at(when + (ms or 0) / 1000))


TOLD = events(
    (1, 0, "message", {"sender": "user:Rosa", "content": "The  road\nis flooded"}),
    (2, 0, "run.queued", {"agent": "Dialogue"}),
    (3, 0.1, "run.started", {"agent": "Dialogue"}),
    (4, 1, "model.turn", {"agent": "Dialogue", "turn": 1, "duration_ms": 800}),
    (5, 1, "agent.handoff", {"from_agent": "Dialogue", "to_agent": "Coordinator"}),
    (6, 1, "town_hall.stage", {"stage": "incident_formatting"}),
    (9, 3, "model.turn", {"agent": "Formatter", "turn": 2, "duration_ms": 500, "parent_call": "outer"}),
    (11, 4, "approval.requested", {"name": "file_incident"}),
    (12, 4, "run.waiting", {"reason": "approval"}),
    (14, 3604, "run.resumed", {"reason": "approve"}),
    (15, 3604.2, "run.started", {"agent": "Dialogue", "attempt": 2}),
    (18, 3606, "run.done", {}),
)
CALLS = [
    call("outer", "format_incident", "Coordinator", (7, 10), 2, 1500),
    call("inner", "look_up", "Formatter", (8, 9), 2.2, 100, status="failed"),
    CallTimes("asked", "r", "Coordinator", "file_incident", 11, 17, "done", at(4), 300, "user:otto", at(3605)),
]
READ = TimelineEvents(1, 18, at(3606), TOLD, CALLS, [RunTimes("r", "agent", "Dialogue", "done")])


def rows_of(read):
    return [(row.kind, row.depth, row.name, row.words) for row in read.rows]


def test_what_a_person_types_on_the_stream_or_asks_as_a_client_is_drawn_like_a_message_once():
    message = {"sender": "user:Rosa", "content": "Hello"}
    request = {"sender": "token:desk", "agent": "Dialogue", "input": [{"role": "user", "content": "Any news?"}]}
    recorded = events(
        (1, 0, "user_message", {"text": "The road\nis flooded"}),
        (2, 1, "message", message),
        (3, 2, "user_message", {"sender": "user:Rosa", "text": "Hello"}),
        (4, 3, "response.received", request),
        run=None,
    )

    read = conversation_timeline.layout(TimelineEvents(1, 4, at(3), recorded, [], []))

    assert rows_of(read) == [
        ("message", 0, "user", "The road is flooded"),
        ("message", 0, "user:Rosa", "Hello"),
        ("message", 0, "token:desk", "Any news?"),
    ]


def test_calls_stand_in_who_made_them_and_runs_inside_calls_in_the_call():
    assert rows_of(conversation_timeline.layout(READ)) == [
        ("message", 0, "user:Rosa", "The road is flooded"),
        ("run", 0, "agent:Dialogue", "run"),
        ("agent", 1, "agent:Dialogue", ""),
        ("agent", 1, "agent:Coordinator", "incident formatting"),
        ("call", 2, "format_incident", ""),
        ("agent", 3, "agent:Formatter", ""),
        ("call", 4, "look_up", ""),
        ("wait", 1, "", "waiting for approval of file_incident"),
        ("agent", 1, "agent:Coordinator", ""),
        ("call", 2, "file_incident", ""),  # where it was entered, not where it was asked about
    ]


@pytest.mark.parametrize("status", ["delivered", "failed", "cancelled"])
def test_a_run_that_ends_in_the_queue_has_its_row_alone(status):
    read = events((1, 0, "run.queued", {"agent": "Dialogue"}), (2, 0.5, f"run.{status}", {}))

    timeline = conversation_timeline.layout(
        TimelineEvents(1, 2, at(0.5), read, [], [RunTimes("r", "agent", "Dialogue", status)])
    )

    assert [(row.kind, row.start, row.end) for row in timeline.rows] == [("run", 0, at(0.5))]


def test_a_run_that_began_before_what_was_read_shows_the_work_that_was_read():
    read = events(
        (7, 9, "model.turn", {"agent": "Coordinator", "turn": 3, "duration_ms": 800}),
        (10, 12, "model.turn", {"agent": "Coordinator", "turn": 4, "duration_ms": 500}),
        (11, 12.1, "run.done", {}),
    )
    made = [call("c", "look_up", "Coordinator", (8, 9), 10, 300)]

    timeline = conversation_timeline.layout(
        TimelineEvents(1, 11, at(12.1), read, made, [RunTimes("r", "agent", "Dialogue", "done")])
    )

    assert [(row.kind, row.depth, row.name, row.start, row.end) for row in timeline.rows] == [
        ("run", 0, "agent:Dialogue", at(9) - at(0.8), at(12.1)),
        ("agent", 1, "agent:Coordinator", at(9) - at(0.8), at(12.1)),
        ("call", 2, "look_up", at(10), at(10.3)),
    ]
    assert timeline.rows[1].turns == ((at(9) - at(0.8), at(9), 7), (at(11.5), at(12), 10))


def test_the_end_of_a_run_alone_is_drawn():
    read = events((11, 12, "run.done", {}))

    timeline = conversation_timeline.layout(TimelineEvents(1, 11, at(12), read, [], []))

    assert [(row.kind, row.state, row.end) for row in timeline.rows] == [("run", "done", at(12))]


def test_a_turn_told_after_its_run_has_ended_leaves_it_ended():
    read = events(
        (1, 0, "run.started", {"agent": "Dialogue"}),
        (2, 3, "run.done", {}),
        (3, 3.5, "model.turn", {"agent": "Dialogue", "turn": 1, "duration_ms": 1000}),
    )

    timeline = conversation_timeline.layout(TimelineEvents(1, 3, at(3.5), read, [], []))

    assert [(row.kind, row.end) for row in timeline.rows] == [("run", at(3.5)), ("agent", at(3))]
    assert timeline.rows[1].turns == ((at(2.5), at(3.5), 3),)


def test_a_long_wait_is_folded_and_work_keeps_its_length():
    timeline = conversation_timeline.layout(READ)
    drawn = {(row.kind, row.number): row for row in timeline_drawing.drawn(timeline, 0, 50)}
    width = {key: row.bars[0].width for key, row in drawn.items()}

    assert [stretch.is_folded for stretch in timeline.scale.stretches].count(True) >= 1
    assert width["wait", 7] < 0.45 * WIDTH
    assert width["call", 4] == pytest.approx(15 * width["call", 6], rel=0.01)
    assert drawn["wait", 7].took == "1.0 h"
    assert timeline.totals.waits == at(3600)
    assert timeline.totals.models == at(1.3)


def test_failures_alone_keep_what_they_stand_in():
    assert [row.name for row in conversation_timeline.layout(READ, failures=True).rows] == [
        *("agent:Dialogue", "agent:Coordinator", "format_incident", "agent:Formatter", "look_up")
    ]


def test_an_event_belongs_to_the_innermost_row_around_it():
    timeline = conversation_timeline.layout(READ)

    assert [timeline.rows[timeline.row_of(seq)].name for seq in (1, 2, 4, 8, 9, 17)] == [
        *("user:Rosa", "agent:Dialogue", "agent:Dialogue", "look_up", "agent:Formatter", "file_incident")
    ]


def test_a_wait_that_goes_on_is_drawn_until_now_and_folded():
    cut = next(n for n, event in enumerate(TOLD, 1) if event.kind == "run.waiting")
    events_so_far = TOLD[:cut]
    calls = [*CALLS[:2], CALLS[2]._replace(finished_seq=None, status="waiting", duration_ms=None, finished_at=None)]
    read = TimelineEvents(
        1,
        events_so_far[-1].seq,
        events_so_far[-1].at,
        events_so_far,
        calls,
        [RunTimes("r", "agent", "Dialogue", "waiting")],
    )

    timeline = conversation_timeline.layout(read, upto=events_so_far[-1].at + 3600 * SECOND)

    rows = timeline_drawing.drawn(timeline, 0, 50)
    (wait,) = [row for row in rows if row.kind == "wait"]
    assert [row.name for row in rows if "file_incident" in (row.name, row.words)] == []
    assert (wait.state, wait.words, wait.seq) == ("waiting", "waiting for approval of file_incident", 11)
    assert timeline.rows[timeline.row_of(11)].kind == "wait"
    assert WIDTH / 10 < wait.bars[0].width < WIDTH / 2
    assert wait.bars[0].x + wait.bars[0].width == WIDTH
    assert (timeline.totals.waits, timeline.totals.is_waiting) == (3600 * SECOND, True)
    assert timeline.scale.folded[-1].x_end == WIDTH


def test_no_part_of_the_time_is_longer_than_the_whole():
    request_steps = [(4, "approval.requested", {"name": "pay"}), (4, "run.waiting", {"reason": "approval"})]
    calls = [
        call("outer", "plan", "A", (20, 23), 1, 2000, run=None),
        call("in", "look", "A", (21, 22), 2, 500, run=None),
    ]
    waiting = [event for n, run in enumerate("rs") for event in events(
        (10 * n + 1, 0, "run.queued", {"agent": "A"}),
        (10 * n + 2, 0, "run.started", {"agent": "A"}),
        (10 * n + 3, 3, "model.turn", {"agent": "A", "turn": 1, "duration_ms": 2000}),
        *((10 * n + 4 + m, *step) for m, step in enumerate(request_steps)),
        run=run,
    )]  # fmt: skip
    runs = [RunTimes(run, "agent", "A", "waiting") for run in "rs"]

    totals = conversation_timeline.layout(TimelineEvents(1, 30, at(4), waiting, calls, runs), upto=at(64)).totals

    assert (totals.models, totals.tools, totals.waits) == (2 * SECOND, 2 * SECOND, 60 * SECOND)
    assert totals.whole == 64 * SECOND


@pytest.mark.parametrize("cut", range(1, len(TOLD)))
def test_what_goes_on_reaches_to_the_last_event(cut):
    events_so_far = TOLD[:cut]
    calls = [call for call in CALLS if call.called_seq <= events_so_far[-1].seq]
    read = TimelineEvents(
        1,
        events_so_far[-1].seq,
        events_so_far[-1].at,
        events_so_far,
        calls,
        [RunTimes("r", "agent", "Dialogue", "running")],
    )

    timeline = conversation_timeline.layout(read)

    for row in timeline_drawing.drawn(timeline, 0, 50):
        assert all(0 <= bar.x < bar.x + bar.width <= WIDTH for bar in row.bars)
        assert row.kind == "message" or row.took or row.bars[0].width >= WIDTH / 100


def test_what_has_no_row_does_not_extend_a_conversation_that_is_over():
    """A note of a day later, or the summary line of an imported file."""
    timeline = conversation_timeline.layout(READ._replace(head=19, last_at=at(24 * 3600)))

    assert timeline.last == at(3606)
    assert timeline.totals.whole == at(3606)


def test_a_conversation_without_anything_to_draw_has_no_rows():
    timeline = conversation_timeline.layout(TimelineEvents(1, 0, 0, [], [], []))

    assert timeline.rows == []
    assert timeline_drawing.drawn(timeline, 0, 10) == []


def test_places_are_in_the_order_of_moments():
    scale = scale_of([(0, 5 * SECOND), (900 * SECOND, 905 * SECOND)], 0, 905 * SECOND)

    places = [scale.at(moment) for moment in (0, SECOND, 5 * SECOND, 500 * SECOND, 900 * SECOND, 905 * SECOND)]
    assert places == sorted(set(places))
    assert scale.at(905 * SECOND) == WIDTH
    assert len(scale.folded) == 1


def test_a_talk_without_work_is_not_folded_to_nothing():
    moments = [(n * 60 * SECOND, n * 60 * SECOND) for n in range(50)]

    scale = scale_of(moments, 0, 49 * 60 * SECOND)

    places = [scale.at(moment) for moment, _ in moments]
    assert all(after - before > WIDTH / 60 for before, after in pairwise(places))


@pytest.mark.parametrize("body", ["[]", "nonsense", '{"agent": [1], "duration_ms": "x", "parent_call": {}}', "{}"])
def test_hostile_bodies_cost_themselves_alone(body):
    kinds = ("run.queued", "run.started", "model.turn", "agent.handoff", "approval.requested", "run.waiting", "x.stage")
    events_read = [Stored("c", n, kind, at(n), "agent:A", "r", None, None, body) for n, kind in enumerate(kinds, 1)]

    timeline = conversation_timeline.layout(TimelineEvents(1, 7, at(7), events_read, [], []))

    assert timeline.rows[0].kind == "run"
    assert timeline_drawing.drawn(timeline, 0, 50)


# on the page


def page(user, query="", key="flood"):
    return client_of(user).get(f"/conversations/{key}/?view=timeline{query}").content.decode()


@pytest.mark.django_db
def test_the_page_shows_a_question_and_what_came_of_it(team):
    teamwork.team()
    approval = teamwork.ask(team["operator"])
    assert "waiting for approval of file_incident" in page(team["viewer"])

    teamwork.go_on(decide.decide(team["approver"], approval.id, "approve"))

    html = page(team["viewer"], "&part=timeline")
    assert '<code class="clip">file_incident</code>' in html
    assert "<html" not in html


@pytest.mark.django_db
def test_an_imported_conversation_is_drawn_at_the_times_at_which_it_happened():
    first = datetime(2025, 11, 20, 23, 33, tzinfo=UTC)

    def event(minutes, **fields):
        payload = {"created_at": (first + timedelta(minutes=minutes)).isoformat(), **fields}
        topic = "stream:old" if "event" in fields else "chat:old"
        return unchecked("old", payload, principals.import_principal("test"), topic=topic)

    step = {"event": "tool_step", "agent": "A", "name": "bash", "tool_call_id": "c"}
    log.append([
        event(0, type="message", sender="user", recipient="agent:A", content="hi"),
        event(1, **step, status="start"), event(3, **step, status="success"),
        event(160, type="message", sender="agent:A", recipient="user", content="done"),
    ])  # fmt: skip
    conversation = Conversation.objects.get(key="old")

    drawn = conversation_timeline.layout(timeline_reads.read(conversation.pk, "old", conversation.head_seq))

    minute, began = 60 * SECOND, to_micros(first)
    assert [(row.kind, row.start - began, row.end - began) for row in drawn.rows] == [
        ("message", 0, 0), ("call", minute, 3 * minute), ("message", 160 * minute, 160 * minute)
    ]  # fmt: skip
    assert (drawn.first, drawn.last) == (began, began + 160 * minute)


@pytest.mark.django_db
def test_the_time_of_a_wait_goes_on_by_itself_until_it_is_decided_but_not_in_the_past(team):
    teamwork.team()
    approval = teamwork.ask(team["operator"])
    going_on = r'waiting <time datetime="[^"]+" data-elapsed>\d+ s</time>'

    then = page(team["viewer"], f"&at={approval.conversation.head_seq}")
    assert re.search(going_on, page(team["viewer"]))
    assert "data-elapsed" not in then

    teamwork.go_on(decide.decide(team["approver"], approval.id, "approve"))
    assert "data-elapsed" not in page(team["viewer"])


@pytest.mark.slow
@pytest.mark.django_db
def test_one_window_of_a_large_conversation_is_drawn_and_any_event_found(team):
    large_talks.write("large", events=2_000)

    newest, further = page(team["viewer"], key="large"), page(team["viewer"], "&part=timeline", key="large")
    failures = page(team["viewer"], "&failures=1&part=timeline", key="large")
    around = page(team["viewer"], "&event=1001", key="large")

    assert newest.count('class="span"') == around.count('class="span"') == FIRST_ROWS
    assert further.count('class="span"') == ROWS
    calls, runs = {n for n in range(200) if n % 9 == 0}, {n for n in range(200) if n % 50 == 25}
    assert failures.count('class="span"') == 3 * len(calls) + len(runs - calls)  # a call in its agent's row, in its run
    assert 'data-seq="1001" data-number="600"' in around
    assert around.count('aria-current="true"') == 1
    assert 'data-state="failed"' in failures
    drawn, key = failures.partition('<ol class="timeline-rows">')[2], failures.partition('aria-label="Key"')[2]
    assert drawn.count('class="stripes"') == drawn.count('class="bar" data-kind="failed"') > 0  # without colour too
    assert key[: key.index("</ul>")].count('class="stripes"') == 1
    assert Conversation.objects.get(key="large").head_seq == 2_000


@pytest.mark.slow
@pytest.mark.django_db
def test_links_within_the_past_stay_there(team):
    large_talks.write("large", events=2_000)

    html = page(team["viewer"], "&at=1500&event=900", key="large")

    assert 'href="?view=timeline&amp;at=1500&amp;event=900&amp;failures=1"' in html
    assert 'data-earlier href="?view=timeline&amp;at=1500&amp;from=' in html


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query", ["&from=x", "&from=-1", "&from=999999999999", "&event=999999", "&event=x", "&failures=2"]
)
def test_a_mangled_address_still_opens(team, query):
    teamwork.team()
    teamwork.ask(team["operator"])

    assert 'class="span"' in page(team["viewer"], query)
