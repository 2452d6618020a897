"""The pages of the quarantine, as a browser sees them: the list, one message, and what is done with it."""

import html
import json
import re

import pytest

from conversations.core.principals import SYSTEM
from conversations.models import Event, Quarantine
from conversations.rendering import hex_dump
from conversations.transport import quarantine
from tests.support import quarantined
from tests.support.drawn_html import Seen
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db

SAID = {"type": "message", "sender": "agent:Triage", "recipient": "agent:Dialogue", "content": "Somebody is here."}


def test_the_list_pages_and_searches(admin):
    for number in range(120):
        quarantined.quarantine(SAID, source="chat:odd" if number % 2 else "chat:even", entry=f"{number}-0")
    links = r'href="/ops/quarantine/(\d+)/"'

    seen, path = [], "/ops/quarantine/"
    while path:
        text = admin.get(path).content.decode()
        seen += re.findall(links, text)
        link = re.search(r'href="([^"]+)" rel="next"', text)
        path = html.unescape(link[1]) if link else ""

    assert len(seen) == len(set(seen)) == 120
    assert "60 waiting, matching" in text_of(admin.get("/ops/quarantine/?q=chat:odd"))
    assert "Nothing matches" in text_of(admin.get("/ops/quarantine/?q=nowhere"))
    assert "Nothing resolved yet" in text_of(admin.get("/ops/quarantine/?settled=yes"))
    assert admin.get("/ops/quarantine/?before=" + "9" * 30).status_code == 200


def test_one_is_shown_whole(admin):
    message = quarantined.quarantine(SAID, reason="must be the conversation's id", conversation="desk")

    page_text = text_of(admin.get(f"/ops/quarantine/{message.pk}/"))

    for fact in ("must be the conversation's id", "chat:desk", message.entry, message.digest, json.dumps(SAID), "desk"):
        assert fact in page_text


@pytest.mark.parametrize("number", [4, 0, "9" * 40, "x", "-1", "١"])
def test_an_unknown_one_is_not_found(admin, number):
    assert admin.get(f"/ops/quarantine/{number}/").status_code == 404
    assert admin.post(f"/ops/quarantine/{number}/redrives/").status_code == 404
    assert admin.post(f"/ops/quarantine/{number}/discards/", {"reason": "x"}).status_code == 404


def test_a_redriven_one_leads_to_its_event(admin):
    message = quarantined.quarantine(SAID)

    response = admin.post(f"/ops/quarantine/{message.pk}/redrives/", {"conversation": "desk"}, follow=True)

    assert "Retried by user:ada" in text_of(response)
    assert 'href="/conversations/desk/?event=1#e1"' in response.content.decode()
    assert "Retry" not in text_of(response)
    assert "Somebody is here." in text_of(admin.get("/conversations/desk/"))
    assert "unverified sender" in text_of(admin.get("/conversations/desk/"))


def test_one_that_is_still_bad_says_why_and_keeps_what_was_typed(admin):
    message = quarantined.quarantine(SAID)

    response = admin.post(f"/ops/quarantine/{message.pk}/redrives/", {"conversation": "x" * 300})

    assert response.status_code == 422
    assert "Not retried: Conversation must be at most 200 characters" in text_of(response)
    assert "x" * 300 in response.content.decode()
    assert Event.objects.count() == 0


def test_a_truncated_one_cannot_be_read_again(admin):
    message = quarantined.quarantine(b"x" * 70_000)

    page_text = text_of(admin.get(f"/ops/quarantine/{message.pk}/"))

    assert "first 64 KiB of 68.4 KiB" in page_text
    assert "The sender has to send it again" in page_text
    assert admin.post(f"/ops/quarantine/{message.pk}/redrives/").status_code == 422


def test_a_loss_is_told_and_has_nothing_to_read_again(admin):
    message = quarantined.quarantine(
        b"", source="chat:Dialogue", entry=">1-0", reason="record.gap: 12 entries are lost"
    )

    response = admin.get(f"/ops/quarantine/{message.pk}/")

    assert "entries were lost before they could be read" in text_of(response)
    assert "Retry" not in text_of(response)
    assert admin.post(f"/ops/quarantine/{message.pk}/redrives/").status_code == 422


def test_a_discard_takes_a_reason(admin):
    message = quarantined.quarantine(SAID)

    refused = admin.post(f"/ops/quarantine/{message.pk}/discards/", {"reason": " "})
    done = admin.post(f"/ops/quarantine/{message.pk}/discards/", {"reason": "a broken test agent"}, follow=True)

    assert (refused.status_code, "A reason is required" in text_of(refused)) == (422, True)
    assert "Discarded by user:ada" in text_of(done)
    assert "a broken test agent" in text_of(done)
    assert "Next in quarantine" not in text_of(done)
    assert "discarded" in text_of(admin.get("/ops/quarantine/?settled=yes"))


def test_the_second_reads_who_was_first(team, admin):
    message = quarantined.quarantine(SAID)
    quarantine.discard(SYSTEM, message.pk, "noise")

    response = admin.post(f"/ops/quarantine/{message.pk}/discards/", {"reason": "me too"})

    assert response.status_code == 409
    assert "System was faster: this message is already resolved" in text_of(response)


def test_those_alike_are_offered_and_go_together(admin):
    first, *_ = [quarantined.quarantine(SAID, entry=f"{n}-0") for n in range(3)]
    assert "Discard 3 similar" in text_of(admin.get(f"/ops/quarantine/{first.pk}/"))

    admin.post(f"/ops/quarantine/{first.pk}/discards/", {"reason": "noise", "alike": "yes"})

    assert not Quarantine.objects.open().exists()


def test_after_one_comes_the_next(admin):
    first, second = (quarantined.quarantine(SAID, entry=f"{n}-0") for n in range(2))

    done = admin.post(f"/ops/quarantine/{second.pk}/discards/", {"reason": "noise"}, follow=True)

    assert "1 similar message still waiting." in text_of(done)
    assert f'href="/ops/quarantine/{first.pk}/">Next in quarantine' in done.content.decode()


def test_bytes_that_are_no_text_are_a_dump(admin):
    message = quarantined.quarantine(b"\x00\xff<b>bold</b>" + bytes(2000))

    response = admin.get(f"/ops/quarantine/{message.pk}/")

    assert "00000000 00 ff 3c 62 3e 62 6f 6c 64 3c 2f 62 3e 00 00 00 ··<b>bold</b>···" in text_of(response)
    assert "Show all 2,013 bytes" in response.content.decode()
    assert "<b>bold" not in response.content.decode()


def test_a_character_cut_in_half_at_the_end_is_no_reason_for_a_dump():
    drawn = hex_dump.draw("aä".encode()[:-1], is_whole=False)

    assert (drawn.is_text, Seen(drawn.html).text) == (True, "a")
