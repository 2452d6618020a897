"""An export whose events are redacted while it is written."""

import pytest

from conversations.core.errors import Conflict
from conversations.core.principals import token_principal
from conversations.events import log
from conversations.import_export.export import export
from conversations.redaction import erase_id
from conversations.redaction.redact import redact
from tests.redaction.test_erase_id import ID, ida, say
from tests.support.unchecked import unchecked

__all__ = ["ida"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "take_out",
    [lambda by: redact(by, ID, [1], "asked for"), lambda by: erase_id.erase_id(by, ID, "asked for")],
    ids=["an event", "the id"],
)
def test_it_ends_with_an_error_as_nothing_in_it_would_name_the_tombstones(ida, take_out):
    say(ID, "quokka"), say(ID, "wombat")
    lines = export(ID)
    next(lines)
    take_out(ida)

    with pytest.raises(Conflict, match="redacted while they were being exported") as refused:
        list(lines)

    assert refused.value.code == "redacted"


def test_what_is_said_meanwhile_or_claims_to_redact_does_not_hinder_it(ida):
    say(ID, "quokka"), say(ID, "wombat")
    lines = export(ID)
    next(lines)
    log.append([unchecked(ID, {"event": "event.redacted", "events": []}, token_principal("robot"))])
    say(ID, "numbat")

    assert len(list(lines)) == 2
