"""Thumbs and notes on the pages of a conversation: under their events, in the panel's form, by the API, in files."""

import json
import re
from html import unescape
from typing import Literal

import pytest
from django.test import Client
from django.urls import reverse

from conversations.conversation import conversation_files
from conversations.conversation.annotate import annotate
from conversations.core.ids import new_id
from conversations.core.principals import import_principal
from conversations.models import Annotation, Conversation, User
from tests.dashboard.pages.test_conversation_page import KEY, say, store
from tests.support.cast import client_of
from tests.support.searching import catch_up

pytestmark = pytest.mark.django_db
DOOR = f"/api/v1/conversations/{KEY}/annotations"
CALL = {"event": "tool_step", "name": "find", "tool_call_id": "c1", "agent": "Triage"}


@pytest.fixture
def browser(otto: User) -> Client:
    """His browser, at a conversation of three messages."""
    say("one", "two", "three")
    return client_of(otto)


def note(by: User, about: int, thumb: str | None = None, text: str = "") -> int:
    return annotate(by, KEY, about, thumb=thumb, text=text, client_id=new_id()).seq


def page(browser: Client, query: str = "", name: str = "conversation") -> str:
    answer = browser.get(f"{reverse(name, args=[KEY])}{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def row(html: str, seq: int) -> str:
    """Return an event's row alone."""
    rows = re.findall(r"<article .*?</article>", html, re.DOTALL)
    return next(row for row in rows if f' id="e{seq}"' in row)


def notes_in(html: str, seq: int) -> list[str]:
    """Return the seqs of the notes under an event."""
    listed = re.search(r'<ul class="notes" data-key.*?</ul>', row(html, seq), re.DOTALL)
    return re.findall(r'data-note="(\d+)"', listed[0]) if listed else []


@pytest.mark.parametrize("query", ["", "?view=lanes", "?event=2"])
def test_notes_stand_under_their_event_in_every_view_of_rows(browser: Client, otto: User, query: str):
    first, second = note(otto, 2, "up"), note(otto, 2, text="Well <b>put</b>.")

    html = page(browser, query)

    assert notes_in(html, 2) == [str(first), str(second)]
    assert notes_in(html, 1) == notes_in(html, 3) == []
    assert "Well &lt;b&gt;put&lt;/b&gt;." in row(html, 2)


def marked(html: str, start: str) -> list[str]:
    """Return the words of the marks within each element that begins so."""
    elements = re.findall(rf"{start}.*?</(?:a|tr)>", html, re.DOTALL)
    return [words for element in elements for words in re.findall(r'class="noted".*?aria-label="([^"]+)"', element)]


def test_rows_of_the_timeline_are_marked_with_thumbs_and_notes(browser: Client, otto: User):
    store({**CALL, "args": {}, "status": "start"})
    store({**CALL, "status": "success", "output": "wet"})
    for about, thumb, text in (
        (2, "down", ""),
        (2, None, "Hm."),
        (2, None, "Yes."),
        (1, "up", ""),
        (5, "up", "Found."),
    ):
        note(otto, about, thumb, text)
    note(otto, 1, "")  # takes the thumb back

    html = page(browser, "?view=timeline")

    assert marked(html, r'<a class="span"[^>]*data-seq="2"') == ["1 thumbs down, 2 notes"]
    assert marked(html, r'<a class="span"[^>]*data-seq="1"') == []
    assert marked(html, r'<a class="span"[^>]*data-kind="call"') == ["1 thumbs up, 1 note"]
    assert marked(page(browser, "?view=timeline&at=5"), '<a class="span"') == []


def test_edges_of_the_graph_are_marked_with_thumbs_and_notes(browser: Client, otto: User):
    store({**CALL, "args": {}, "status": "start"})
    store({**CALL, "status": "success", "output": "wet"})
    for about, thumb, text in ((2, "down", ""), (3, None, "Hm."), (5, "up", "")):
        note(otto, about, thumb, text)

    html = page(browser, "?view=graph")

    assert marked(html, '<tr data-key="message ') == ["1 thumbs down, 1 note"]
    assert marked(html, '<tr data-key="call ') == ["1 thumbs up"]
    chips = re.findall(r'<a class="times".*?</a>', html, re.DOTALL)
    assert sum('class="noted"' in chip for chip in chips) == 2
    assert all(("thumbs" in chip.partition("<title>")[0]) == ('class="noted"' in chip) for chip in chips)


def test_its_own_line_leads_to_the_event(browser: Client, otto: User):
    seq = note(otto, 2, "down", "Wrong street.")

    line = row(page(browser), seq)

    assert 'href="?event=2#e2"' in line
    assert 'data-about="2"' in line
    assert 'data-level="steps"' in line


def test_a_claim_is_marked_and_stands_under_no_event(browser: Client):
    store({"event": "event.annotated", "about": 2, "thumb": "up", "text": "Believe me"}, by=import_principal("file"))

    html = page(browser)

    assert "from outside" in row(html, 4)
    assert "data-about" not in row(html, 4)
    assert notes_in(html, 2) == []


def test_the_note_on_the_end_of_a_call_stands_under_its_block(browser: Client, otto: User):
    store({**CALL, "args": {"street": "Elm"}, "status": "start"}, {**CALL, "status": "success", "output": "wet"})
    seq = note(otto, 5, "up")

    assert notes_in(page(browser), 4) == [str(seq)]


def test_further_pages_and_the_past_have_them(browser: Client, otto: User):
    first = note(otto, 2, "up")
    note(otto, 2, "down")

    assert notes_in(json.loads(page(browser, "?before=3", "conversation-entries"))["html"], 2) == ["5"]
    assert notes_in(page(browser, f"?at={first}"), 2) == [str(first)]
    assert notes_in(page(browser, name="conversation-print"), 2) == ["5"]


def test_the_panel_offers_a_form_to_whoever_may(browser: Client, otto: User, people: dict[str, User]):
    note(otto, 2, "up")

    html = page(browser, "?event=2", "conversation-panel")

    assert re.search(r'value="" data-thumb="up" aria-pressed="true"', html)
    assert re.search(r'value="down" data-thumb="down" aria-pressed="false"', html)
    assert "event-annotation" in page(browser, "?event=2")  # without scripts
    assert "event-annotation" not in page(browser, "?event=4", "conversation-panel")  # an annotation itself
    assert "event-annotation" not in page(client_of(people["viewer"]), "?event=2", "conversation-panel")


def test_the_form_works_without_scripts_and_twice_is_once(browser: Client):
    form = {"about": "2", "client_id": "c1", "text": "Well put.\r\nTruly."}

    answers = [browser.post(DOOR, form) for _ in range(2)]
    browser.post(DOOR, {**form, "thumb": "up", "text": ""})

    assert [answer.headers["Location"] for answer in answers] == [f"/conversations/{KEY}/?event=2#e2"] * 2
    assert list(Annotation.objects.order_by("seq").values_list("about", "thumb")) == [(2, ""), (2, "up")]


def test_a_form_that_says_nothing_gets_a_page_that_says_so(browser: Client):
    answer = browser.post(DOOR, {"about": "2", "client_id": "c1", "text": " "})

    assert answer.status_code in (400, 422)
    assert "must not be empty without a thumb" in answer.content.decode()


def test_the_api_stores_and_lists_them(browser: Client):
    body = {"about": 2, "thumb": "up", "text": "Well put.", "client_id": "c1"}
    stored = browser.post(DOOR, body, content_type="application/json")
    browser.post(DOOR, {"about": 1, "text": "Hm.", "client_id": "c2"}, content_type="application/json")

    assert stored.status_code == 201
    assert stored.json() == {"seq": 4, "about": 2, "url": f"/conversations/{KEY}/?event=2#e2"}
    first = browser.get(DOOR, {"limit": 1}).json()
    assert [item["seq"] for item in first["items"]] == [5]
    last = browser.get(DOOR, {"limit": 1, "before": first["cursor"]}).json()
    at = last["items"][0].pop("at")
    assert last["items"] == [{"seq": 4, "about": 2, "by": "user:otto", "thumb": "up", "text": "Well put."}]
    assert at > 0
    assert last["cursor"] is None
    assert [item["seq"] for item in browser.get(DOOR, {"about": 1}).json()["items"]] == [5]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"about": 99, "thumb": "up"}, "about"),
        ({"about": 2}, "text"),
        ({"about": 2, "thumb": "left"}, "thumb"),
        ({"about": 2, "text": "x" * 2001}, "text"),
    ],
)
def test_the_api_names_the_field_that_is_wrong(browser: Client, body: dict[str, object], field: str):
    answer = browser.post(DOOR, {**body, "client_id": "c"}, content_type="application/json")

    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == field
    assert Conversation.objects.get(key=KEY).head_seq == 3


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ("markdown", r"> two\n\n- \*\*otto\*\* · thumbs up · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d · 4\n\n  > Well put\.\n\n"),
        (
            "text",
            r"    two\n\n    Note by otto: thumbs up · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d · 4\n        Well put\.\n\n",
        ),
    ],
)
def test_a_file_has_them_under_their_event_once(
    browser: Client, otto: User, form: Literal["markdown", "text"], wanted: str
):
    note(otto, 2, "up", "Well put.")

    text = b"".join(conversation_files.pieces(KEY, form)).decode()

    assert re.search(wanted, text)
    assert text.count("Well put.") == 1


def test_the_outline_names_notes_and_no_bare_thumbs(browser: Client, otto: User):
    seq, bare = note(otto, 2, text="Well put."), note(otto, 3, "up")

    html = page(browser, name="conversation-outline")

    assert f"#e{seq}" in html
    assert f"#e{bare}" not in html
    assert "Well put." in html


def test_statistics_count_thumbs_and_notes_by_who_they_are_about(browser: Client, otto: User, people: dict[str, User]):
    store({"event": "output", "agent": "Triage", "text": "said"})
    agent_seq = Conversation.objects.get(key=KEY).head_seq
    note(otto, agent_seq, thumb="down")
    note(otto, agent_seq, thumb="up", text="Right tone.")  # the newest of one person counts, with its words
    note(people["admin"], agent_seq, thumb="down")
    note(people["admin"], 1, text="Who is this?")

    html = browser.get(reverse("numbers")).content.decode()

    table = re.search(r"<h2>Thumbs and notes</h2>.*?</table>", html, re.DOTALL)
    assert table
    rows = re.findall(r"<tr data-item>.*?</tr>", table[0], re.DOTALL)
    figures = [
        (re.findall(r"<bdi>(.*?)</bdi>", row), re.findall(r'data-cell="[^"]*">(?:<a [^>]*>)?([^<]*)<', row))
        for row in rows
    ]
    assert figures[0] == (["Triage"], ["1", "1", "50 %", "0"])
    assert figures[1][1] == ["0", "0", "–", "1"]


def test_every_thumb_down_is_found_with_what_it_is_about(browser: Client, otto: User):
    store({"event": "output", "agent": "Triage", "text": "Wrong."})
    note(otto, 1, "up")
    note(otto, 4, "down", "Not the harbour.")
    catch_up()

    listed = browser.get("/search/?kind=thumb.down").content.decode()
    (hit,) = re.findall(r'<article class="hit".*?</article>', listed, re.DOTALL)
    shown = " ".join(re.sub(r"<[^>]*>", " ", hit).split())
    up = browser.get("/search/?kind=thumb.up").content.decode()

    assert '<option value="thumb.down" selected>Thumbs down</option>' in listed
    assert "thumbs down" in shown
    assert "on event 4 by Triage" in shown
    assert "Not the harbour." in shown
    assert f'href="/conversations/{KEY}/?event=4#e4"' in hit
    assert '<span class="tag">thumbs up</span>' in up
    statistics = browser.get("/numbers/?range=1h").content.decode()
    (link,) = re.findall(r'href="(/search/\?kind=thumb.down[^"]*)"', statistics)
    assert browser.get(unescape(link)).content.decode().count('<article class="hit"') == 1


@pytest.mark.parametrize(
    ("thumb", "text", "words"),
    [("down", "", "thumbs down"), (None, "Late.", "noted Late."), ("up", "Good.", "thumbs up Good.")],
)
def test_a_lane_says_which_thumb_was_given(
    browser: Client, otto: User, thumb: Literal["up", "down"] | None, text: str, words: str
):
    seq = note(otto, 1, thumb, text)

    shown = " ".join(re.sub(r"<[^>]*>", " ", row(page(browser, "?view=lanes"), seq)).split())

    assert words in shown
    assert "commented" not in shown


def test_statistics_say_nothing_of_thumbs_where_there_are_none(browser: Client):
    assert "Thumbs and notes" not in browser.get(reverse("numbers")).content.decode()
