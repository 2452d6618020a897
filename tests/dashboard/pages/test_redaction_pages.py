"""The admin's pages of redaction, legal holds and retention, and the same by the API."""

import itertools
import re
import time

import pytest

from conversations.events import log
from conversations.models import AuditEntry, Event, LegalHold, Redaction, RedactionRequest, RetentionRule
from conversations.redaction.scope import RedactionScope
from tests.events.test_log import message_event
from tests.support.cast import client_of, person
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db
KEY = "redaction-page"


@pytest.fixture
def spoken():
    log.append([message_event(KEY, "hello"), message_event(KEY, "the word is quokka"), message_event(KEY, "goodbye")])


def posted(client, address, **fields):
    return client.post(address, fields, content_type="application/json")


def test_a_link_at_an_event_leads_to_what_would_go(admin, spoken):
    picked = admin.get(f"/conversations/{KEY}/?event=2").content.decode()
    assert f"/redaction/?conversation={KEY}&amp;events=2" in picked

    page = text_of(admin.get(f"/redaction/?conversation={KEY}&events=2"))

    assert "1 event would be redacted" in page
    assert "1 message" in page
    assert Event.objects.filter(salt=None).count() == 0


@pytest.mark.parametrize("field", ["events", "entries"])
def test_a_number_that_no_row_can_have_is_an_error_in_its_field(admin, spoken, field):
    answer = posted(admin, "/api/v1/redactions/preview", conversation_id=KEY, **{field: [2**70]})

    assert answer.status_code == 400
    assert answer.json()["error"]["field"].startswith(field)


def test_it_is_redacted_with_a_reason_and_not_without(admin, spoken):
    fields = {"conversation": KEY, "events": "2", "do": "redact"}

    without = admin.post("/redaction/", fields)
    answer = admin.post("/redaction/", fields | {"reason": "asked for by the person"})
    page = text_of(admin.get(answer["Location"]))

    assert (without.status_code, answer.status_code) == (422, 302)
    assert "1 event redacted." in page
    assert "asked for by the person" in page
    assert "quokka" not in admin.get(f"/conversations/{KEY}/").content.decode()
    assert AuditEntry.objects.filter(verb="redact", outcome="done").count() == 1


@pytest.mark.slow
def test_the_id_of_a_conversation_is_erased(admin, spoken):
    person = text_of(admin.post("/redaction/", {"words": KEY, "do": "preview"}))
    shown = text_of(admin.get(f"/redaction/?conversation={KEY}&id=1"))
    answer = admin.post("/redaction/", {"conversation": KEY, "id": "1", "do": "redact", "reason": "Article 17"})
    page = text_of(admin.get(answer["Location"]))

    assert "1 conversation has it in the ID" in person
    assert "events the ID would be replaced" in shown
    assert "The id was erased." in page
    assert admin.get(f"/conversations/{KEY}/").status_code == 404
    assert KEY not in page


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"conversation": KEY, "events": "x"}, "must be event numbers"),
        ({"conversation": KEY, "events": "9"}, "event 9 is not in this conversation"),
        ({"conversation": "none", "events": "1"}, "There is no conversation"),
        ({"call": "none"}, "There is no such tool call"),
        ({"words": "ab"}, "must have at least 3 characters"),
    ],
)
def test_what_is_wrong_is_said(admin, spoken, fields, words):
    answer = admin.post("/redaction/", fields | {"do": "preview"})

    assert answer.status_code in (404, 422)
    assert words.lower() in text_of(answer).lower()


ALONE = {
    "events": {"conversation": KEY, "events": "2"},
    "id": {"conversation": KEY, "id": "1"},
    "call": {"call": "c1"},
    "entries": {"entries": "1"},
    "person": {"person": "zoe"},
    "words": {"words": "quokka"},
}
TWO = [(a, b) for a, b in itertools.combinations(ALONE, 2) if (a, b) != ("person", "words")]


@pytest.mark.parametrize(("first", "second"), TWO)
@pytest.mark.parametrize("do", ["preview", "redact"])
def test_two_kinds_at_once_are_refused_at_the_field(admin, spoken, first, second, do):
    answer = admin.post("/redaction/", ALONE[first] | ALONE[second] | {"do": do, "reason": "asked for"})

    at = second if second != "id" else "events"
    (hint,) = re.findall(f'id="field-{at}-hint" data-tone="failed">([^<]*)<', answer.content.decode())
    assert (answer.status_code, hint.startswith("Choose one: ")) == (422, True)
    assert not Redaction.objects.exists()


def test_a_conversation_beside_words_and_a_field_without_a_call_are_refused(admin, spoken):
    beside = posted(admin, "/api/v1/redactions", conversation_id=KEY, words=["quokka"], reason="asked for")
    without = posted(admin, "/api/v1/redactions/preview", words=["quokka"], field="args.phone")

    assert (beside.status_code, beside.json()["error"]["field"]) == (400, "words")
    assert beside.json()["error"]["message"] == "choose one: events of a conversation or words"
    assert (without.status_code, without.json()["error"]["field"]) == (400, "field")
    assert not Redaction.objects.exists()


@pytest.mark.slow
def test_a_second_admin_confirms_where_the_setting_says_so(team, admin, spoken, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"redaction_four_eyes": True})
    second = client_of(person("bess", "admin"))

    answer = admin.post("/redaction/", {"words": "quokka", "reason": "asked for", "do": "redact"})
    assert "A second admin has to confirm it." in text_of(admin.get(answer["Location"]))
    assert "Confirm and redact" not in text_of(admin.get("/redaction/"))
    (number,) = [item["id"] for item in second.get("/api/v1/redactions").json()["items"]]
    own = admin.post("/redaction/decisions/", {"request": str(number), "do": "confirm"})
    assert own.status_code == 403
    assert "everything about quokka" in text_of(second.get("/redaction/"))
    done = second.post("/redaction/decisions/", {"request": str(number), "do": "confirm"})

    assert "1 event redacted." in text_of(second.get(done["Location"]))
    assert Event.objects.get(conversation__key=KEY, seq=2).salt is None


@pytest.fixture
def second(settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"redaction_four_eyes": True})
    return client_of(person("bess", "admin"))


def asked_for(admin, **fields):
    answer = admin.post("/redaction/", fields | {"reason": "asked for", "do": "redact"})
    assert answer["Location"].endswith("done=requested")


def test_a_second_admin_sees_what_a_request_would_remove_before_confirming_it(admin, second, spoken):
    asked_for(admin, words="quokka")

    page = second.get("/redaction/").content.decode()

    (card,) = re.findall(r'<article.*?id="request-\d+".*?</article>', page, re.S)
    assert f'href="/conversations/{KEY}/?event=2#e2">2</a>' in card
    assert "1 message" in card
    (button,) = re.findall(r'<button[^>]*value="confirm"[^>]*>(.*?)</button>', card)
    assert re.sub("<[^>]*>", "", button) == "Confirm and redact 1 event: everything about quokka"


@pytest.mark.slow
def test_of_many_requests_only_one_with_a_preview_can_be_confirmed(admin, second, spoken):
    for _ in range(7):
        asked_for(admin, words="quokka")

    page = second.get("/redaction/").content.decode()
    last = RedactionRequest.objects.latest("pk").pk
    of_last = second.get(f"/redaction/?request={last}").content.decode()

    assert (page.count('value="confirm"'), page.count('value="decline"')) == (5, 7)
    assert of_last.count('value="confirm"') == 6


def test_a_request_of_nothing_any_more_still_draws_the_page(admin, second, spoken):
    asked_for(admin, conversation=KEY, events="2")
    RedactionRequest.objects.update(scope=RedactionScope("gone", [1]).as_json())

    assert "There is no conversation" in text_of(second.get("/redaction/"))


@pytest.mark.slow
def test_every_page_tells_the_second_admin_and_nobody_else_that_a_request_waits(team, admin, second, spoken):
    asked_for(admin, words="quokka")

    assert "redactions waiting: 1" in text_of(second.get("/"))
    assert "1 request waits for you" in text_of(second.get("/redaction/"))
    for client in (admin, client_of(team["auditor"])):
        assert "redactions waiting" not in text_of(client.get("/"))
    assert "waits for you" not in text_of(admin.get("/redaction/"))


@pytest.mark.parametrize(("is_needed", "label"), [(True, "Request redaction"), (False, "Redact for good")])
def test_the_button_says_whether_it_requests_or_redacts(admin, spoken, settings, is_needed, label):
    settings.CONFIG = settings.CONFIG.model_copy(update={"redaction_four_eyes": is_needed})

    page = admin.post("/redaction/", {"words": "quokka", "do": "preview"}).content.decode()

    (button,) = re.findall(r'<button[^>]*value="redact"[^>]*>(.*?)</button>', page)
    assert button == label


def test_holds_are_placed_and_released_on_the_page(admin, spoken):
    admin.post("/retention/holds/", {"held": KEY, "reason": "a lawsuit"})
    page = text_of(admin.get("/retention/"))
    blocked = text_of(admin.get(f"/redaction/?conversation={KEY}&events=2"))
    refused = admin.post("/redaction/", {"conversation": KEY, "events": "2", "reason": "r", "do": "redact"})
    hold = LegalHold.objects.get()
    admin.post("/retention/releases/", {"hold": str(hold.pk), "reason": "it is over"})

    assert "a lawsuit" in page
    assert "on legal hold" in blocked
    assert (refused.status_code, "on legal hold" in text_of(refused)) == (409, True)
    assert "0 holds" in text_of(admin.get("/retention/"))
    wrong = admin.post("/retention/holds/", {"held": "none", "reason": "r", "regulated": "1"})
    assert wrong.status_code == 404
    assert 'name="regulated" value="1" checked' in wrong.content.decode()  # for when the id is mended
    assert 'name="regulated" value="1">' in admin.get("/retention/").content.decode()


def test_a_rule_is_set_counted_and_removed_on_the_page(admin, spoken):
    Event.objects.update(at=time.time_ns() // 1000 - 40 * 86_400_000_000)
    wrong = admin.post("/retention/", {"days": "x", "reason": "r"})
    admin.post("/retention/", {"days": "30", "kind": "message", "reason": "30 days"})
    rule = RetentionRule.objects.get()

    page = text_of(admin.get(f"/retention/?dry_run={rule.pk}"))
    removed = admin.post("/retention/removals/", {"rule": str(rule.pk)})

    assert (wrong.status_code, "Must be a whole number" in text_of(wrong)) == (422, True)
    assert "3 events would be redacted (message: 3). Nothing was changed." in page
    assert Event.objects.filter(salt=None).count() == 0
    assert "Rule removed." in text_of(admin.get(removed["Location"]))


def test_the_api_previews_redacts_holds_and_retains(admin, spoken):
    what = {"conversation_id": KEY, "events": [2]}

    (place,) = posted(admin, "/api/v1/redactions/preview", **what).json()["items"]
    hold = posted(admin, "/api/v1/holds", conversation_id=KEY, reason="a lawsuit").json()
    refused = posted(admin, "/api/v1/redactions", **what, reason="asked for")
    released = posted(admin, f"/api/v1/holds/{hold['id']}/release", reason="it is over")
    done = posted(admin, "/api/v1/redactions", **what, reason="asked for")
    again = posted(admin, "/api/v1/redactions", **what, reason="asked for")
    rule = posted(admin, "/api/v1/retention-rules", days=30, reason="30 days").json()
    counted = admin.get(f"/api/v1/retention-rules/{rule['id']}/preview").json()

    assert (place["conversation_id"], place["events"], place["kinds"]) == (KEY, [2], {"message": 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "held")
    assert (released.status_code, admin.get("/api/v1/holds").json()["items"]) == (200, [])
    assert (done.status_code, done.json()["redacted"]) == (201, [{"conversation_id": KEY, "events": [2]}])
    assert (again.status_code, again.json()["error"]["code"]) == (409, "redacted")
    assert counted == {"kinds": {}, "events": 0, "held_back": 0}
    assert posted(admin, f"/api/v1/retention-rules/{rule['id']}/removal").status_code == 200
