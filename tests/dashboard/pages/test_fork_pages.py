"""The pages and calls of forks: what the form offers, what a press makes, how copies are drawn, links both ways."""

import re

import pytest
from django.urls import reverse

from conversations.conversation import fork as forks
from conversations.core import principals
from conversations.events import log
from conversations.models import Agent, Approval, Conversation, Event, Run
from conversations.rendering import event_renderer
from conversations.runs.approvals import decide
from dashboard.pages.conversation_entries import entries_of
from tests.events.test_projections import told_once
from tests.support import teamwork
from tests.support.cast import client_of
from tests.support.drawn_html import Seen
from tests.support.event_types import EXAMPLES
from tests.support.hostile import payloads
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
ROSA = {"type": "message", "sender": "user:otto", "recipient": "agent:Clerk", "content": "Refund Ada,\nplease."}


@pytest.fixture
def browser(otto):
    return client_of(otto)


@pytest.fixture
def hello(otto):
    Agent.objects.create(team="t", name="Clerk", is_entry=True)
    log.append([unchecked("hello", ROSA, principals.user_principal("otto"))])
    return Conversation.objects.get(key="hello")


def form(key="hello"):
    return reverse("fork", args=[key])


def post(client, address, body):
    return client.post(address, body, content_type="application/json")


def drawn(key):
    return "\n".join(entries_of(log.newest_page(key)))


def test_the_form_offers_the_words_and_who_would_answer(browser, hello):
    html = browser.get(f"{form()}?event=1").content.decode()

    assert "Refund Ada,\nplease." in html
    assert "<option selected>Clerk</option>" in html
    assert "Fork after event 1" in html


def test_words_left_as_they_are_are_copied_whatever_a_browser_does_to_their_lines(browser, hello):
    posted = {"words": "Refund Ada,\r\nplease.", "agent": "Clerk", "run": "", "client_id": "k"}

    answer = browser.post(f"{form()}?event=1", posted)

    fork = hello.forks.get()
    assert answer["Location"] == f"/conversations/{fork.key}/?event=2#e2"
    assert fork.copied_seq == 1
    assert not Run.objects.filter(conversation=fork).exists()


def test_other_words_are_said_and_a_press_runs_on(browser, hello):
    posted = {"words": "Refund Bo.", "agent": "Clerk", "run": "1", "reason": "wrong person", "client_id": "k"}
    browser.post(f"{form()}?event=1", posted)
    browser.post(f"{form()}?event=1", posted)  # pressed twice

    fork = hello.forks.get()
    assert Run.objects.get(conversation=fork).status == "queued"
    html = browser.get(f"/conversations/{fork.key}/").content.decode()
    assert "Edited; original by" in html
    assert "Refund Ada," in html
    assert "wrong person" in html


@pytest.mark.parametrize(("words", "origin"), [("Refund Bo.", "its original"), (None, "Refund Ada, please.")])
def test_where_a_fork_comes_from_is_not_named_by_its_own_new_title(otto, hello, words, origin):
    fork = forks.fork(otto, "hello", 1, words=words).conversation

    links = re.findall(r'href="/conversations/hello/[^>]*>([^<]*)</a>', drawn(fork))

    assert links[0] == origin


def test_what_is_wrong_is_said_with_what_was_typed_kept(browser, hello):
    answer = browser.post(f"{form()}?event=1", {"words": "Other words", "agent": "Nobody", "run": "1"})

    assert answer.status_code == 422
    assert "Other words" in answer.content.decode()
    assert "Nobody" in answer.content.decode()
    assert not hello.forks.exists()


def test_a_run_is_run_again_from_its_line_by_page_and_call(browser, hello):
    run = Run.objects.get()
    started = {"event": "run.started", "run_id": run.id, "agent": "Clerk", "attempt": 1, "worker": "w"}
    log.append([unchecked("hello", started, principals.run_principal("Clerk"))])
    assert f"{form()}?run={run.id}" in drawn("hello")

    assert "answers event 1 again" in browser.get(f"{form()}?run={run.id}").content.decode()
    browser.post(f"{form()}?run={run.id}", {"run": "1", "client_id": "k"})
    made = post(browser, f"/api/v1/runs/{run.id}/forks", {}).json()

    assert hello.forks.count() == 2
    assert Run.objects.get(id=made["run_id"]).input_seq == 1
    assert f"?run={run.id}" not in drawn(made["conversation_id"])


def test_a_call_makes_a_fork_and_says_where(browser, hello):
    body = {"at": 1, "words": "Refund Bo.", "run": True, "client_id": "k"}

    first, again = (post(browser, "/api/v1/conversations/hello/forks", body) for _ in range(2))

    made = first.json()
    assert (first.status_code, again.json()) == (201, made)
    assert made["url"] == f"/conversations/{made['conversation_id']}/"
    details = browser.get(f"/api/v1{made['url'].rstrip('/')}").json()
    assert details["forked_from"] == {"conversation_id": "hello", "seq": 0}
    assert browser.get("/api/v1/conversations/hello").json()["forked_from"] is None
    wrong = post(browser, "/api/v1/conversations/hello/forks", {"at": 99})
    assert (wrong.status_code, wrong.json()["error"]["field"]) == (400, "at")
    assert post(browser, "/api/v1/conversations/none/forks", {"at": 1}).status_code == 404
    assert post(browser, "/api/v1/runs/none/forks", {}).status_code == 404


def test_both_conversations_link_to_each_other_and_the_list_tells_forks(browser, hello):
    made = forks.fork(browser_user(), "hello", 1)

    parent = browser.get("/conversations/hello/panel/").content.decode()
    child = browser.get(f"/conversations/{made.conversation}/panel/").content.decode()
    assert f"/conversations/{made.conversation}/?event=2" in parent
    assert "/conversations/hello/?event=1" in child
    assert f"/compare/?a=hello&amp;b={made.conversation}" in child
    assert browser.get("/").content.decode().count('<span class="tag">fork</span>') == 1


def test_totals_of_a_fork_say_from_where_they_count(browser, hello):
    made = forks.fork(browser_user(), "hello", 1)

    parent = browser.get("/conversations/hello/panel/").content.decode()
    child = browser.get(f"/conversations/{made.conversation}/panel/").content.decode()

    assert "since event" not in parent
    assert 'Totals <span class="faint">since event 1; messages with those copied</span>' in child


def test_the_head_and_the_tab_of_a_fork_say_that_it_is_one(browser, hello):
    made = forks.fork(browser_user(), "hello", 1)

    parent, child = (browser.get(f"/conversations/{key}/").content.decode() for key in ("hello", made.conversation))

    assert "<title>Fork: " in child
    assert '<span class="tag">fork<span class="wide-only"> at event 1</span></span>' in child
    assert "Fork: " not in parent


def test_a_fork_was_opened_when_it_was_made(browser, hello):
    Event.objects.filter(conversation=hello).update(at=1_700_000_000_000_000)
    made = forks.fork(browser_user(), "hello", 1)

    panel = browser.get(f"/conversations/{made.conversation}/panel/").content.decode()

    assert "<dt>Opened</dt>" in panel
    assert "2023-11-14T22:13:20" not in panel


def browser_user():
    return principals.user_principal("otto")


def test_copies_are_drawn_as_they_were_there_with_nothing_to_press(otto, browser):
    everything = [told_once(payload, "p") for some in EXAMPLES.values() for payload in some]
    for payload in everything:
        log.append([unchecked("p", payload)])
    head = Conversation.objects.get().head_seq
    made = forks.fork(otto, "p", head)

    parent = entries_of(log.page_after("p", 0, 500))
    child = entries_of(log.page_after(made.conversation, 0, 500))[: len(parent)]

    ended = [(entry, other) for entry, other in zip(child, parent, strict=True) if 'data-status="left"' not in entry]
    assert len(ended) > 60
    assert [bare(entry) for entry, _ in ended] == [bare(other) for _, other in ended]
    assert 'name="run"' not in "".join(child)
    assert 'name="decide"' not in "".join(child)


def bare(row):
    """A row without what only its own conversation has: what can be pressed or goes on."""
    text = re.sub(r"stream:[\w-]+:", "stream:", str(row))
    text = re.sub(r'<permission-gate.*?</permission-gate>|<a class="clip"[^>]*>', "", text, flags=re.DOTALL)
    return re.sub(r"/conversations/[^/]*/", "/conversations/", text)


def test_a_question_that_waits_there_is_no_question_here(otto, browser):
    teamwork.team()
    approval = teamwork.ask(otto)
    conversation = approval.conversation
    at = conversation.head_seq

    made = forks.fork(otto, conversation.key, at)

    html = drawn(made.conversation)
    assert "Not finished" in html
    assert "Not decided when this conversation was forked." in html
    assert approval.id not in html
    assert Approval.objects.count() == 1
    assert "<decision-form" in drawn(conversation.key)


def test_a_call_that_ended_there_later_has_not_ended_here(otto):
    step = {"event": "tool_step", "name": "refund", "tool_call_id": "c", "agent": "agent:A"}
    robot = principals.token_principal("robot")
    log.append([unchecked("p", step | {"status": "start", "args": {"to": "Ada"}}, robot)])
    log.append([unchecked("p", step | {"status": "success", "output": "the-secret-outcome"}, robot)])

    early, late = (forks.fork(otto, "p", at).conversation for at in (1, 2))

    assert "the-secret-outcome" not in drawn(early)
    assert "Not finished" in drawn(early)
    assert "the-secret-outcome" in drawn(late)
    assert drawn(late).count('data-kind="tool_step"') == 1
    again = forks.fork(otto, late, 1).conversation
    assert "Not finished" in drawn(again)


def test_the_form_shows_a_call_and_a_turn_as_the_fork_will_have_them(otto, browser):
    robot = principals.token_principal("robot")
    step = {"event": "tool_step", "name": "refund", "tool_call_id": "c", "agent": "agent:A"}
    for payload in (
        ROSA,
        step | {"status": "start", "args": {"to": "Ada"}},
        step | {"status": "success", "output": "the-later-outcome"},
        {"event": "token", "agent": "agent:A", "text": "half of it", "index": 0},
        {"event": "output", "agent": "agent:A", "text": "half of it and the-later-rest"},
    ):
        log.append([unchecked("p", payload, robot)])

    amid_call, amid_turn, at_end = (browser.get(f"{form('p')}?event={at}").content.decode() for at in (2, 4, 5))

    assert "the-later-outcome" not in amid_call
    assert "Not finished" in amid_call
    assert "half of it" in amid_turn
    assert "the-later-rest" not in amid_turn
    assert "the-later-outcome" in at_end
    assert "the-later-rest" in at_end


def test_the_form_shows_a_request_as_undecided_that_was_decided_later(otto, team, browser):
    teamwork.team()
    approval = teamwork.ask(otto)
    at = approval.conversation.head_seq
    teamwork.go_on(decide.decide(team["approver"], approval.id, "approve"))

    html = browser.get(f"{form('flood')}?event={at}").content.decode()

    assert "Not decided when this conversation was forked." in html
    assert "<decision-form" not in html
    assert "Filed as 48-2219" not in html


def test_the_form_says_that_a_run_which_waits_there_is_not_continued(otto, team, browser):
    teamwork.team()
    approval = teamwork.ask(otto)
    at = approval.conversation.head_seq
    waits = "waits for approval, which no fork continues"

    waiting = [browser.get(f"{form('flood')}?event={seq}").content.decode() for seq in (approval.asked_seq - 1, at)]
    teamwork.go_on(decide.decide(team["approver"], approval.id, "approve"))
    later = browser.get(f"{form('flood')}?event={at}").content.decode()
    over = browser.get(form("flood")).content.decode()

    assert [waits in html for html in (*waiting, later, over)] == [False, True, True, False]
    assert "<code>file_incident</code>" in later
    assert "['file_incident']" not in Seen(later).text
    assert "starts a new run that answers event" in later


def test_the_form_says_that_an_edited_message_is_not_copied(otto, browser, hello):
    html = browser.get(f"{form()}?event=1").content.decode()

    made = forks.fork(otto, "hello", 1, words="Refund Bo.").conversation

    assert Conversation.objects.get(key=made).copied_seq == 0
    assert "If you edit it, your text is sent under your name in its place" in html


def test_what_a_call_offers_leads_to_a_fork_before_it(otto):
    log.append([unchecked("p", ROSA, principals.user_principal("otto"))])
    log.append([unchecked("p", {"event": "tool_step", "name": "refund", "args": {}, "agent": "A"})])

    assert "/conversations/p/fork/?event=1" in drawn("p")


def test_before_a_call_the_form_leads_to_where_words_can_be_changed(browser, hello):
    log.append(
        [unchecked("hello", {"event": "tool_step", "name": "refund", "args": {}, "agent": "A"}, principals.SYSTEM)]
    )

    amid, at_the_start = (browser.get(f"{form()}?event={at}").content.decode() for at in (Event.objects.count(), 1))

    assert '<a href="?event=1">Fork after event 1</a> to edit the message' in amid
    assert 'name="words"' not in amid
    assert "Fork after event 1</a>" not in at_the_start


@pytest.mark.thorough
def test_hostile_words_stay_text_in_forks_and_changed_messages(otto, browser):
    Agent.objects.create(team="t", name="Clerk", is_entry=True)
    for number, words in enumerate(payloads(40)):
        key = f"h{number}"
        log.append([unchecked(key, ROSA | {"content": words or "x", "sender": words[:90] or "x"})])
        changed = forks.fork(otto, key, 1, words=words if words.strip() else "x", reason=words[:500]).conversation
        forks.fork(otto, key, 1, reason=words[:500])

        html = drawn(changed)
        assert Seen(html).faults == [], words
        for page in (f"/conversations/{changed}/panel/", f"/compare/?a={key}&b={changed}", f"{form(key)}?event=1"):
            page_text = browser.get(page)
            assert page_text.status_code == 200
            assert Seen(strip_frame(page_text.content.decode())).faults == [], (page, words)
    event_renderer._cache.clear()


def strip_frame(html):
    """The rows of strangers alone: the frame of a page has forms and scripts of its own."""
    return "".join(re.findall(r'<div class="told.*?</div>|<article .*?</article>', html, flags=re.DOTALL))


def test_a_fork_at_a_mangled_event_is_at_the_end(browser, hello):
    head = Event.objects.filter(conversation=hello).count()

    assert f"Fork after event {head}" in browser.get(f"{form()}?event=x").content.decode()
    assert browser.get(f"{form('none')}?event=1").status_code == 404
    assert browser.get(f"{form()}?run=none").status_code == 404
