"""Where a redaction takes two admins, a retention rule does, too: it redacts without asking anybody."""

import json

import pytest
from django.urls import reverse

from conversations.core.errors import Conflict, Invalid, NotAllowed
from conversations.models import AuditEntry, RedactionRequest, RetentionRule
from conversations.redaction import requests, retention_rules
from conversations.redaction.retention_rules import RetentionTerms
from conversations.redaction.scope import RedactionScope
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db(transaction=True)
TERMS = RetentionTerms(1, "tool_step", "", "flood")


@pytest.fixture(autouse=True)
def two_people(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"redaction_four_eyes": True})


def test_a_rule_over_the_api_waits_for_a_second_admin(team):
    body = {"days": 1, "kind": "tool_step", "conversation_id": "flood", "reason": "a day"}

    answer = client_of(team["admin"]).post(reverse("api-retention-rules"), body, "application/json")

    number = answer.json()["request"]
    assert (answer.status_code, RetentionRule.objects.count()) == (202, 0)
    with pytest.raises(NotAllowed, match="a second person"):
        requests.confirm(team["admin"], number)
    decision = reverse("api-redaction-decision", args=[number])
    assert client_of(person("bess", "admin")).post(decision, {"confirm": True}, "application/json").status_code == 200
    rule = retention_rules.rules().get()
    assert (rule.days, rule.kind, rule.conversation, rule.made_by) == (1, "tool_step", "flood", "user:bess")
    entry = AuditEntry.objects.get(verb="confirm_redaction", outcome="done")
    assert (entry.target, json.loads(entry.correlation)["request"]) == ("conversation:flood", number)


def test_a_rule_on_the_page_waits_for_a_second_admin(team):
    ada = client_of(team["admin"])

    answer = ada.post(reverse("retention"), {"days": "30", "reason": "a month"}, follow=True)

    assert "waits for a second admin" in answer.content.decode()
    assert (RetentionRule.objects.count(), RedactionRequest.objects.count()) == (0, 1)
    page = client_of(person("bess", "admin")).get(reverse("redaction")).content.decode()
    assert "a retention rule of 30 days for all events" in page
    assert "Would redact 0 events now" in page
    assert "Confirm and set rule" in page


def test_a_declined_rule_is_never_in_force(team):
    waiting = requests.submit_rule(team["admin"], TERMS, "a day")

    requests.decline(person("bess", "admin"), waiting.pk)

    assert not RetentionRule.objects.exists()
    assert not requests.pending().exists()


def test_a_rule_that_is_there_or_says_nothing_is_refused_before_it_waits(team):
    waiting = requests.submit_rule(team["admin"], TERMS, "a day")
    requests.confirm(person("bess", "admin"), waiting.pk)

    with pytest.raises(Conflict, match="already a rule"):
        requests.submit_rule(team["admin"], TERMS._replace(days=2), "two days")
    with pytest.raises(Invalid):
        requests.submit_rule(team["admin"], RetentionTerms(0), "none")
    with pytest.raises(NotAllowed):
        requests.submit_rule(team["auditor"], RetentionTerms(3), "mine")


def test_a_confirmation_that_was_cut_off_sets_its_rule_once(team):
    bess = person("bess", "admin")
    waiting = requests.submit_rule(team["admin"], TERMS, "a day")
    retention_rules.set_rule_once(bess, TERMS, "a day")

    requests.confirm(bess, waiting.pk)

    assert retention_rules.rules().count() == 1
    assert not requests.pending().exists()


def test_without_the_setting_a_rule_is_in_force_at_once(team, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"redaction_four_eyes": False})

    assert isinstance(requests.submit_rule(team["admin"], TERMS, "a day"), RetentionRule)


@pytest.mark.parametrize(
    ("terms", "name"),
    [
        (RetentionTerms(1), "a retention rule of 1 day for all events"),
        (RetentionTerms(9_000, "message"), "a retention rule of 9,000 days for message events"),
        (
            RetentionTerms(2, "log", "hall", "c"),
            "a retention rule of 2 days for log events, conversations of team hall, c",
        ),
    ],
)
def test_a_request_says_what_the_rule_is(terms, name):
    assert RedactionScope.from_json(RedactionScope(**terms._asdict()).as_json()).name == name
