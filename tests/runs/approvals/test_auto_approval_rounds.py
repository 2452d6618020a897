"""Auto-approval rules, when more requests wait than one round looks at."""

import pytest

from conversations.runs.approvals import auto_approval
from tests.runs.approvals import test_auto_approval
from tests.support import teamwork
from tests.support.cast import cast

pytestmark = pytest.mark.django_db(transaction=True)


def test_requests_that_no_rule_matches_hold_up_no_newer_one(monkeypatch):
    monkeypatch.setattr(auto_approval, "MAX_REQUESTS", 2)
    monkeypatch.setattr(auto_approval, "_looked_upto", "")
    teamwork.team()
    operator = cast()["operator"]
    for key in ("a", "b", "c"):
        teamwork.ask(operator, key=key, args={"street": "Elm" if key == "c" else "Oak"})
    test_auto_approval.rule(arguments={"street": "Elm"})

    approved = [auto_approval.approve_waiting() for _ in range(3)]

    assert approved == [[], ["ask-c"], []]
    teamwork.ask(operator, key="aa", args={"street": "Elm"})
    assert [auto_approval.approve_waiting() for _ in range(2)].count(["ask-aa"]) == 1
