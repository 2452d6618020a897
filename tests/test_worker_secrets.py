"""Fifty planted secrets, in errors, arguments, outputs, settings and contexts, are in no row and no log line."""

import logging

import pytest
from agents import Agent, RunContextWrapper, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from django.conf import settings
from django.db import connection
from pydantic import BaseModel, SecretStr

from agents_app.teams import Team
from conversations import logs
from tests.agents_running import over, say, told, working

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
        self.addFilter(logs.Masking())

    def emit(self, record):
        self.lines.append(logs.Text().format(record))


@pytest.fixture
def lines():
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler.lines
    logging.getLogger().removeHandler(handler)


def stored():
    """Every text of every table."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            found += [str(value) for row in cursor.fetchall() for value in row]
    return "\n".join(found)


def test_planted_secrets_are_nowhere_in_the_record_or_the_log(lines, monkeypatch):
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
    clerk = Agent(
        name="Clerk",
        model=ScriptedModel([calls, ModelStep.raise_error(RuntimeError(" ; ".join(texts)))]),
        tools=[echo, fail],
    )
    with working(Team(name="t", agents=[clerk], entry=["Clerk"])):
        say()
        (run,) = over()

    assert run.status == "failed"
    assert len(told("tool_step")) == 200
    record, log = stored(), "\n".join(lines)
    assert [name for name, (secret, _) in SECRETS.items() if secret in record] == []
    assert [name for name, (secret, _) in SECRETS.items() if secret in log] == []


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
        say()
        (run,) = over()

    assert (run.status, run.reason) == ("failed", "context")
    assert "PLANTED" not in stored()
