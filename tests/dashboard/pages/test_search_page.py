"""The search page and its API: what they draw, what they refuse, what they say when there is nothing."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations import search
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Conversation, ToolCall
from dashboard.pages.search import _line
from tests.support import toolcalls
from tests.support.drawn_html import Seen
from tests.support.hostile import payloads
from tests.support.searching import catch_up, say

pytestmark = pytest.mark.django_db
OURS = re.compile(  # elements of a hit that no event has
    r"<h2>|<mark>|<time data-age=None>"
    r"|<a \{'class': 'clip', 'href': '/conversations/[~\w.-]+/\?event=\d+#e\d+', 'dir': 'auto'\}>"
)


def page(browser: Client, status: int = 200, **query: str) -> str:
    answer = browser.get("/search/", query)
    assert answer.status_code == status, answer.content
    return answer.content.decode()


def words(drawn: str) -> str:
    """Return the text of a page's main part, tags gone."""
    main = drawn[drawn.index("<main") : drawn.index("</main>")]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", main)).split())


def api(browser: Client, status: int = 200, **query: str) -> dict[str, Any]:
    answer = browser.get("/api/v1/search", query)
    assert answer.status_code == status, answer.content
    return dict(json.loads(answer.content))


def test_a_hit_says_who_where_and_what_and_opens_in_context(browser):
    say("a desk/1", "Nothing here", "A refund for the wrong person")
    catch_up()

    drawn = page(browser, q="wrong person")

    assert 'href="/conversations/~YSBkZXNrLzE/?event=2#e2"' in drawn
    assert "A refund for the <mark>wrong</mark> <mark>person</mark>" in drawn
    assert "Triage" in words(drawn)
    assert "Nothing here" in words(drawn)  # the conversation's title: its first words
    assert browser.get("/conversations/~YSBkZXNrLzE/?event=2").status_code == 200


def test_a_decision_is_shown_as_its_person_s_not_as_the_agent_s_that_asked(browser):
    log.append(toolcalls.ours("desk", "run", 1, decision="approve", message="Close the road"))
    catch_up()

    hit = words(page(browser, q="road", kind="approval.decided")).partition("Close the")[0]
    assert ("maria" in hit, "Permit Desk" in hit) == (True, False)
    assert senders(browser) == ["user:maria"]


def test_a_decision_by_a_token_is_shown_as_the_token_s(browser):
    decided = {"event": "approval.decided", "run_id": "run", "approval_id": "a1", "tool_call": "t1", "agent": "Desk"}
    decided |= {"decision": "approve", "by": "token:night-desk", "message": "Close the road"}
    log.append([log.from_internal("desk", decided, SYSTEM)])
    catch_up()

    hit = words(page(browser, q="road", kind="approval.decided")).partition("Close the")[0]
    assert ("night-desk" in hit, "system" in hit.lower()) == (True, False)
    assert senders(browser) == ["token:night-desk"]


def senders(browser: Client) -> list[str]:
    """Return who sent the decisions about a road, as the API finds them."""
    return [hit["sender"] for hit in api(browser, q="road", kind="approval.decided")["items"]]


def test_what_is_found_in_a_field_says_which(browser):
    say("desk", {"event": "tool_step", "name": "lookup", "args": {"street": "Elm Street"}, "status": "start"})
    catch_up()

    assert "arguments street: <mark>Elm</mark> Street" in re.sub(
        r'</?span[^>]*>', "", page(browser, q="elm")
    )  # fmt: skip


def test_a_step_of_a_call_names_its_tool_and_leads_to_the_call(browser):
    refund = {"event": "tool_step", "name": "file_refund", "tool_call_id": "c1"}
    say("desk", {**refund, "args": {"who": "Ada"}, "status": "start"}, {**refund, "output": "Bo", "status": "success"})
    log.append(toolcalls.ours("ours", "run-1", 1, decision="approve", args_raw='{"who": "Cleo"}'))
    catch_up()
    seen, ours = ToolCall.objects.get(name="file_refund"), ToolCall.objects.get(name="refund")

    begun, ended, unfinished = (page(browser, q=who) for who in ("ada", "bo", "cleo"))

    for drawn in (begun, ended):
        assert f'<code class="clip" dir="auto"><a href="/calls/{seen.id}/">file_refund</a></code>' in drawn
    assert f'<a href="/calls/{ours.id}/">refund</a>' in unfinished
    assert "approval request" in words(unfinished)
    assert "approval.requested" not in words(unfinished)


def test_calls_of_a_full_page_are_looked_up_in_a_few_queries(browser, django_assert_max_num_queries):
    for number in range(9):
        log.append(toolcalls.call(f"desk {number}", number, args={"who": "Ada"}))
    catch_up()
    narrow, many = {"q": "ada", "conversation": "desk 1"}, {"q": "ada"}
    with CaptureQueriesContext(connection) as spent:
        page(browser, **narrow)

    with django_assert_max_num_queries(len(spent)):
        assert page(browser, **many).count('<code class="clip"') == 9


def test_marks_are_ours_and_the_text_is_text(browser):
    say("desk", "<mark>refund</mark> <script>refund()</script> & <b>refund\u202e</b>")
    catch_up()

    drawn = page(browser, q="refund")

    assert "&lt;mark&gt;<mark>refund</mark>&lt;/mark&gt; &lt;script&gt;<mark>refund</mark>()&lt;/script&gt;" in drawn
    assert "\u202e" not in drawn
    assert "<script>refund" not in drawn


def test_a_long_text_is_cut_around_the_first_place(browser):
    say("desk", f"{'before ' * 200}the refund {'after ' * 200}")
    catch_up()

    excerpt = api(browser, q="refund")["items"][0]["excerpts"][0]

    assert excerpt["text"].startswith("… before")
    assert excerpt["text"].endswith("after …")
    assert len(excerpt["text"]) < 300
    assert [excerpt["text"][start:end] for start, end in excerpt["marks"]] == ["refund"]


@pytest.mark.parametrize(
    ("text", "q", "marked"),
    [
        ("שלום עולם, בְּרֵאשִׁית", "בראשית", ["בְּרֵאשִׁית"]),
        ("给错误的人退款了", "错误的人", ["错误的人"]),
        ("東京タワー", "京", ["京"]),
        ("wor world word", "wor*", ["wor", "world", "word"]),
        ("the wrong, wrong person", '"wrong person"', ["wrong person"]),
        ("re\u0301sume\u0301 and Resume", "resume", ["résumé", "Resume"]),
        ("file_refund(77)", "file_refund", ["file_refund"]),
    ],
)
def test_what_was_found_is_marked_as_it_is_written(browser, text, q, marked):
    say("desk", text)
    catch_up()

    excerpt = api(browser, q=q)["items"][0]["excerpts"][0]

    assert [excerpt["text"][start:end] for start, end in excerpt["marks"]] == marked


def test_an_empty_search_says_how_and_nothing_found_says_what_was_looked_for(browser):
    say("desk", "refund")
    catch_up()

    assert "How to search" in words(page(browser))
    assert "No results" not in page(browser)

    nothing = words(page(browser, q="refund zebra*", sender="Nobody", kind="output", since="2020-01-01"))

    assert "Searched for refund and zebra… in messages" in nothing
    assert "only in agent answers, from Nobody, since 2020-01-01." in nothing
    assert "Search all senders" in nothing
    assert "Use fewer words" in nothing


def test_what_is_left_out_of_a_query_is_said(browser):
    assert "it has no letters or digits: !!" in words(page(browser, q="refund !!"))


def test_what_is_not_searchable_yet_is_said(browser):
    say("desk", "refund", "refund")

    assert "2 events just recorded are not searchable yet" in words(page(browser, q="refund"))
    assert api(browser, q="refund")["lag"] == 2

    catch_up()

    assert "not searchable yet" not in page(browser, q="refund")


def test_what_becomes_searchable_after_the_hits_were_read_is_said(browser, monkeypatch):
    """Else nothing tells that the page lacks it."""

    def found_before_the_index_caught_up(*args: Any, **named: Any) -> search.SearchPage:
        hits = find(*args, **named)
        catch_up()
        return hits

    find = search.find
    monkeypatch.setattr(search, "find", found_before_the_index_caught_up)
    say("desk", "refund")
    assert "1 event just recorded is not searchable yet" in words(page(browser, q="refund"))
    say("desk", "refund")
    answer = api(browser, q="refund")

    assert (len(answer["items"]), answer["lag"]) == (1, 1)


def test_pages_go_back_by_their_cursor(browser):
    say("desk", *["refund"] * 30)
    catch_up()

    first = page(browser, q="refund")
    older = html.unescape(re.search(r'href="(/search/[^"]*before=[^"]*)"', first)[1])
    second = browser.get(older).content.decode()

    assert first.count('<article class="hit"') == 25
    assert second.count('<article class="hit"') == 5
    assert "Newest" in second


@pytest.mark.parametrize(
    "wrong", [{"since": "yesterday"}, {"before": "x"}, {"q": "a1 " + " ".join(map(str, range(30)))}]
)
def test_wrong_input_is_told_on_the_page_and_by_the_api(browser, wrong):
    query = {"q": "refund"} | wrong

    assert "Search failed" in page(browser, 400, **query)
    assert api(browser, 400, **query)["error"]["field"] == next(iter(wrong))


@pytest.mark.parametrize("limit", ["0", "201", "x"])
def test_a_limit_that_is_none_is_refused(browser, limit):
    assert api(browser, 400, q="x", limit=limit)["error"]["field"] == "limit"


def test_what_is_staged_is_no_hit_even_when_it_is_indexed(browser):
    say("desk", "refund")
    catch_up()
    Conversation.objects.update(is_staged=True)

    assert api(browser, q="refund")["items"] == []
    assert api(browser, conversation="desk")["items"] == []


@pytest.mark.slow
def test_hostile_texts_stay_text_in_hits_and_queries(browser):
    texts = [text for text in payloads(150) if len(text) < 3000]
    for number, text in enumerate(texts):
        say(f"hostile {number}", {"type": "message", "sender": text, "recipient": text, "content": f"refund {text}"})
    catch_up()

    query = search.read("refund")
    hits = search.find(query, limit=200).hits
    for hit, cut in zip(hits, search.of_hits(hits, query), strict=True):
        drawn = render_to_string("partials/hit.html", {"line": _line(hit._replace(title=texts[0]), cut)})
        faults = [fault for fault in Seen(drawn).faults if not OURS.fullmatch(fault)]
        assert faults == [], drawn
        assert "<mark>refund</mark>" in drawn
    for text in texts[:20]:
        answer = browser.get("/search/", dict.fromkeys(("q", "sender", "conversation", "kind"), text))
        assert answer.status_code in (200, 400)
        assert text not in answer.content.decode() or not re.search(r"[<>\"]", text)

    assert len(hits) > 100
