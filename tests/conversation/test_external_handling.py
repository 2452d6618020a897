"""Who handles a conversation that a program's token opened: its own agent, unless one of ours takes part."""

import pytest

from conversations.core.principals import token_principal
from conversations.events import log
from conversations.models import Agent
from tests.support.cast import client_of
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db


@pytest.fixture
def observed() -> None:
    """An agent's output, told by a token."""
    output = {"event": "output", "agent": "Coder", "text": "done"}
    log.append([unchecked("s", output, token_principal("coder"), bus_id="1")])


@pytest.mark.parametrize("path", ["/", "/conversations/s/"])
def test_it_is_handled_by_an_external_agent(team, observed, path):
    page = client_of(team["operator"]).get(path).content.decode()

    assert "External agent" in page
    assert "No one" not in page


def test_with_an_agent_of_ours_it_is_handled_by_no_one(team, observed):
    Agent.objects.create(team="Desk", name="Coder")

    page = client_of(team["operator"]).get("/").content.decode()

    assert "External agent" not in page
    assert "No one" in page
