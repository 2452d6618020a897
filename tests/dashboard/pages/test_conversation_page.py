"""The conversation page: what is drawn at first, how further pages go on, what the panel tells."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from conversations.core import principals
from conversations.core.principals import SYSTEM, Principal
from conversations.events import log
from conversations.models import Conversation, User
from tests.support.cast import client_of, person
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db

KEY = "flood"


def say(*texts: str, key: str = KEY) -> None:
    """Store messages of one voice, in one transaction."""
    payloads = [{"type": "message", "sender": "Rosa", "recipient": "agent:Dialogue", "content": text} for text in texts]
    store(*payloads, key=key)


def store(*payloads: dict[str, Any], key: str = KEY, by: Principal = SYSTEM) -> None:
    """Store events as they come through a door, from ourselves unless told."""
    log.append([unchecked(key, payload, by) for payload in payloads])


def token(text: str, turn: int = 1) -> dict[str, Any]:
    """Make a token of a run of ours."""
    return {"event": "token", "text": text, "run_id": "run-1", "turn": turn, "agent": "Dialogue"}


def output(text: str, turn: int = 1) -> dict[str, Any]:
    """Make the output that ends a turn."""
    return {"event": "output", "text": text, "run_id": "run-1", "turn": turn, "agent": "Dialogue"}


def seqs(html: str) -> list[int]:
    """Return the seqs that are drawn, in order."""
    return [int(seq) for seq in re.findall(r'<article [^>]*data-seq="(\d+)"', html)]


@pytest.fixture
def vera() -> User:
    """Somebody who may look."""
    return person("vera", "viewer")


@pytest.fixture
def browser(vera: User) -> Client:
    """Her browser."""
    return client_of(vera)


def shown(browser: Client, query: str = "", key: str = KEY) -> str:
    """Open the page and answer its HTML."""
    answer = browser.get(reverse("conversation", args=[key]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def entries_page(browser: Client, query: str = "") -> dict[str, Any]:
    """Ask for a page of entries."""
    answer = browser.get(reverse("conversation-entries", args=[KEY]) + query)
    assert answer.status_code == 200
    return json.loads(answer.content)  # type: ignore[no-any-return]


def test_the_newest_sixty_are_drawn_and_where_to_go_on_is_told(browser: Client) -> None:
    say(*[f"line {n}" for n in range(70)])

    html = shown(browser)

    assert seqs(html) == list(range(11, 71))
    assert 'data-topic="stream:flood"' in html
    assert 'data-head="70" ' in html
    assert re.search(r'data-epoch="[0-9a-f]{16}" data-first="11" data-last="70">', html)


def test_a_turn_that_is_being_written_is_one_block_with_its_text(browser: Client) -> None:
    store(token("It is "), token("<b>rising"))

    html = shown(browser)

    assert 'data-group="turn:run-1:1"' in html
    assert ">It is &lt;b&gt;rising</p>" in html
    assert seqs(html) == [1]


def test_an_output_stands_alone_without_its_tokens(browser: Client) -> None:
    store(token("It is "), token("rising"), output("It is rising."))

    html = shown(browser)

    assert seqs(html) == [3]
    assert "data-live-text" not in html


def test_turns_of_two_runs_keep_their_own_text(browser: Client) -> None:
    store(token("a", turn=1), {**token("x"), "run_id": "run-2"}, token("b", turn=1), {**token("y"), "run_id": "run-2"})

    html = shown(browser)

    assert re.findall(r"data-live-text>([a-z]+)</p>", html) == ["ab", "xy"]


def test_a_permalink_shows_the_page_around_its_event(browser: Client) -> None:
    say(*[f"line {n}" for n in range(200)])

    html = shown(browser, "?event=100")

    assert seqs(html) == list(range(70, 130))
    assert 'data-event="100"' in html
    assert html.count("data-has-newer") == 2  # on the transcript and on the tail: it is not live


@pytest.mark.any_database
@pytest.mark.parametrize(("event", "row"), [(1, 4), (2, 5), (3, 4), (4, 4), (6, 6), (7, 6), (8, 10), (9, 10), (11, 11)])
def test_a_link_to_a_token_leads_to_the_row_of_its_text(browser: Client, event: int, row: int) -> None:
    theirs = {"run_id": "run-2"}
    store(token("a"), token("x") | theirs, token("b"), output("ab"), output("x") | theirs)
    store(token("c", turn=2), token("d", turn=2))
    outside = {"event": "token", "agent": "Desk", "text": "y"}
    store(outside, outside, {"event": "output", "agent": "Desk", "text": "yy"}, outside)

    assert f'data-event="{row}"' in shown(browser, f"?event={event}")


def test_a_link_to_a_token_leads_to_its_turn_as_it_was_then(browser: Client) -> None:
    store(token("a"), token("b"), output("ab"))

    assert 'data-event="1"' in shown(browser, "?event=2&at=2")


@pytest.mark.parametrize("event", ["", "x", "-1", "1.5", "٣", "9" * 40, "0"])
def test_a_mangled_permalink_opens_the_newest(browser: Client, event: str) -> None:
    say("one", "two")

    assert seqs(shown(browser, f"?event={event}")) == [1, 2]


def test_a_permalink_beyond_the_head_opens_the_last_event(browser: Client) -> None:
    say("one", "two")

    assert 'data-event="2"' in shown(browser, "?event=999")


def test_older_pages_together_are_the_whole_history(browser: Client) -> None:
    say(*[f"line {n}" for n in range(150)])

    page = entries_page(browser)
    shown = seqs(page["html"])
    while page["has_older"]:
        page = entries_page(browser, f"?before={page['first']}")
        shown = seqs(page["html"]) + shown

    assert shown == list(range(1, 151))


def test_newer_pages_together_reach_the_head(browser: Client) -> None:
    say(*[f"line {n}" for n in range(150)])

    page = entries_page(browser, "?after=0")
    shown = seqs(page["html"])
    while page["has_newer"]:
        page = entries_page(browser, f"?after={page['last']}")
        shown += seqs(page["html"])

    assert shown == list(range(1, 151))
    assert page["head"] == 150


def test_a_call_is_one_row_and_no_page_ends_inside_it(browser: Client) -> None:
    step = {"event": "tool_step", "name": "find", "args": {"q": 1}, "tool_call_id": "c1"}
    store({**step, "status": "start"}, {**step, "status": "success", "result_summary": "[]"})

    html = shown(browser)

    assert seqs(html) == [1]
    assert html.count('class="tool"') == 1


@pytest.mark.parametrize("key", ["a b/c?d#e", "..", "Straße 7", "<script>", "x" * 200])
def test_any_id_has_a_page(browser: Client, key: str) -> None:
    say("here", key=key)

    assert seqs(shown(browser, key=key)) == [1]


@pytest.mark.parametrize("name", ["conversation", "conversation-entries", "conversation-panel"])
def test_an_unknown_conversation_is_not_found(browser: Client, name: str) -> None:
    assert browser.get(reverse(name, args=["nowhere"])).status_code == 404


def test_what_is_still_being_imported_is_not_found(browser: Client) -> None:
    Conversation.objects.create(key="staged", is_staged=True)

    assert browser.get(reverse("conversation", args=["staged"])).status_code == 404


def test_a_stranger_is_led_to_sign_in_and_back() -> None:
    answer = client_of().get("/conversations/flood/?event=3")

    assert answer.status_code == 302
    assert answer["Location"] == "/sign-in/?next=%2Fconversations%2Fflood%2F%3Fevent%3D3"


def test_the_panel_tells_counters_voices_and_the_chain(browser: Client) -> None:
    say("one", "two")

    html = browser.get(reverse("conversation-panel", args=[KEY])).content.decode()

    row = Conversation.objects.get(key=KEY)
    assert 'data-head="2"' in html
    assert f'title="{row.head_hash}"' in html
    assert ">Dialogue</span>" in html
    assert ">Rosa</span>" in html


def test_the_facts_of_an_event_are_those_of_the_record(browser: Client) -> None:
    store({"type": "message", "id": "m-7", "sender": "Rosa", "recipient": "agent:Dialogue", "content": "hi"})

    html = browser.get(reverse("conversation-panel", args=[KEY]) + "?event=1").content.decode()

    event = Conversation.objects.get(key=KEY).events.get()
    assert all(fact in html for fact in ("m-7", "system", "Rosa", "agent:Dialogue", "message", event.hash))


def test_the_facts_of_an_imported_event_tell_when_it_happened_apart_from_when_it_was_committed(browser: Client) -> None:
    store(
        {"type": "message", "content": "hi", "created_at": "2025-08-01T16:22:31Z"},
        by=principals.import_principal("file"),
    )

    html = browser.get(reverse("conversation-panel", args=[KEY]) + "?event=1").content.decode()

    committed = datetime.fromtimestamp(Conversation.objects.get(key=KEY).events.get().at / 1e6, UTC)
    assert re.search(r'<dt>Happened</dt><dd><time datetime="2025-08-01T16:22:31', html)
    assert f'<dt>Committed</dt><dd><time datetime="{committed:%Y-%m-%dT%H:%M:%S}' in html


def test_what_the_eye_cannot_see_is_spelled_out_in_title_and_facts(browser: Client) -> None:
    store({"event": "conversation.opened", "title": "pay \u202emoor\u202c <b>"})
    store({"type": "message", "sender": "agent:Bob\u200b", "content": "hi"})

    html = shown(browser) + browser.get(reverse("conversation-panel", args=[KEY]) + "?event=2").content.decode()

    assert "<title>pay [U+202E]moor[U+202C] &lt;b&gt; ·" in html
    assert "agent:Bob[U+200B]" in html
    assert "\u202e" not in html
    assert "\u200b" not in html


def test_facts_of_an_event_that_is_not_there_are_not_found(browser: Client) -> None:
    say("one")

    assert browser.get(reverse("conversation-panel", args=[KEY]) + "?event=2").status_code == 404


def test_a_page_takes_the_same_number_of_queries_however_long_the_history(
    browser: Client, django_assert_max_num_queries: Any
) -> None:
    say(*[f"line {n}" for n in range(300)])
    shown(browser)

    with django_assert_max_num_queries(22):
        shown(browser)


def test_the_facts_of_an_event_have_every_count_of_its_token_usage(browser: Client) -> None:
    usage = {"input_tokens": 1_200, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 1_000}}
    store(output("hello") | {"usage": usage})

    panel = browser.get(f"/conversations/{KEY}/panel/?event=1").content.decode()

    assert "input_tokens 1,200, output_tokens 5, input_tokens_details.cached_tokens 1,000" in panel
