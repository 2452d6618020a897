"""What a newcomer sees first, and the page that connects an agent."""

import html
import json
import re
import shlex

import pytest

from conversations.conversation import attention
from conversations.core import principals
from conversations.events import log
from conversations.models import Token, User
from dashboard import demo
from dashboard.pages.connect_sources import RECORDINGS
from tests.support import teamwork
from tests.support.cast import client_of

pytestmark = pytest.mark.django_db

SENTENCE = "Switchboard shows what your AI agents do, live"


def say(key, by, **more):
    log.append([log.from_internal(key, {"event": "log", "text": "x", **more}, by)])


def open_demo():
    opened = {"event": "conversation.opened", "title": "T", "demo": True}
    log.append([log.from_internal("demo-1", opened, principals.SYSTEM)])


def test_the_first_page_says_what_this_is_until_there_is_something_of_ones_own(browsers):
    open_demo()
    page = browsers["viewer"].get("/").content.decode()
    assert SENTENCE in page
    assert "a recording" in page
    assert "/connect/" not in page

    assert "/connect/" in browsers["admin"].get("/").content.decode()
    say("real", principals.token_principal("robot"))

    assert SENTENCE not in browsers["viewer"].get("/").content.decode()
    assert "Your conversations are below." in browsers["viewer"].get("/first-steps/").content.decode()


def test_dismissed_is_dismissed_for_this_person_in_every_browser(browsers):
    answer = browsers["admin"].post("/first-steps/dismissal/")
    assert (answer.status_code, answer["Location"]) == (302, "/")

    assert SENTENCE not in browsers["admin"].get("/").content.decode()
    elsewhere = client_of(User.objects.get(roles__name="admin"))
    assert SENTENCE not in elsewhere.get("/").content.decode()
    assert SENTENCE in browsers["viewer"].get("/").content.decode()


def test_a_token_is_made_for_one_agent_and_shown_once_with_three_lines(browsers):
    page = browsers["admin"].post("/connect/", {"agent": "Scout"}).content.decode()

    lines = [html.unescape(value) for value in re.findall(r'readonly value="([^"]*)" aria-label="Line', page)]
    token = Token.objects.get()
    assert (token.role, token.agent, len(lines)) == ("agent", "Scout", 3)
    assert lines[1].startswith("export SWITCHBOARD_TOKEN=sb_")
    assert shlex.split(lines[2])[0] == "curl"
    assert "Waiting for your first event" in page
    again = browsers["admin"].post("/connect/", {"agent": "Scout"})
    assert again.status_code == 409
    assert "already exists" in again.content.decode()


@pytest.mark.parametrize(
    ("source", "role", "shown"),
    [
        ("agents-sdk", "agent", "switchboard.watch_agents()"),
        ("opentelemetry", "telemetry", "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20sb_"),
        ("langfuse", "telemetry", "add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))"),
        ("phoenix", "telemetry", "replace_default_processor=False"),
        ("claude-code", "agent", '"PermissionRequest"'),
        ("codex", "agent", "/api/v1/hooks/codex"),
    ],
)
def test_each_source_has_its_token_and_lines(browsers, source, role, shown):
    page = html.unescape(browsers["admin"].post("/connect/", {"agent": "Scout", "source": source}).content.decode())

    token = Token.objects.get()
    assert (token.role, token.agent) == (role, "Scout")
    assert shown in page
    assert re.search(r"sb_[\w-]{20,}", page)
    for block in re.findall(r"<textarea[^>]*>(\{.*?)</textarea>", page, re.DOTALL):
        assert set(json.loads(block)) == {"hooks"}


def test_programs_whose_files_are_imported_are_listed_with_how_to_come_by_one(browsers):
    page = html.unescape(browsers["admin"].get("/connect/").content.decode())

    for each in RECORDINGS:
        assert f"<b>{each.title}</b>" in page
        assert each.code in page
    assert 'href="/import/"' in page
    assert 'href="/connect/agents/"' in page


@pytest.mark.parametrize("agent", ["a b", "x'; rm -rf /", "$(id)", "<b>", "a" * 200])
def test_a_name_that_no_token_can_have_is_refused_beside_its_field(browsers, agent):
    answer = browsers["admin"].post("/connect/", {"agent": agent})

    assert answer.status_code == 422
    assert 'aria-invalid="true"' in answer.content.decode()
    assert not Token.objects.exists()


def test_the_first_event_of_the_token_is_linked_and_no_other(browsers):
    say("before", principals.token_principal("Scout"))
    page = html.unescape(browsers["admin"].post("/connect/", {"agent": "Scout"}).content.decode())
    source = re.search(r'data-src="(/connect/[^"]*part=waiting)"', page)
    assert source
    say("other", principals.token_principal("robot"))
    assert "Waiting" in browsers["admin"].get(source[1]).content.decode()

    say("mine", principals.token_principal("Scout"))

    assert 'href="/conversations/mine/?event=1#e1"' in browsers["admin"].get(source[1]).content.decode()


def test_the_offered_name_is_free(browsers):
    for offered in ("MyAgent", "MyAgent-2", "MyAgent-3"):
        assert f'value="{offered}"' in browsers["admin"].get("/connect/").content.decode()
        browsers["admin"].post("/connect/", {"agent": ""})

    assert list(Token.objects.order_by("name").values_list("name", flat=True)) == ["MyAgent", "MyAgent-2", "MyAgent-3"]


def test_the_greeting_waits_for_no_person(browsers):
    page = html.unescape(browsers["admin"].post("/connect/", {"agent": "Scout", "source": "http"}).content.decode())
    body = re.search(r"-d '({.*})'", page)
    assert body
    greeting = json.loads(body[1])["payload"]

    log.append([log.from_internal("hello-Scout", greeting, principals.token_principal("Scout"))])

    assert attention.all_needs().needs == {}


def test_a_demo_that_waits_says_so_in_its_head_and_in_the_first_steps(browsers):
    open_demo()
    run = {"run_id": "r", "agent": "Dialogue", "run_kind": "recording"}
    approval_request = {
        "event": "approval.requested",
        "run_id": "r",
        "agent": "Dialogue",
        "approval_id": "a",
        "tool_call": "t",
    }
    payloads = [
        {"event": "run.queued", **run, "input_seq": 1},
        approval_request | {"name": "file_incident", "args": {}},
        {"event": "run.waiting", "run_id": "r", "agent": "Dialogue", "reason": "approval"},
    ]
    demo._request("demo-1", [payload | {"id": str(n)} for n, payload in enumerate(payloads)], {"name": "file_incident"})

    assert "Waiting for you" in browsers["admin"].get("/conversations/demo-1/").content.decode()
    assert not turn_is_hidden(browsers["admin"])
    assert 'href="/conversations/demo-1/?event=3#e3"' in browsers["admin"].get("/first-steps/").content.decode()
    assert "approve this call" not in browsers["viewer"].get("/first-steps/").content.decode()


def turn_is_hidden(browser):
    page = browser.get("/conversations/demo-1/").content.decode()
    return re.search(r'data-your-turn aria-label="Your turn"( hidden)?', page)[1] is not None


def test_the_demo_says_nothing_of_requests_that_wait_elsewhere(browsers):
    open_demo()
    teamwork.team()
    teamwork.ask(User.objects.get(username="ada"), "flood")

    assert turn_is_hidden(browsers["admin"])
