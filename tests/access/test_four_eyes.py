"""Four eyes count a token as whoever made it: for redactions, approvals, auto-approval rules and replays."""

import pytest

from conversations.access import four_eyes
from conversations.access.accounts import tokens
from conversations.conversation import post_message
from conversations.core.errors import NotAllowed
from conversations.core.principals import SYSTEM
from conversations.models import Token
from conversations.redaction import requests
from conversations.redaction.scope import RedactionScope
from conversations.runs import claims
from conversations.runs.approvals import decide, pending_counts
from tests.redaction.test_redact import spoken
from tests.support import teamwork
from tests.support.cast import person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def two_people(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True, "redaction_four_eyes": True})


def token_of(by, name="robot", role="admin"):
    """Have somebody make a token; return its row."""
    tokens.make_token(by, name, role)
    return Token.objects.get(name=name)


def ask_for_approval(by):
    """Bring a run to its approval request, of which this is the author."""
    teamwork.team()
    post_message.post(by, "flood", recipient="agent:Dialogue", content="Water", client_id="1")
    facts = {"event": "approval.requested", "approval_id": "ask", "tool_call": "t", **teamwork.ASKED}
    claims.suspend(teamwork.claim(), "approval", facts, **teamwork.SEALED)


def test_who_asked_for_a_redaction_does_not_confirm_it_by_a_token_nor_the_other_way_round(people):
    ada, robot = people["admin"], token_of(people["admin"])
    spoken("eyes-a", "quokka", "wombat")
    first = requests.submit(ada, RedactionScope("eyes-a", [1]), "asked for").request
    second = requests.submit(robot, RedactionScope("eyes-a", [2]), "asked for").request

    for confirmer, request in ((robot, first), (ada, second), (token_of(robot, "other"), first)):
        with pytest.raises(NotAllowed, match="a second person"):
            requests.confirm(confirmer, request.pk)

    for request in (first, second):
        assert requests.confirm(
            token_of(person(f"bess{request.pk}", "admin"), f"bess{request.pk}"), request.pk
        ).redacted


@pytest.mark.parametrize("by_token", [True, False], ids=["its maker decides", "its maker asks"])
def test_nobody_decides_on_what_their_token_wrote_nor_by_a_token_on_what_they_wrote(people, by_token):
    ada, robot = people["admin"], token_of(people["admin"])
    ask_for_approval(robot if by_token else ada)

    with pytest.raises(NotAllowed, match="four eyes"):
        decide.decide(ada if by_token else robot, "ask", "approve")

    assert "user:ada" in pending_counts.excluded_approvers()["ask"]
    assert decide.decide(token_of(person("bess", "admin"), "bess"), "ask", "approve").decided_by == "token:bess"


def test_a_token_counts_as_everybody_who_made_one_of_its_name(people):
    token_of(people["admin"])
    tokens.revoke_token(people["admin"], "robot")
    token_of(robot := token_of(person("bess", "admin"), "robot"), "third")

    assert four_eyes.people_behind(["token:third", "user:vera"]) == {
        "token:third": {"token:third", f"token:{robot.name}", "user:ada", "user:bess"}, "user:vera": {"user:vera"}
    }  # fmt: skip


def test_tokens_that_were_made_at_the_command_line_are_each_their_own(people):
    ask_for_approval(token_of(SYSTEM))

    assert decide.decide(token_of(SYSTEM, "other"), "ask", "approve").decided_by == "token:other"
