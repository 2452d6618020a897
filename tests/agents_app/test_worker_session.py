"""The agents' memory over rows: what comes back, in which order, and what a bad row does."""

import asyncio
import json
from functools import partial

import pytest
from agents.memory import Session
from django.db import IntegrityError, transaction

from agents_app.memory import session
from agents_app.model_providers.providers import ModelConfig, Provider
from agents_app.teams import agent_registry
from agents_app.teams.loading import load
from agents_app.teams.served_team import ServedTeam
from conversations.core.database_clock import database_now
from conversations.events.log import write_transaction
from conversations.events.log.sql_blocks import BLOCK
from conversations.models import Agent, SessionItem, ToolSchema
from tests.support.meeting import run_meeting

pytestmark = pytest.mark.django_db


def item(words):
    return {"role": "user", "content": words}


def remember(*words, conversation="c"):
    memory = session.load(conversation)
    asyncio.run(memory.add_items([item(word) for word in words]))
    with write_transaction():
        memory.save()


def words(items):
    return [each["content"] for each in items]


def test_it_is_the_sdks_session():
    assert isinstance(session.load("c"), Session)


def test_the_newest_items_come_back_oldest_first():
    remember("1", "2", "3")
    remember("4")

    memory = session.load("c")
    assert words(asyncio.run(memory.get_items())) == ["1", "2", "3", "4"]
    assert words(asyncio.run(memory.get_items(2))) == ["3", "4"]
    assert words(session.load("c", newest=3).items()) == ["2", "3", "4"]
    assert session.load("other").items() == []


def test_nothing_is_stored_before_it_is_saved_and_all_of_it_then():
    memory = session.load("c")
    asyncio.run(memory.add_items([item("1"), item("2")]))
    assert SessionItem.objects.count() == 0

    with write_transaction():
        memory.save()
        transaction.set_rollback(True)

    assert session.load("c").items() == []


def test_a_memory_longer_than_one_statement_comes_back_in_order():
    numbers = [str(number) for number in range(BLOCK + 3)]
    remember(*numbers)

    assert words(session.load("c", newest=len(numbers)).items()) == numbers


def test_a_memory_that_was_written_meanwhile_is_not_written_again():
    first, second = session.load("c"), session.load("c")
    for memory in (first, second):
        asyncio.run(memory.add_items([item("1")]))
    with write_transaction():
        first.save()

    with pytest.raises(IntegrityError), transaction.atomic():
        second.save()


def test_a_row_that_cannot_be_read_hides_no_other(caplog):
    remember("1", "2", "3")
    SessionItem.objects.filter(seq=2).update(payload="{broken")

    assert words(session.load("c").items()) == ["1", "3"]
    assert "item 2 of the agents' memory cannot be read" in caplog.text


def test_items_can_be_taken_back_and_forgotten():
    remember("1", "2")
    memory = session.load("c")
    assert asyncio.run(memory.pop_item()) == item("2")
    with write_transaction():
        memory.save()
    assert words(session.load("c").items()) == ["1"]

    asyncio.run(memory.clear_session())
    with write_transaction():
        memory.save()
    assert session.load("c").items() == []


def test_old_items_are_not_remembered():
    remember("old")
    SessionItem.objects.update(at=1)
    remember("new")

    assert words(session.load("c").items()) == ["new"]
    assert SessionItem.objects.count() == 1


def test_a_teams_context_is_kept_beside_the_items_one_of_each_team():
    for team, context in (("a", '{"n":1}'), ("b", "{}"), ("a", '{"n":2}')):
        memory = session.load("c")
        with write_transaction():
            memory.save(team=team, context=context)
    remember("1")

    memory = session.load("c")
    assert memory.context == {"a": '{"n":2}', "b": "{}"}
    assert words(memory.items()) == ["1"]


def test_a_memory_has_the_newest_200_items():
    remember(*map(str, range(300)))

    assert words(session.load("c").items()) == list(map(str, range(100, 300)))


@pytest.mark.each_form  # SQLite lets one write at a time, with or without a lock
@pytest.mark.django_db(transaction=True)
def test_workers_that_start_at_once_enter_the_same_rows_once(monkeypatch):
    rosters = [ServedTeam(team, Provider(ModelConfig())) for team in load("agents_app.town_hall")]

    works = [partial(agent_registry.register, rosters)] * 2
    run_meeting(monkeypatch, agent_registry, "hue_of", works)  # each has found the row missing

    assert Agent.objects.count() == 4


def test_a_worker_enters_what_it_serves_and_colours_stay():
    rosters = [ServedTeam(team, Provider(ModelConfig())) for team in load("agents_app.town_hall")]
    Agent.objects.create(team="gone", name="Old", is_entry=True, served_until=1)
    agent_registry.register(rosters)
    first = {agent.name: agent.hue for agent in Agent.objects.all()}
    agent_registry.register(rosters)

    assert {agent.name: agent.hue for agent in Agent.objects.all()} == first
    assert len(set(first.values())) == len(first) == 4
    dialogue = Agent.objects.get(name="Dialogue")
    assert (dialogue.is_entry, dialogue.model, dialogue.is_demo_model) == (True, "demo model", True)
    tools = json.loads(Agent.objects.get(name="Conversation Format Coordinator").tools)
    assert {tool["name"]: tool["needs_approval"] for tool in tools}["file_incident"] is True
    assert {tool["schema"] for tool in tools} <= set(ToolSchema.objects.values_list("hash", flat=True))


def test_what_a_worker_served_is_available_no_longer_than_the_worker():
    rosters = [ServedTeam(team, Provider(ModelConfig())) for team in load("agents_app.town_hall")]
    agent_registry.register(rosters)
    assert Agent.objects.filter(served_until__gt=database_now()).count() == 4

    agent_registry.unregister(rosters)

    assert not Agent.objects.filter(served_until__gt=database_now()).exists()
