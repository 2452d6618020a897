"""Fifty planted secrets, in errors, arguments, outputs, settings and contexts, are in no row, no page, no log line."""

import json
import logging
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from django.conf import settings
from django.db import connection
from pydantic import BaseModel, SecretStr

from agents_app.teams.chat_tool import chat_send
from agents_app.teams.definition import Team
from conversations.core import log_format
from conversations.models import AuditEntry
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db(transaction=True)

NAMED = ("api_key", "API-KEY", "secret", "password", "client_secret", "access_token", "openai_api_key")
SECRETS = {
    **{f"named-{n}": (f"PLANTED{n:02}abcdef", f'{{"{name}": "PLANTED{n:02}abcdef"}}') for n, name in enumerate(NAMED)},
    **{f"assigned-{n}": (f"PLANTED{n:02}assign", f"{name}=PLANTED{n:02}assign") for n, name in enumerate(NAMED)},
    **{f"key-{n}": (f"sk-PLANTED{n:02}aaaabbbb", f"the key sk-PLANTED{n:02}aaaabbbb is wrong") for n in range(10)},
    **{f"bearer-{n}": (f"PLANTED{n:02}bearer0", f"Authorization: Bearer PLANTED{n:02}bearer0") for n in range(10)},
    **{f"address-{n}": (f"PLANTED{n:02}word", f"postgresql://me:PLANTED{n:02}word@db/x") for n in range(8)},
    **{f"github-{n}": (f"ghp_PLANTED{n:02}aaaabbbbcccc", f"ghp_PLANTED{n:02}aaaabbbbcccc") for n in range(7)},
    "settings": ("PLANTED-of-the-settings", "the server said PLANTED-of-the-settings"),
}


class Remembering(BaseModel):
    note: str = ""


class Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []
        self.addFilter(log_format.MaskingFilter())

    def emit(self, record):
        self.lines.append(log_format.TextFormatter().format(record))


@pytest.fixture
def lines():
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler.lines
    logging.getLogger().removeHandler(handler)


WITHOUT_TEXTS = ("conversations_search", "conversations_caption")


def stored(*besides):
    """Every text of every table but these."""
    places = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            if table in besides or (connection.vendor == "sqlite" and table in WITHOUT_TEXTS):
                continue  # indexes without their texts; these stand in tables of their own, which are read
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            places += [str(value) for row in cursor.fetchall() for value in row]
    return "\n".join(places)


PAGES = (
    *("/", "/agents/", "/ops/", "/ops/quarantine/", "/people/", "/tokens/", "/audit/", "/account/"),
    "/conversations/c/",
)
ROUTES = ("conversations", "conversations/c", "conversations/c/events?limit=500", "openapi.json")


def shown(browser):
    """Everything that somebody who may see all is shown: pages, every drawn entry, the facts of events, the API."""
    pages = [read(browser, page) for page in PAGES]
    pages += [read(browser, f"/api/v1/{route}") for route in ROUTES]
    after, has_newer = 0, True
    while has_newer:
        part = json.loads(read(browser, f"/conversations/c/entries/?after={after}"))
        pages.append(part["html"])
        after, has_newer = part["last"], part["has_newer"]
    pages += [read(browser, f"/conversations/c/panel/?event={seq}") for seq in range(1, after, 25)]
    return "\n".join([*pages, read(browser, "/conversations/c/panel/")])


def read(browser, address):
    answer = browser.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


@pytest.mark.slow
@pytest.mark.any_database
def test_planted_secrets_are_nowhere_in_the_record_the_pages_or_the_log(lines, monkeypatch):
    monkeypatch.setattr(settings.CONFIG, "openai_api_key", SecretStr(SECRETS["settings"][0]))
    texts = [text for _, text in SECRETS.values()]
    assert len(texts) == 50

    @function_tool
    def echo(words: str) -> str:
        """Echo."""
        return words

    @function_tool
    def fail(number: int) -> str:
        """Fail."""
        raise ValueError(texts[number])

    calls = [function_call("fail", {"number": n}, call_id=f"f{n}") for n in range(50)]
    calls += [function_call("echo", {"words": text}, call_id=f"e{n}") for n, text in enumerate(texts)]
    to = {"recipient": f"chat:{texts[20]}", "content": "psst", "conversation_id": None}
    calls.append(function_call("chat_send", to, call_id="s"))
    clerk = Agent(
        name="Clerk",
        model=ScriptedModel([calls, ModelStep.raise_error(RuntimeError(" ; ".join(texts)))]),
        tools=[echo, fail, chat_send],
    )
    with working(Team(name="t", agents=[clerk], entry=["Clerk"])):
        send_message()
        (run,) = ended_runs()

    assert run.status == "failed"
    assert len(event_bodies("tool_step")) == 202
    assert AuditEntry.objects.filter(outcome="refused", verb="publish").exists()
    pages = shown(client_of(person("ada", "admin")))
    assert pages.count("•••") > 150
    for place, text in (("record", stored()), ("log", "\n".join(lines)), ("pages", pages)):
        assert [name for name, (secret, _) in SECRETS.items() if secret in text] == [], place


@pytest.mark.any_database
@pytest.mark.parametrize("is_gated", [False, True], ids=["called", "waiting"])
def test_what_is_below_the_name_of_a_secret_in_arguments_is_nowhere_in_the_record(is_gated):
    called = []

    def sign_in(credentials: dict[str, Any]) -> str:
        """Sign in."""
        called.append(credentials)
        return "in"

    tool = function_tool(sign_in, strict_mode=False, needs_approval=is_gated)
    secret = {"user": "PLANTED-user", "pins": [7531594, {"old": "PLANTED-old"}]}
    steps = [[function_call("sign_in", {"credentials": secret}, call_id="c1")], [assistant_message("So.")]]
    clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[tool])
    with working(Team(name="t", agents=[clerk], entry=["Clerk"])):
        send_message()
        ended_runs()

    assert called == ([] if is_gated else [secret])
    rows = stored("conversations_run")  # a run that waits keeps its state, signed
    assert [value for value in ("PLANTED-user", "7531594", "PLANTED-old") if value in rows] == []
    steps = event_bodies("approval.requested" if is_gated else "tool_step")
    assert steps[0]["args"] == {"credentials": {"user": "•••", "pins": ["•••", {"old": "•••"}]}}


def test_a_context_with_a_secret_is_not_kept_and_the_run_says_so():
    @function_tool
    def remember(ctx: RunContextWrapper[Remembering]) -> str:
        """Remember."""
        ctx.context.note = "sk-PLANTED00aaaabbbb"
        return "ok"

    clerk = Agent(
        name="Clerk",
        model=ScriptedModel([[function_call("remember", {}, call_id="c")], [assistant_message("so")]]),
        tools=[remember],
    )
    with working(Team(name="t", agents=[clerk], entry=["Clerk"], context=Remembering)):
        send_message()
        (run,) = ended_runs()

    assert (run.status, run.reason) == ("failed", "context")
    assert "PLANTED" not in stored()
