"""What the command palette finds by name: agents that are served, participants of all conversations."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations.conversation import participant_names
from conversations.models import Agent, Conversation, Participant, Role, User

pytestmark = pytest.mark.django_db


def take_part(key: str, *names: str, is_staged: bool = False) -> None:
    """Store a conversation's row with its participants."""
    made = Conversation.objects.create(key=key, last_at=1, is_staged=is_staged)
    Participant.objects.bulk_create(Participant(conversation=made, name=name, kind="person") for name in names)


@pytest.fixture
def browser(client: Client) -> Client:
    """The browser of somebody who may look."""
    user = User.objects.create(username="maria")
    Role.objects.create(user=user, name="viewer")
    client.force_login(user)
    return client


def test_agents_lead_to_their_page_and_participants_to_their_conversations(browser: Client) -> None:
    Agent.objects.create(team="Town Hall", name="Triage")
    Agent.objects.create(team="Town Hall", name="Dialogue")
    take_part("a", "agent:Triage", "Patrick", "Rosa")

    names = browser.get("/", {"part": "names", "q": "TRI"}).json()

    mark = {"kind": "agent", "letters": "Tr", "hue": 1, "pattern": 0}
    agent = {"name": "Triage", "team": "Town Hall", "url": "/agents/Town%20Hall/Triage/", "mark": mark}
    assert names["agents"] == [agent]
    assert names["participants"] == [
        {"name": "Patrick", "url": "/?participant=Patrick"},
        {"name": "Triage", "url": "/?participant=Triage"},
    ]


def test_an_agent_is_found_in_any_case_of_any_script(browser: Client) -> None:
    Agent.objects.create(team="Town Hall", name="Äußerung")

    assert [agent["name"] for agent in browser.get("/", {"part": "names", "q": "ÄUSS"}).json()["agents"]] == [
        "Äußerung"
    ]


def test_each_participant_that_is_offered_leads_to_a_conversation(browser: Client) -> None:
    take_part("a", "agent:Triage", "Rosa", "user:zoe", "system", "token:ci")

    urls = [name["url"] for name in browser.get("/", {"part": "names", "q": ""}).json()["participants"]]

    assert len(urls) == 5
    assert all('data-key="a"' in browser.get(url).content.decode() for url in urls)


def test_a_name_that_no_reader_could_see_is_not_offered() -> None:
    take_part("a", "Ro\u202esa", "Rosa", "agent:Rosa", "user:Rosa")
    take_part("import", "Rosalind", is_staged=True)

    assert participant_names.matching("rosa", 8) == ["Rosa"]


def test_of_many_names_one_is_found_by_how_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant_names, "WALKED", 5)
    take_part("a", *(f"person {n:02}" for n in range(40)), "agent:Zeno", "user:zoe", "zz 1")

    assert participant_names.matching("z", 8) == ["Zeno", "zoe", "zz 1"]
    assert participant_names.matching("person 3", 8) == [f"person {n}" for n in range(30, 38)]


@pytest.mark.slow
def test_the_queries_do_not_grow_with_the_record() -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            participant_names.matching("agent", 8)
        return len(captured)

    take_part("a", *(f"agent:Agent {n:03}" for n in range(350)))
    few = queries()
    for n in range(20):
        take_part(f"more-{n}", *(f"agent:Agent {n:03}" for n in range(350)))

    assert queries() == few <= 20


@pytest.mark.parametrize("q", ["", "\0", "%", "'", "x" * 500])
def test_nothing_typed_is_an_error(browser: Client, q: str) -> None:
    assert browser.get("/", {"part": "names", "q": q}).status_code == 200
