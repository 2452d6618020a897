"""Four eyes for the calls of external agents: whoever wrote what the agent works on does not approve its calls."""

import pytest

from conversations.access.accounts import tokens
from conversations.conversation import post_message
from conversations.core.errors import NotAllowed
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Token
from conversations.runs.approvals import decide, pending_counts
from tests.runs.approvals.test_external_approvals import CODER, ask, step
from tests.support.cast import cast
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def people(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    made = cast()
    tokens.make_token(SYSTEM, "coder", "agent", agent="Coder")
    return made


def output(text: str) -> None:
    log.append([unchecked("s", {"event": "output", "agent": "Coder", "text": text}, CODER)])


def write(by, content: str = "Delete the disk.", to: str = "agent:Coder") -> None:
    post_message.post(by, "s", recipient=to, content=content, client_id=content)


def excluded(approval) -> set[str]:
    return set(pending_counts.excluded_approvers().get(approval.id, ()))


@pytest.mark.parametrize("to", ["agent:Coder", "chat:s"])
def test_who_wrote_to_an_external_agent_does_not_decide_on_its_call(people, to):
    log.append([step("t0", status="start"), step("t0", status="success")])
    write(people["admin"], to=to)
    approval = ask()

    with pytest.raises(NotAllowed, match="four eyes"):
        decide.decide(people["admin"], approval.id, "approve")

    assert excluded(approval) == {"token:coder", "user:ada"}
    assert decide.decide(people["approver"], approval.id, "approve").decided_by == "user:april"


def test_words_before_the_agents_last_output_bar_nobody(people):
    log.append([step("t0", status="start"), step("t0", status="success")])
    write(people["admin"])
    output("Done.")

    assert excluded(ask()) == {"token:coder"}


def test_words_sent_with_a_token_are_its_makers(people):
    tokens.make_token(people["admin"], "desk", "operator")
    log.append([step("t0", status="start"), step("t0", status="success")])
    write(Token.objects.get(name="desk"))

    assert excluded(ask()) == {"token:coder", "token:desk", "user:ada"}
