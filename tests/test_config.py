"""What the environment may say, and what follows from it."""

import re

import pytest
from django.http.request import validate_host
from pydantic import ValidationError

from conversations.threads import ASKING
from dashboard import databases
from dashboard.config import Config, load
from tests.live import ROOT


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://board.example", "board.example"),
        ("https://board.example:8443", "board.example"),
        ("https://Board.Example", "board.example"),
        ("https://[::1]", "[::1]"),
        ("https://[2001:db8::7]:8443", "[2001:db8::7]"),
    ],
)
def test_the_host_of_an_origin_is_served(origin, host):
    hosts = Config(origins=origin).allowed_hosts

    assert hosts == [host]
    assert validate_host(host, hosts)
    assert not validate_host("evil.example", hosts)


@pytest.mark.parametrize("origin", ["board.example", "ftp://board.example", "https://", "https://a/b", "https://[::1"])
def test_what_is_no_origin_is_refused(origin):
    with pytest.raises(ValidationError, match="expected scheme"):
        Config(origins=origin)


def test_a_secret_that_can_be_tried_out_is_refused(monkeypatch):
    monkeypatch.setenv("SWITCHBOARD_SECRET_KEY", "x" * 31)

    with pytest.raises(SystemExit) as ended:
        load()

    assert "SWITCHBOARD_SECRET_KEY: expected at least 32 characters, got 31" in str(ended.value)
    assert "xxx" not in str(ended.value)
    assert Config(secret_key="x" * 32).secret_key == "x" * 32


def test_the_pool_has_a_connection_for_every_thread_that_may_ask_at_once():
    pools = re.compile(r"(?:DatabaseThreads|ThreadPoolExecutor)\((.*)\)")
    sources = [path for part in ("conversations", "dashboard", "agents_app") for path in (ROOT / part).rglob("*.py")]
    said = [words for path in sources for words in pools.findall(path.read_text()) if '"' in words]

    names = [re.search(r'"([a-z-]+)"', words) for words in said]
    assert len(said) >= 14
    assert {name[1] for name in names} <= set(ASKING)
    assert databases.postgresql("postgresql://h/d")["OPTIONS"]["pool"]["max_size"] == sum(ASKING.values())
