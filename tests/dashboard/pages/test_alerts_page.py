"""The admin's page of alerts: rules made, changed, tested, shelved and removed; alarms and dead letters handled."""

import html
import re

import pytest

from conversations.alerts import deliveries, evaluation
from conversations.core.database_clock import database_now
from conversations.core.micros import to_datetime
from conversations.models import Alarm, AlertDelivery, AlertRule, AuditEntry, Shelf
from tests.support import alerting
from tests.support.alerting import SECRET, later
from tests.support.cast import client_of
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db
URL = "https://example.com/hooks/topsecret?key=abc"


def add(client, **fields):
    entered = {"name": "Failures", "kind": "run_failed", "form": "post", "url": URL, "is_enabled": "yes"}
    return client.post("/alerts/rules/", entered | fields)


def do(client, rule, verb, **fields):
    return client.post(f"/alerts/rules/{rule.id}/{verb}/", fields)


@pytest.fixture
def rule():
    return alerting.rule(name="Failures", url=URL)


def dead_letter(rule):
    delivery = deliveries.enqueue(rule, "test", 0)
    AlertDelivery.objects.update(status="failed", done_at=1, attempts=15, error="HTTP 500")
    return delivery


def test_the_secret_is_shown_once_and_the_url_never(admin):
    answer = add(admin, reason="on call")
    rule = AlertRule.objects.get()

    assert rule.secret in answer.content.decode()
    for page in (admin.get("/alerts/"), admin.get(f"/alerts/?edit={rule.id}"), admin.get("/api/v1/alert-rules")):
        content = page.content.decode()
        assert rule.secret not in content
        assert "topsecret" not in content
    assert "https://example.com/•••" in html.unescape(admin.get("/alerts/").content.decode())
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.target, entry.reason) == ("make_alert", f"alert:{rule.id}", "on call")
    assert "topsecret" not in str(entry.__dict__)
    assert rule.secret not in str(entry.__dict__)


@pytest.mark.parametrize(
    ("fields", "status", "sentence"),
    [
        ({"name": ""}, 422, "Must be 1 to 100 characters; got 0"),
        ({"kind": "weather"}, 422, "Must be one of approval_waiting"),
        ({"kind": "approval_waiting", "after": "soon"}, 422, "Must be a duration such as 90 s"),
        ({"kind": "approval_waiting"}, 422, "Must be given, such as 15 min."),
        ({"url": ""}, 422, "Must be a URL such as https://example.com/hook"),
        ({"url": "http://example.com/"}, 422, "use https"),
        ({"url": "https://127.0.0.1/"}, 422, "not a public address"),
        ({"form": "email", "recipients": "nobody"}, 422, "Must be e-mail addresses"),
        ({"name": "Taken"}, 409, "There is already an alert rule Taken"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field_and_what_was_entered_stays(admin, fields, status, sentence):
    alerting.rule(name="Taken")

    answer = add(admin, agent="Clerk", **fields)

    assert answer.status_code == status
    assert sentence in text_of(answer)
    assert 'value="Clerk"' in answer.content.decode()
    assert AlertRule.objects.count() == 1


def test_all_that_is_wrong_is_said_at_once_each_beside_its_field(admin):
    wrong = {"name": "", "kind": "approval_waiting", "after": "soon", "url": "http://example.com/secret"}
    wrong |= {"grouping": "planet", "agent": "A" * 201, "sends_end": "yes", "reason": "on call"}

    page = add(admin, **wrong).content.decode()

    hints = dict(re.findall(r'<p class="hint" id="field-(\w+)-hint" data-tone="failed">([^<]*)', page))
    assert {field: html.unescape(hint)[:22] for field, hint in hints.items()} == {
        "name": "Must be 1 to 100 chara",
        "after": "Must be a duration suc",
        "agent": "Must be 0 to 200 chara",
        "grouping": "Must be one of convers",
        "url": "Http is only for desti",
    }
    for entered in ("soon", "http://example.com/secret", "A" * 201, "on call"):
        assert f'value="{entered}"' in page
    assert re.search(r'value="approval_waiting" required checked', page)
    assert re.search(r'name="sends_end" value="yes" checked', page)
    assert re.findall(r'<input[^>]* id="field-(\w+)"[^>]* autofocus>', page) == ["name"]
    assert not AlertRule.objects.exists()


def test_a_rule_is_changed_and_keeps_its_url(admin, rule):
    page = admin.get(f"/alerts/?edit={rule.id}").content.decode()
    hidden = dict(re.findall(r'type="hidden" name="(number|version)" value="([^"]*)"', page))

    answer = add(admin, name="Renamed", url="", **hidden)

    assert "Rule saved" in text_of(admin.get(answer["Location"]))
    rule.refresh_from_db()
    assert (rule.name, rule.url, rule.secret, rule.version) == ("Renamed", URL, SECRET, 2)
    assert add(admin, name="Again", url="", **hidden).status_code == 409


def test_a_rule_is_tested_shelved_unshelved_and_removed(admin, rule):
    for verb, done, fields in (
        ("tests", "Test queued", {}), ("shelves", "Shelved", {"for": "8 h", "reason": "known"}),
        ("unshelvings", "No longer shelved", {}), ("removals", "Rule removed", {}),
    ):  # fmt: skip
        answer = do(admin, rule, verb, **fields)
        assert done in text_of(admin.get(answer["Location"])), verb

    rule.refresh_from_db()
    assert (rule.url, rule.secret) == ("", "")
    assert AlertDelivery.objects.get().status == "discarded"
    verbs = list(AuditEntry.objects.order_by("seq").values_list("verb", flat=True))
    assert verbs == ["test_alert", "shelve_alert", "unshelve_alert", "remove_alert"]
    assert do(admin, rule, "tests").status_code == 404


def test_what_a_rule_that_is_turned_off_had_to_send_is_listed_as_discarded(admin, rule):
    alerting.fail()
    evaluation.evaluate(database_now(), is_slow=False)
    page = admin.get(f"/alerts/?edit={rule.id}").content.decode()
    hidden = dict(re.findall(r'type="hidden" name="(number|version)" value="([^"]*)"', page))
    assert "discards what waits to be sent" in page

    add(admin, name=rule.name, url="", is_enabled="", **hidden)

    rows = re.findall(r"<tr>.*?</tr>", admin.get("/alerts/").content.decode(), re.DOTALL)
    assert any('<span class="tag">discarded</span>' in row and "the rule was turned off" in row for row in rows)


def test_alarms_are_listed_with_their_case_and_shelved_or_closed(admin, rule):
    alerting.fail("<b>hostile</b>", error="<script>alert(1)</script>")
    evaluation.evaluate(database_now(), is_slow=True)
    alarm = Alarm.objects.get()

    page = admin.get("/alerts/")
    assert "<script>alert(1)" not in page.content.decode()
    assert "Run failed: failed (error)" in text_of(page)
    do(admin, rule, "shelves", alarm=str(alarm.id), **{"for": "1 h"})
    assert Shelf.objects.get().group == alarm.group
    assert "shelved until" in text_of(admin.get("/alerts/"))

    admin.post(f"/alerts/alarms/{alarm.id}/ends/")
    alarm.refresh_from_db()
    assert alarm.closed_by == "user:ada"
    assert "Run failed: failed (error)" in text_of(admin.get("/alerts/?state=closed"))
    assert admin.post(f"/alerts/alarms/{alarm.id}/ends/").status_code == 409


def test_a_dead_letter_is_sent_again_or_discarded(admin, rule):
    delivery = dead_letter(rule)
    assert "HTTP 500" in text_of(admin.get("/alerts/"))

    admin.post(f"/alerts/deliveries/{delivery.id}/retries/")
    delivery.refresh_from_db()
    assert (delivery.status, delivery.tries_left) == ("waiting", deliveries.MAX_TRIES)
    assert admin.post(f"/alerts/deliveries/{delivery.id}/discards/").status_code == 409

    AlertDelivery.objects.update(status="failed")
    admin.post(f"/alerts/deliveries/{delivery.id}/discards/")
    assert AlertDelivery.objects.get().status == "discarded"


def test_the_page_shows_our_own_alarm_rate(admin, rule):
    for number in range(7):
        alerting.fail(f"c{number}")
    evaluation.evaluate(database_now(), is_slow=False)
    Alarm.objects.filter(conversation="c0").update(opened_at=later(-120))

    figures = admin.get("/api/v1/alerts").json()

    assert (figures["last_hour"], figures["last_day"], figures["open"], figures["waiting"]) == (6, 7, 7, 7)
    assert "More alarms in the last hour" not in text_of(admin.get("/alerts/"))
    Alarm.objects.update(opened_at=database_now())
    assert "More alarms in the last hour than a person can answer" in text_of(admin.get("/alerts/"))


# The API


def test_the_api_makes_changes_and_removes_a_rule(admin):
    body = {"name": "Slack", "kind": "approval_waiting", "after_s": 900, "form": "slack", "url": URL}
    made = admin.post("/api/v1/alert-rules", body, content_type="application/json")
    assert made.status_code == 201
    rule = made.json()
    assert (rule["after_s"], rule["url"], rule["secret"][:6]) == (900, "https://example.com/•••", "whsec_")

    path = f"/api/v1/alert-rules/{rule['id']}"
    change = body | {"url": "", "after_s": 60, "version": rule["version"]}
    changed = admin.put(path, change, content_type="application/json").json()
    assert (changed["after_s"], changed["version"]) == (60, 2)
    assert admin.put(path, change, content_type="application/json").status_code == 409

    assert admin.post(f"{path}/test").status_code == 202
    assert admin.post(f"{path}/secret").json()["secret"] != rule["secret"]
    shelf = admin.post(f"{path}/shelf", {"for_s": 3600}, content_type="application/json").json()
    assert shelf["until"]
    assert admin.post(f"{path}/unshelving", {}, content_type="application/json").json() == {"until": None}
    assert admin.post(f"{path}/removal", {}, content_type="application/json").json() == {"id": rule["id"]}
    assert admin.get("/api/v1/alert-rules").json()["items"] == []


def test_the_api_lists_alarms_by_cursor_and_dead_letters(admin, rule):
    for number in range(3):
        alerting.fail(f"c{number}")
    evaluation.evaluate(database_now(), is_slow=False)
    first = admin.get("/api/v1/alarms?limit=2").json()
    rest = admin.get(f"/api/v1/alarms?limit=2&before={first['cursor']}").json()

    listed = [alarm["conversation_id"] for alarm in first["items"] + rest["items"]]
    assert (listed, rest["cursor"]) == (["c2", "c1", "c0"], None)
    delivery = AlertDelivery.objects.first()
    AlertDelivery.objects.filter(id=delivery.id).update(status="failed")
    assert [row["id"] for row in admin.get("/api/v1/alert-deliveries").json()["items"]] == [delivery.id]
    assert admin.post(f"/api/v1/alert-deliveries/{delivery.id}/retry").json() == {"id": delivery.id}
    alarm = first["items"][0]["id"]
    assert admin.post(f"/api/v1/alarms/{alarm}/end", {}, content_type="application/json").json() == {"id": alarm}


def test_a_shelf_says_until_when_in_the_readers_time_zone(team, rule):
    client = client_of(team["admin"])
    do(client, rule, "shelves", **{"for": "1800"})
    until = to_datetime(Shelf.objects.get().until)

    page = client.get("/alerts/").content.decode()

    shown = f'<time datetime="{until.isoformat()}" data-clock="minute"'
    assert f"shelved until {shown}" in page


def test_the_name_of_a_button_contains_its_label(team, rule):
    page = client_of(team["admin"]).get("/alerts/").content.decode()

    labels = re.findall(r'<(?:button|a)[^>]* aria-label="([^"]*)"[^>]*>([^<]+)</', page)
    assert "Send test" in dict(map(reversed, labels))
    assert [label for name, label in labels if label not in name] == []
