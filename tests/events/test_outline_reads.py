"""What an outline names, page after page, and that it looks no further back than it says."""

import pytest

from conversations.events import log
from conversations.events.log import outline_reads
from conversations.models import Conversation
from conversations.realtime.live_renderer import LiveRenderer
from conversations.rendering import outline_rows
from conversations.rendering.event_renderer import EventRenderer
from tests.dashboard.pages.test_conversation_page import KEY, say, store, token
from tests.support import large_talks, teamwork
from tests.support.cast import person

pytestmark = pytest.mark.django_db

STEP = {"event": "tool_step", "agent": "Dialogue", "name": "rain", "tool_call_id": "c1"}


def place(key: str = KEY) -> tuple[int, str, int]:
    """Return a conversation as reads take it."""
    row = Conversation.objects.get(key=key)
    return row.pk, row.key, row.head_seq


def test_turns_agents_and_failures_are_named_and_nothing_else() -> None:
    store({"type": "message", "sender": "user:rosa", "recipient": "agent:Dialogue", "content": "Is Elm dry?"})
    store(token("It "), {**STEP, "status": "start"}, {**STEP, "status": "error", "error": "503"})
    store({"type": "message", "sender": "agent:Dialogue", "recipient": "agent:Triage", "content": "wait"})
    store({"event": "record.gap", "why": "lost", "lost": 3})

    page = outline_reads.around(*place(), 1)

    rows = outline_rows.rows_of(page.events)
    assert [(row.seq, row.sort) for row in rows] == [(1, "turn"), (4, "failure"), (6, "failure")]
    assert rows[1].words == "rain failed"


def test_a_run_that_asks_is_an_agent_and_an_approval() -> None:
    teamwork.team()
    teamwork.ask(person("owner", "admin"), "waits")

    rows = outline_rows.rows_of(outline_reads.around(*place("waits"), 1).events)

    assert [row.sort for row in rows] == ["control", "turn", "agent", "approval"]
    assert [row.mark.title for row in rows][1:3] == ["owner", "Dialogue"]


def test_pages_together_are_the_whole_outline_in_both_directions() -> None:
    large_talks.write("large", events=3_000)
    whole = outline_reads.PAGE
    forward, seq, has_more = [], 0, True
    while has_more:
        page = outline_reads.after(*place("large"), seq)
        forward += [event.seq for event in page.events]
        seq, has_more = page.events[-1].seq, page.has_later
    backward, seq, has_more = [], 3_001, True
    while has_more:
        page = outline_reads.before(*place("large"), seq)
        backward = [event.seq for event in page.events] + backward
        seq, has_more = page.events[0].seq, page.has_earlier

    assert forward == backward
    assert len(forward) > 3 * whole
    middle = outline_reads.around(*place("large"), 1_500)
    assert [event.seq for event in middle.events] == [s for s in forward if middle.events[0].seq <= s][:whole]
    assert (middle.has_earlier, middle.has_later) == (True, True)


def test_it_looks_back_so_far_and_says_from_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outline_reads, "NEWEST", 10)
    say(*["wet"] * 30)

    page = outline_reads.around(*place(), 25)

    assert page.first == 21
    assert [event.seq for event in page.events] == list(range(21, 31))
    assert not page.has_earlier
    assert outline_reads.after(*place(), 3).events[0].seq == 21


TYPED = {"event": "user_message", "sender": "user:rosa", "text": "Is Elm dry?"}


def test_what_a_gateway_tells_late_is_one_turn_wherever_it_is_shown() -> None:
    store({"type": "message", "sender": "user:rosa", "recipient": "agent:Dialogue", "content": "Is Elm dry?"})
    store({**STEP, "status": "start"}, token("It "), TYPED, token("is"), TYPED)

    outline = outline_reads.around(*place(), 1)
    newest = log.newest_page(KEY, limit=1)
    both = log.newest_page(KEY, limit=2)
    feed = LiveRenderer(KEY).draw(log.read_after(KEY, 3, 10))

    assert [row.seq for row in outline_rows.rows_of(outline.events)] == [1, 6]
    assert [event.seq for event in newest.before] == [1, 4, 5]
    drawn = EventRenderer(KEY, both.preview_after, both.before)
    html = {event.seq: str(drawn.draw(event).html) for event in both.events}
    assert ["on the stream as well" in html[seq] for seq in (4, 6)] == [True, False]
    assert ["on the stream as well" in item for seq, item in feed if seq in (4, 6)] == [True, False]
