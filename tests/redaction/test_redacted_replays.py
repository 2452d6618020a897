"""No tool is called with what stands in place of redacted arguments."""

import pytest

from conversations.core.errors import Conflict
from conversations.core.principals import SYSTEM
from conversations.models import Agent, ToolCall
from conversations.redaction import redact
from conversations.runs.replay import request_replay
from tests.runs.replay.conftest import desk  # noqa: F401  # a fixture
from tests.support.agents_running import working
from tests.support.replay_desk import Desk, ended

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("field", ["args.street", ""])
@pytest.mark.parametrize("name", ["look", "put"])
def test_redacted_call_is_not_made_again_on_one_click(people, desk: Desk, name: str, field: str) -> None:  # noqa: F811
    old = desk.recorded(name)[name]
    before = desk.ran
    redact.redact_call(SYSTEM, old.id, field, "asked for")

    with working(desk.team()), pytest.raises(Conflict, match="were redacted") as refused:
        request_replay.request_replay(people["operator"], ToolCall.objects.get(name=name).id)

    assert refused.value.code == "not_replayable"
    assert desk.ran == before


def test_replay_whose_request_is_redacted_before_it_begins_is_not_made(people, desk: Desk) -> None:  # noqa: F811
    old = desk.recorded("look")["look"]
    before = desk.ran
    Agent.objects.update(served_until=1 << 62)  # its worker is busy
    new = request_replay.request_replay(people["operator"], old.id)
    redact.redact_call(SYSTEM, new.call, "args.street", "asked for")

    with working(desk.team()):
        run = ended(new.run)

    assert (run.status, desk.ran) == ("cancelled", before)
    assert "were redacted" in run.reason
