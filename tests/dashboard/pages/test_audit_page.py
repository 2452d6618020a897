"""The audit page: what is drawn for whom, what is verified, what leaves as a file."""

import html
import json
import re

import pytest
from django.core import signing
from django.test import Client

from conversations.access.audit import chain
from conversations.access.audit.anchor_file import AuditAnchorFile
from conversations.access.audit.listing import verify_step
from conversations.conversation import annotate, fork
from conversations.core import principals
from conversations.core.errors import Conflict
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.models import AuditEntry, AuditHead
from conversations.models.approval import DECISION_WORDS
from conversations.redaction import audit_entries
from conversations.runs.approvals import decide
from tests.dashboard.test_openapi import fits
from tests.support import teamwork
from tests.support.cast import audit_summary, client_of, last_entry
from tests.support.doors import Answer
from tests.support.hostile import payloads
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db
MARIA = principals.user_principal("maria")


@pytest.fixture
def browser(team) -> Client:
    """An auditor's browser."""
    return client_of(team["auditor"])


def fill(count: int) -> None:
    """Enter some."""
    with write_transaction():
        for number in range(count):
            chain.add_entry(MARIA, "look", f"thing:{number}", reason=f"reason {number}", acting_as="agent:Desk")


def seqs(answer) -> list[int]:
    """The entries that are listed."""
    return [int(seq) for seq in re.findall(r'data-key="(\d+)"', answer.content.decode())]


def test_a_row_tells_who_did_what_to_what_and_why(browser):
    fill(1)

    page = browser.get("/audit/")

    assert page.status_code == 200
    folded = page.content.decode().partition("<summary>How changes are detected</summary>")[2]
    assert "Hash of the latest entry" in folded.partition("</details>")[0]  # the panel stays low on a phone
    for words in ("maria", "as De Desk", "look", "thing:0", "reason 0", "done"):
        assert words in text_of(page), words
    assert last_entry().hash in page.content.decode()


def test_words_of_facts_can_be_erased_where_no_reason_is(team):
    with write_transaction():
        words = chain.add_entry(MARIA, "look", "thing:1", correlation={"query": "about Rosa", "conversation": "c"})
        ids = chain.add_entry(MARIA, "look", "thing:2", correlation={"conversation": "c"})

    page = client_of(team["admin"]).get("/audit/").content.decode()

    assert f'?entries={words.seq}"' in page
    assert f'?entries={ids.seq}"' not in page
    audit_entries.erase(team["admin"], [words.seq], "Article 17")
    assert f'?entries={words.seq}"' not in client_of(team["admin"]).get("/audit/").content.decode()


@pytest.mark.slow
def test_only_who_may_see_it_is_led_there(team):
    for role, person in team.items():
        client = client_of(person)
        may = role in ("auditor", "admin")
        if role:
            assert ('href="/audit/"' in client.get("/").content.decode()) is may, role
        for address in ("/audit/", "/audit/1/", "/audit/verification/", "/audit/export/csv", "/api/v1/audit"):
            assert (client.get(address).status_code == 403) is not may, (role, address)


def test_filters_combine_and_are_drawn_with_a_way_to_leave_them_out(browser):
    fill(3)
    AuditEntry.objects.filter(seq=2).update(outcome="refused", verb="change")

    page = browser.get("/audit/?who=maria&outcome=refused&verb=change&verb=none")

    assert seqs(page) == [2]
    assert 'href="/audit/?verb=change&amp;verb=none&amp;outcome=refused"' in page.content.decode()
    assert 'href="/audit/?who=user%3Amaria&amp;verb=change&amp;verb=none"' in page.content.decode()


def test_an_empty_list_says_whether_anything_was_filtered(browser):
    assert "No entries yet" in text_of(browser.get("/audit/"))
    assert "No entry matches" in text_of(browser.get("/audit/?who=nobody"))


def test_a_wrong_filter_is_told_and_nothing_is_listed(browser):
    fill(2)

    page = browser.get("/audit/?from=yesterday&before=x")

    assert (page.status_code, seqs(page)) == (400, [])
    assert "Invalid filter" in text_of(page)
    assert 'value="yesterday"' in page.content.decode()
    assert browser.get("/api/v1/audit?from=yesterday").json()["error"]["field"] == "from"
    assert browser.get("/audit/export/csv?outcome=odd").status_code == 400


def test_an_entry_is_shown_opened_among_those_around_it(browser):
    fill(120)

    page = browser.get("/audit/60/")

    assert seqs(page) == list(range(85, 35, -1))
    (opened,) = re.findall(r'id="entry-(\d+)" aria-current="true"', page.content.decode())
    assert opened == "60"
    assert page.content.decode().count('class="more" open') == 1
    assert [browser.get(f"/audit/{n}/").status_code for n in ("0", "121", "x", "9" * 30)] == [404] * 4


def test_pages_lead_on_to_older_entries(browser):
    fill(60)

    first = browser.get("/audit/")
    (older,) = re.findall(r'href="(/audit/\?before=\d+)" rel="next"', first.content.decode())

    assert seqs(first) + seqs(browser.get(older)) == list(range(60, 0, -1))


def test_targets_lead_to_what_still_exists_and_to_where_one_may_go(team, browser):
    with write_transaction():
        chain.add_entry(MARIA, "look", "conversation:gone")
        chain.add_entry(MARIA, "look", "conversation:here", correlation={"seq": 1})
        chain.add_entry(MARIA, "look", "user:vera")
        chain.add_entry(MARIA, "export_calls", "tool-calls.csv", correlation={"query": "status=failed"})
    log.append([log.from_internal("here", {"event": "log", "text": "x"}, MARIA)])

    page, admins = browser.get("/audit/").content.decode(), client_of(team["admin"]).get("/audit/").content.decode()

    assert 'href="/conversations/here/?event=1#e1"' in page
    assert 'href="/conversations/gone/' not in page
    assert 'href="/calls/?status=failed"' in page
    assert 'href="/people/#vera"' in admins
    assert 'href="/people/#vera"' not in page


def test_targets_stand_in_words_with_the_conversations_title_and_what_a_decision_said(team, browser):
    teamwork.team()
    approval = teamwork.ask(team["operator"])
    decide.decide(team["approver"], approval.id, "reject", message="No receipt yet.", reason="ask first")

    page = text_of(browser.get("/audit/", {"verb": "decide"}))
    html_of_page = browser.get("/audit/", {"verb": "decide"}).content.decode()

    assert "Approval of file_incident in “Water”" in page
    assert "ask first · “No receipt yet.”" in page
    assert "Message to the agent No receipt yet." in page
    assert "Conversation Conversation “Water” (flood)" in page
    assert f'title="approval:{approval.id}"' in html_of_page
    assert re.search(r'<time class="exact" datetime="[^"]+" data-clock', html_of_page)


def test_a_row_tells_what_was_decided_and_which_event_or_format_it_was_about(team, browser):
    teamwork.team()
    first, second = (teamwork.ask(team["operator"], key=key) for key in ("one", "two"))
    decide.decide(team["approver"], first.id, "approve")
    decide.decide(team["approver"], second.id, "reject")
    annotate.annotate(team["operator"], "one", 1, client_id="n", text="why")
    fork.fork(team["operator"], "one", 2)
    browser.get("/api/v1/conversations/one/export", {"format": "jsonl"})

    page = text_of(browser.get("/audit/"))

    for words in (
        "decide approved Approval",
        "decide rejected Approval",
        "annotate event 1 Conversation",
        "fork event 2 Conversation",
        "export jsonl Conversation",
    ):
        assert words in page
    assert "entries in all since" in page
    assert set(DECISION_WORDS) == set(decide.DECISIONS)


def test_a_refused_decision_shows_no_message_of_the_one_that_was_taken(team, browser):
    teamwork.team()
    approval = teamwork.ask(team["operator"])
    decide.decide(team["approver"], approval.id, "reject", message="No receipt yet.")
    with pytest.raises(Conflict):
        decide.decide(team["admin"], approval.id, "approve")

    page = text_of(browser.get("/audit/", {"verb": "decide"}))

    assert page.count("Message to the agent") == 1


def test_the_chain_is_verified_in_pieces(browser, monkeypatch):
    monkeypatch.setattr(verify_step, "PIECE", 4)
    fill(10)

    results, address = [], "/audit/verification/?part=state"
    while address:
        page = browser.get(address)
        results.append(text_of(page))
        more = re.search(r'data-next href="([^"]+)"', page.content.decode())
        address = f"{html.unescape(more[1])}&part=state" if more else ""

    assert [words.partition(";")[0] for words in results[:2]] == [
        "Verified 4 of 10 entries", "Verified 8 of 10 entries",
    ]  # fmt: skip
    assert results[2].startswith("The chain is intact up to entry 10.")


def test_how_far_a_walk_came_cannot_be_made_up(browser, monkeypatch):
    monkeypatch.setattr(verify_step, "PIECE", 4)
    fill(10)

    assert browser.get("/audit/verification/?cursor=WzgsIng").status_code == 400
    assert browser.get(f"/audit/verification/?cursor={signing.dumps([8, 'x', 10, 'x'])}").status_code == 400


@pytest.mark.parametrize("piece", [4, 1000])
def test_a_changed_entry_is_named_with_what_was_expected(browser, monkeypatch, piece):
    monkeypatch.setattr(verify_step, "PIECE", piece)
    fill(10)
    stored = AuditEntry.objects.get(seq=7)
    AuditEntry.objects.filter(seq=7).update(verb="another")
    computed = chain.link(stored.prev_hash, AuditEntry.objects.get(seq=7))

    words = whole_walk(browser)

    assert "Entry 7: changed after it was written" in words
    assert f"Expected {computed} , found {stored.hash}" in words
    assert "Entries 1 to 6 are intact" in words


def test_changed_words_of_an_entry_are_named_with_the_digest_that_was_expected(browser):
    fill(10)
    stored = AuditEntry.objects.get(seq=7)
    AuditEntry.objects.filter(seq=7).update(reason="another")
    computed = chain.personal_digest(bytes(stored.salt), AuditEntry.objects.get(seq=7))

    words = whole_walk(browser)

    assert "Entry 7: changed after it was written: its person, target, reason or context" in words
    assert f"Expected {stored.digest} , found {computed}" in words
    assert "Entries 1 to 6 are intact" in words


def test_a_removed_entry_is_named_and_its_place_shown(browser):
    fill(10)
    AuditEntry.objects.filter(seq=7).delete()

    assert "Entry 7: missing." in whole_walk(browser)
    assert "Entry 7 is missing: it was removed" in text_of(browser.get("/audit/7/"))


def test_an_entry_beyond_the_head_is_named_and_shown(browser):
    fill(3)
    AuditHead.objects.update(seq=2, hash=AuditEntry.objects.get(seq=2).hash)

    assert "Entry 3: after the audit head, which is 2." in whole_walk(browser)
    assert 'href="/audit/3/"' in browser.get("/audit/verification/").content.decode()
    assert seqs(browser.get("/audit/3/")) == [3, 2, 1]


def test_an_empty_log_has_nothing_to_verify(browser):
    assert "There are no entries to verify yet." in whole_walk(browser)


def test_a_cut_end_is_found_by_what_the_data_directory_remembers(browser, settings, tmp_path):
    settings.DATA_DIR = tmp_path
    fill(5)
    AuditAnchorFile(tmp_path).write()
    AuditEntry.objects.filter(seq__gt=3).delete()
    AuditHead.objects.update(seq=3, hash=AuditEntry.objects.get(seq=3).hash)

    assert "The 3 entries are intact, but audit entry 5: missing" in whole_walk(browser)


def whole_walk(browser: Client) -> str:
    """Verify to the end, as without scripts; return what is said there."""
    address = "/audit/verification/"
    while True:
        page = browser.get(address)
        more = re.search(r'data-next href="([^"]+)"', page.content.decode())
        if not more:
            return text_of(page)
        assert f'content="1; url={more[1]}"' in page.content.decode()
        address = html.unescape(more[1])


def test_a_row_that_was_tampered_with_is_drawn_all_the_same(browser):
    fill(3)
    AuditEntry.objects.filter(seq=1).update(at=-5, correlation="{")
    AuditEntry.objects.filter(seq=2).update(at=2**62, correlation="[" * 3000, outcome="<b>", prev_hash="<i>")

    page = browser.get("/audit/")

    assert (page.status_code, seqs(page)) == (200, [3, 2, 1])
    assert "<i>" not in page.content.decode()
    assert len(browser.get("/api/v1/audit").json()["items"]) == 3


def test_an_export_is_entered_before_it_is_sent(browser):
    answer = browser.head("/audit/export/csv?outcome=refused")

    assert (answer.status_code, answer["Content-Type"]) == (200, "text/csv; charset=utf-8")
    assert audit_summary(last_entry()) == ("user:audrey", "export_audit", "audit.csv", "done")
    assert json.loads(last_entry().correlation)["query"] == "outcome=refused"
    assert browser.get("/audit/export/pdf").status_code == 404


def test_looking_is_not_entered(browser):
    fill(1)
    for address in ("/audit/", "/audit/1/", "/audit/verification/", "/api/v1/audit"):
        assert browser.get(address).status_code == 200

    assert AuditEntry.objects.count() == 1


def test_the_api_answers_what_the_page_lists_in_the_shape_it_tells(browser):
    fill(5)

    answer = browser.get("/api/v1/audit?who=maria&limit=2")
    body = answer.json()

    fits("/api/v1/audit", "get", Answer(200, {"content-type": answer["Content-Type"]}, body), 200)
    assert [item["seq"] for item in body["items"]] == [5, 4]
    assert [item["seq"] for item in browser.get(f"/api/v1/audit?before={body['cursor']}").json()["items"]] == [3, 2, 1]


@pytest.mark.slow
def test_hostile_texts_are_drawn_as_text_and_filtered_by(browser):
    for hostile in payloads(15):
        with write_transaction():
            chain.add_entry(
                MARIA, hostile[:60], hostile[:300], reason=hostile[:2000], acting_as=hostile[:200],
                correlation={hostile[:100]: hostile[:1000], "conversation": hostile[:300]},
            )  # fmt: skip
        page = browser.get("/audit/", {"verb": hostile[:60], "target": hostile[:300], "q": hostile[:50]})

        assert page.status_code in (200, 400), hostile
        assert "<script>" not in page.content.decode()
    assert browser.get("/audit/").status_code == 200
