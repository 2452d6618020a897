"""A conversation to be printed: all of it, or what is left out is said; calls and long texts open."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from dashboard.pages import conversation_print
from tests.dashboard.pages.test_conversation_page import KEY, say, seqs, store

pytestmark = pytest.mark.django_db


def printed(browser: Client, query: str = "") -> str:
    """Open the page."""
    return browser.get(reverse("conversation-print", args=[KEY]) + query).content.decode()


def test_it_is_whole(browser: Client) -> None:
    say(*[f"line {n}" for n in range(450)])

    html = printed(browser)

    assert seqs(html) == list(range(1, 451))
    assert "events 1 to 450 of 450" in html
    assert "data-left-out" not in html


def test_what_is_left_out_is_said_and_leads_on(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_print, "MAX_ENTRIES", 30)
    say(*[f"line {n}" for n in range(70)])

    html, after = printed(browser), printed(browser, "?after=30")

    assert "Events 31 to 70 are not part of this document." in html
    assert 'href="?after=30"' in html
    assert seqs(html) + seqs(after) == list(range(1, 61))
    assert "Events 1 to 30 are not part of this document." in after


def test_calls_and_long_texts_are_open(browser: Client) -> None:
    store({"event": "tool_step", "name": "find", "tool_call_id": "c1", "status": "success", "output": "none"})
    say("long\n\n" * 200 + '<details class="tool">')

    html = printed(browser)

    assert '<details open class="tool"' in html
    assert '<details open class="unfold"' in html
    assert '<details class="' not in html.replace('<details class="disclosed"', "")
    assert "&lt;details class=" in html


def test_json_and_long_outputs_are_open(browser: Client) -> None:
    nested = {"order": {"customer": {"address": {"street": "Hill Road"}}, "items": list(range(30))}}
    for call, output in (("c1", nested), ("c2", "\n".join(f"line {n}" for n in range(100)))):
        store({"event": "tool_step", "name": "find", "tool_call_id": call, "status": "success", "output": output})

    html = re.sub(r'<details class="disclosed".*?</details>', "", printed(browser), flags=re.DOTALL)

    assert "Hill Road" in html
    assert '<details open class="rest">' in html
    assert re.findall(r"<details(?! open)[^>]*>", html) == []


def test_an_empty_place_is_not_found(browser: Client) -> None:
    assert browser.get(reverse("conversation-print", args=["nowhere"])).status_code == 404
