"""References of a request to items of earlier ones."""

import pytest
from agents import Agent
from agents.testing import ScriptedModel, assistant_message

from agents_app.open_responses import history
from agents_app.teams.definition import Team
from conversations.events import response_ids
from conversations.models import Run
from conversations.runs.responses import stored_response
from tests.support.agents_running import ended_runs, team, working
from tests.support.responses import answer, ask, user
from tests.support.teamwork import claim_from_outside

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def _text(item):
    content = item["content"]
    return content if isinstance(content, str) else content[0]["text"]


def listed_ids(response):
    stored = stored_response.find(response)
    return [item["id"] for item in response_ids.input_items(response, stored.body["input"])]


def test_an_input_item_is_referred_to_by_the_id_under_which_it_is_listed():
    model = ScriptedModel([[assistant_message(text)] for text in ("one", "two", "three")])
    with working(Team(name="test", agents=[Agent(name="Clerk", model=model)], entry=["Clerk"])):
        first = ask([user("a"), user("b") | {"id": None}], key="c")
        ended_runs()
        *_, id_ = listed_ids(first)
        ask([{"type": "item_reference", "id": id_}, user("go on")], key="c", previous=first)
        ended_runs(2)
        ask([{"id": id_}, {"id": id_}, user("anew")], key="c")
        runs = ended_runs(3)

    assert [run.status for run in runs] == ["done"] * 3
    assert [_text(item) for item in model.calls[1].input] == ["a", "b", "one", "go on"]
    assert [_text(item) for item in model.calls[2].input] == ["b", "anew"]


def test_references_are_sought_in_a_limited_part_of_the_record(monkeypatch):
    monkeypatch.setattr(history, "MAX_SIZE", 3000)
    with working(team(*[[assistant_message("so")]] * 5)):
        far = ask("far", key="c")
        ask("x" * 2000, key="c")
        near = ask("near", key="c")
        ended_runs(3)
        answers = [ask([{"id": listed_ids(of)[0]}, user("go on")], key="c") for of in (near, far)]
        ended_runs(5)

    assert [answer(response)["status"] for response in answers] == ["completed", "failed"]


def test_an_item_that_somebody_claims_was_answered_is_none_to_refer_to():
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}
    with working(team(*[[assistant_message("so")]] * 2)):
        first = ask("a", key="c")
        ended_runs()
        run = Run.objects.get().id
        claim_from_outside("c", {"event": "response.completed", "response_id": first, "run_id": run, "output": [item]})
        second = ask([{"id": "msg_1"}, user("go on")], key="c")
        ended_runs(2)

    assert answer(second)["status"] == "failed"
    assert "There is no item msg_1" in answer(second)["error"]["message"]
