"""Agents of a conversation have different hues while there are free ones, the same wherever it is drawn."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.realtime.live_renderer import LiveRenderer
from conversations.rendering import conversation_hues, participant_marks
from conversations.rendering.conversation_hues import ConversationHues, follow, of_conversation
from conversations.rendering.hue_slots import SLOTS, hue_of
from conversations.rendering.participant_marks import in_conversation, mark_for
from tests.dashboard.pages.test_conversation_page import KEY, store
from tests.rendering.test_lanes import message_payload, page
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db
SECOND, THIRD = 4, 1  # magenta is farthest from fern, cobalt from both


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    """Conversations of other tests had the same keys."""
    conversation_hues._conversations.clear()


def alike(count: int) -> list[str]:
    """Return names of agents that have one hue when each is drawn by itself."""
    names = (f"Agent {n}" for n in range(10_000))
    return [name for name, _ in zip((n for n in names if participant_marks.hue(n) == 3), range(count), strict=False)]


def test_agents_with_one_hue_get_free_ones_in_the_order_in_which_they_came() -> None:
    first, second, third = alike(3)
    store(
        message_payload(f"agent:{first}", "Rosa"),
        message_payload("Rosa", f"agent:{second}"),
        message_payload(f"agent:{third}", "Rosa"),
    )

    hues = of_conversation(KEY).hues()

    assert hues == {first: 3, second: SECOND, third: THIRD}


@given(st.lists(st.sampled_from([f"Agent {n}" for n in range(40)]), max_size=60))
def test_no_two_share_one_while_there_are_free_ones_and_what_comes_later_changes_nothing(names: list[str]) -> None:
    hues, before = ConversationHues(""), {}
    for seq, name in enumerate(names, 1):
        hues.learn(seq, f'{{"sender": "agent:{name}"}}')
        now = dict(hues.hues())
        assert before.items() <= now.items()
        assert len(set(now.values())) == len(now) == min(SLOTS, len(set(names[:seq])))
        if len(now) <= 10:
            assert len({hue_of(slot) for slot in now.values()}) == len(now)
        before = now


def test_all_views_live_and_loaded_draw_the_same() -> None:
    first, second = alike(2)
    renderer = LiveRenderer(KEY)
    browser = client_of(person("vera", "viewer"))
    for name in (first, second):
        store(message_payload(f"agent:{name}", "Rosa"))

    live = "".join(text for _, text in renderer.draw(events()))

    for html in (live.replace('\\"', '"'), *(page(browser, f"?view={view}") for view in VIEWS)):
        assert re.search(rf'data-hue="{SECOND}"[^>]* title="{second}"', html)
        assert re.search(rf'data-hue="3"[^>]* title="{first}"', html)


VIEWS = ("transcript", "lanes", "timeline")


def events() -> list[Any]:
    """Return what is in the record."""
    from conversations.events import log

    return log.read_after(KEY, 0, 10)


def test_a_cold_process_finds_what_a_warm_one_knew() -> None:
    names = alike(4)
    warm = of_conversation(KEY)
    for name in reversed(names):
        store(message_payload(f"agent:{name}", "Rosa"))
        follow(KEY, warm, events())
    known = dict(warm.hues())

    conversation_hues._conversations.clear()

    assert of_conversation(KEY).hues() == known
    assert [*known] == names[::-1]


def test_a_name_in_what_was_said_is_nobody() -> None:
    store(message_payload("Rosa", "agent:Desk", text='{"agent": "Nobody", "sender": "agent:Nobody"}'))

    assert [*of_conversation(KEY).hues()] == ["Desk"]


def test_outside_of_a_conversation_an_agent_has_its_own() -> None:
    name = alike(1)[0]

    with in_conversation({name: 7}):
        assert mark_for(f"agent:{name}").hue == 7
    assert mark_for(f"agent:{name}").hue == 3


def test_agents_may_come_while_another_thread_assigns_the_hues(monkeypatch) -> None:
    hues, assign = ConversationHues(""), participant_marks.distinct_slots
    hues.learn(1, '{"sender": "agent:Ada"}')

    def interrupted(names):
        for seq, name in enumerate(names, 2):
            hues.learn(seq, f'{{"sender": "agent:{name} again"}}')
            yield name

    monkeypatch.setattr(participant_marks, "distinct_slots", lambda names: assign(interrupted(names)))

    assert [*hues.hues()] == ["Ada"]
    assert [*hues.hues()] == ["Ada", "Ada again"]
