"""A trace of which a part has moved to the conversation that a later span named: a redaction of either reaches both."""

import json

import pytest

from conversations.core import principals
from conversations.core.errors import Unavailable
from conversations.events import log
from conversations.models import Conversation, Event
from conversations.redaction import erase_id
from conversations.redaction.redact import redact
from conversations.telemetry import late_names
from tests.redaction.test_redact import SECRET, everywhere, index
from tests.support.unchecked import from_text
from tests.support.verified import verify_events

pytestmark = pytest.mark.django_db(transaction=True)
TRACE, NAMED, BY = "0" * 31 + "7", "named", principals.token_principal("collector")


@pytest.fixture
def half_moved(monkeypatch):
    """A trace of three events of which the first, with the secret, is in both places."""
    for number, text in enumerate((f"my name is {SECRET}", "hello", "and goodbye")):
        log.append(
            [from_text(f"stream:{TRACE}", json.dumps({"event": "log", "id": f"{TRACE}:{number}", "text": text}), BY)]
        )

    def away(*keys):
        if Conversation.objects.filter(key=NAMED).exists():
            raise Unavailable("away")

    monkeypatch.setattr(late_names, "PAGE", 1)
    with monkeypatch.context() as patched:
        patched.setattr(late_names, "_lock", away)
        with pytest.raises(Unavailable):
            late_names.move(TRACE, NAMED, BY)
    index()


@pytest.mark.parametrize("key", [TRACE, NAMED])
def test_a_redaction_of_either_reaches_both(team, half_moved, key):
    done = redact(team["admin"], key, [1], "asked for")
    index()

    assert {redacted.conversation for redacted in done} == {TRACE, NAMED}
    assert everywhere(SECRET) == []
    assert verify_events().ok


def test_a_redaction_of_the_erased_destination_reaches_the_trace(team, half_moved):
    (erased,) = erase_id.erase_id(team["admin"], NAMED, "asked for")

    redact(team["admin"], erased.conversation, [1], "asked for")
    index()

    assert everywhere(SECRET) == []


def test_what_has_moved_as_a_whole_is_redacted_as_before(team, half_moved):
    assert late_names.move(TRACE, NAMED, BY)

    redact(team["admin"], NAMED, [1], "asked for")
    index()

    assert everywhere(SECRET) == []
    assert Event.objects.filter(conversation__key=NAMED, erased_by=None).count() == 3  # and what says so
