"""What the environment may say, and what follows from it."""

import asyncio
import errno
import os
import re
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import uvicorn
from django.conf import settings
from django.http.request import validate_host
from pydantic import ValidationError

from conversations.core.db_threads import POOL_SIZE
from conversations.models.people import ROLES
from dashboard import databases
from dashboard.config import Config, load, variables
from dashboard.config_values import unknown_variables
from dashboard.server.draining_server import DrainingServer
from dashboard.stored_secret import secret_key
from tests.support.live import ROOT, free_port


@pytest.mark.parametrize("role", ["aprover", "approver,admin,auditor", "Admin", ""])
def test_a_role_that_nobody_can_have_is_refused(role):
    with pytest.raises(ValidationError, match="approval_role\n  Input should be 'viewer', 'operator', 'approver'"):
        Config.model_validate({"approval_role": role})


def test_each_role_can_be_notified():
    assert [Config.model_validate({"approval_role": role}).approval_role for role in ROLES] == list(ROLES)


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


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "board.example",
            "ftp://board.example",
            "https://",
            "https://a/b",
            "https://[::1",
            "https://a:",
            "https://a:0",
        ),
        *(
            "https://a:abc",
            "https://a:99999",
            "https://me@a",
            "https://a?b",
            "https://a#b",
            "https://a b",
            "https://a\\b",
            "https://*",
            "https://*.a",
            "https://.a",
            "https://a,b.",
            "https://2130706433",
        ),
    ],
)
def test_what_is_no_origin_is_refused(monkeypatch, origin):
    monkeypatch.setenv("SWITCHBOARD_ORIGINS", f"https://board.example,{origin}")

    with pytest.raises(SystemExit, match=r"SWITCHBOARD_ORIGINS: .*must be scheme"):
        load()


@pytest.mark.parametrize("value", ["inf", "nan"])
@pytest.mark.parametrize("name", ["stop_s", "run_s", "response_wait_s", "approval_s"])
def test_a_time_that_is_no_number_is_refused(monkeypatch, name, value):
    monkeypatch.setenv(f"SWITCHBOARD_{name.upper()}", value)

    with pytest.raises(SystemExit, match=f"SWITCHBOARD_{name.upper()}: .*finite"):
        load()


@pytest.mark.parametrize("name", ["approval_s", "session_days", "session_items"])
def test_a_number_that_no_column_holds_is_refused(monkeypatch, name):
    """Else the server starts, and each request for approval or each run fails."""
    monkeypatch.setenv(f"SWITCHBOARD_{name.upper()}", str(10**22))

    with pytest.raises(SystemExit, match=f"SWITCHBOARD_{name.upper()}: .*less than or equal"):
        load()


def test_a_secret_that_can_be_tried_out_is_refused(monkeypatch):
    monkeypatch.setenv("SWITCHBOARD_SECRET_KEY", "x" * 31)

    with pytest.raises(SystemExit) as ended:
        load()

    assert "SWITCHBOARD_SECRET_KEY: must be at least 32 characters; got 31" in str(ended.value)
    assert "xxx" not in str(ended.value)
    assert Config(secret_key="x" * 32).secret_key == "x" * 32


@pytest.mark.parametrize(
    ("url", "host", "name"),
    [
        ("postgresql://u:p@db.example:5432/board", "db.example", "board"),
        ("postgresql:///board?host=/var/run/postgresql", "/var/run/postgresql", "board"),
        ("postgresql:///board?host=db.example&port=5433", "db.example", "board"),
        ("postgresql:///board", "", "board"),
    ],
)
def test_every_form_of_libpqs_addresses_is_taken(url, host, name):
    database = databases.postgresql(Config(database_url=url, secret_key="x" * 32).database_url)

    assert (database["HOST"], database["NAME"]) == (host, name)


@pytest.mark.parametrize("url", ["mysql://h/d", "postgresql://h", "h/d", "postgresql://[h/d"])
def test_an_address_of_another_kind_or_without_a_database_is_refused(url):
    with pytest.raises(ValidationError, match=r"must be postgresql://|must be an address that"):
        Config(database_url=url, secret_key="x" * 32)


ASK_NO_DATABASE = {"alerts-resolver", "telemetry"}  # one resolves names and sends mail, one decodes


def test_the_pool_has_a_connection_for_every_thread_that_may_ask_at_once():
    pools = re.compile(r"(?:DatabaseThreads|ThreadPoolExecutor)\((.*)\)")
    sources = [path for part in ("conversations", "dashboard", "agents_app") for path in (ROOT / part).rglob("*.py")]
    texts = [words for path in sources for words in pools.findall(path.read_text()) if '"' in words]

    names = [re.search(r'"([a-z-]+)"', words) for words in texts]
    assert len(texts) >= 14
    assert {name[1] for name in names} - ASK_NO_DATABASE <= set(POOL_SIZE)
    assert databases.postgresql("postgresql://h/d")["OPTIONS"]["pool"]["max_size"] == sum(POOL_SIZE.values())


@pytest.mark.parametrize("stop_s", [0, 5, 60, 600])
def test_a_server_ends_no_tool_that_may_go_on_while_it_stops(monkeypatch, stop_s):
    runs_end, limits = stop_s / 2 + 2 * max(1, stop_s / 2), []

    async def waited(drain, limit):
        limits.append(limit)
        await drain

    async def nothing(*args):
        """Do nothing."""

    def timer(after, *given):
        limits.append(after)
        return SimpleNamespace(start=lambda: None)

    monkeypatch.setattr(settings.CONFIG, "stop_s", stop_s)
    monkeypatch.setattr("dashboard.server.draining_server.threading.Timer", timer)
    monkeypatch.setattr("dashboard.server.draining_server.asyncio.wait_for", waited)
    monkeypatch.setattr("uvicorn.Server.shutdown", nothing)
    asyncio.run(DrainingServer(uvicorn.Config(nothing), nothing, nothing).shutdown())

    end_within, drain_within = limits
    assert drain_within >= runs_end + 2
    assert end_within == drain_within + 20


def test_a_server_says_that_it_runs_once_its_port_answers(monkeypatch):
    async def answer(scope, receive, send):
        """Answer nothing."""

    async def drain():
        """Have nothing to write."""

    monkeypatch.setattr(
        "dashboard.server.draining_server.threading.Timer", lambda *_: SimpleNamespace(start=lambda: None)
    )
    port, peers = free_port(), []

    async def greet():
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            peers.append(connection.getpeername())
        server.end()

    server = DrainingServer(uvicorn.Config(answer, port=port, lifespan="off", log_config=None), drain, greet)
    asyncio.run(server.serve())

    assert (peers, server.failure) == ([("127.0.0.1", port)], None)


def test_a_server_that_cannot_say_that_it_runs_ends(monkeypatch):
    async def answer(scope, receive, send):
        """Answer nothing."""

    async def drain():
        """Have nothing to write."""

    async def greet():
        raise OSError("no terminal")

    monkeypatch.setattr(
        "dashboard.server.draining_server.threading.Timer", lambda *_: SimpleNamespace(start=lambda: None)
    )
    config = uvicorn.Config(answer, port=free_port(), lifespan="off", log_config=None)
    server = DrainingServer(config, drain, greet)
    asyncio.run(server.serve())

    assert str(server.failure) == "no terminal"


def test_a_file_of_prices_is_read_at_the_start(monkeypatch, tmp_path):
    file = tmp_path / "prices.json"
    monkeypatch.setenv("SWITCHBOARD_PRICES", str(file))

    file.write_text('{"house": {"input": 1, "output": 2}}')
    assert load().price_table["house"].output == 2
    file.write_text('{"house": {"input": 1}}')
    with pytest.raises(SystemExit, match=r"SWITCHBOARD_PRICES: .*'house' must be"):
        load()


@pytest.mark.parametrize("name", ["data_dir", "signing_key", "prices", "samples_dir", "email_from"])
def test_an_empty_path_or_sender_is_one_that_is_not_set(name):
    given, unset = Config.model_validate({name: ""}), Config()

    assert getattr(given, name) == getattr(unset, name)
    assert given.signing_key_path == unset.signing_key_path


@pytest.mark.parametrize("name", ["data_dir", "signing_key", "samples_dir"])
def test_a_path_does_not_depend_on_the_working_directory(name):
    assert getattr(Config.model_validate({name: "~/here"}), name) == Path.home() / "here"
    assert getattr(Config.model_validate({name: "here"}), name) == Path.cwd() / "here"


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("SWITCHBOARD_EMAIL_URL", "smtp://user:pa#ssw0rd@mail.example", "smtp://host[:port]"),
        ("SWITCHBOARD_EMAIL_URL", "smtp://user:pa/ssw0rd@mail.example", "smtp://host[:port]"),
        ("SWITCHBOARD_EMAIL_URL", "smtp://mail.example:x", "smtp://host[:port]"),
        ("SWITCHBOARD_REDIS_URL", "redis://:pa#ssw0rd@bus.example/0", "redis://host[:port]/number"),
        ("SWITCHBOARD_OTLP_ENDPOINT", "http://collector.example:99999", "http://host[:port]"),
        ("OPENAI_BASE_URL", "http://[::1", "http://host[:port]"),
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_its_password(monkeypatch, variable, value, expected):
    monkeypatch.setenv(variable, value)

    with pytest.raises(SystemExit) as ended:
        load()

    message = f"Invalid settings:\n  {variable}: must be {expected}; a user and a password are percent-encoded"
    assert str(ended.value) == message


def test_a_secret_is_generated_once_however_many_start_together(tmp_path):
    start = threading.Barrier(8)

    def begin(_: int) -> str:
        start.wait(10)
        return secret_key(Config(data_dir=tmp_path))

    with ThreadPoolExecutor(8) as pool:
        secrets = set(pool.map(begin, range(8)))

    assert secrets == {(tmp_path / "secret").read_text()}
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_secret_cut_short_ends_the_start_and_names_the_file(tmp_path):
    (tmp_path / "secret").touch()

    with pytest.raises(SystemExit, match=rf"{tmp_path}/secret must contain at least 32 characters; it has 0\."):
        secret_key(Config(data_dir=tmp_path))


def test_a_full_disk_leaves_no_secret_cut_short(tmp_path, monkeypatch):
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)

    with pytest.raises(OSError, match="No space left"):
        secret_key(Config(data_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_variable_that_is_no_setting_is_named_with_the_setting_that_it_resembles():
    names = (
        "SWITCHBOARD_DATA",
        "SWITCHBOARD_DATA_DIR",
        "SWITCHBOARD_COLOUR",
        "SWITCHBOARD_TOKEN",
        "OPENAI_API_KEY",
        "HOME",
    )

    assert unknown_variables(names, variables()) == [
        "Warning: there is no setting SWITCHBOARD_COLOUR",
        "Warning: there is no setting SWITCHBOARD_DATA; did you mean SWITCHBOARD_DATA_DIR?",
    ]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("STOP_S", "soon", "must be a number; got 'soon'"),
        ("STOP_S", "", "must be a number; got ''"),
        ("POLLS_PER_PRINCIPAL", "0", "must be greater than or equal to 1; got '0'"),
        ("OTLP_CONTENT", "perhaps", "must be a boolean; got 'perhaps'"),
        ("ORIGINS", "https://a,here", "must be scheme://host[:port], comma-separated; got 'here'"),
        ("ALERT_HOSTS", "a,b/c", "must be hosts, addresses or networks; got 'b/c'"),
        ("WITNESSES", "x", "must be file:/PATH, command:WORDS, timestamp:URL or a URL; got 'x'"),
        ("EMAIL_FROM", "x", "must be an e-mail address, or a name and <an address>; got 'x'"),
        ("EMAIL_FROM", "x@y\nBcc: z@y", "must be an e-mail address, or a name and <an address>; got 'x@y\\nBcc: z@y'"),
        ("EMAIL_FROM", "x@y, z@y", "must be an e-mail address, or a name and <an address>; got 'x@y, z@y'"),
        ("SIGNING_KEY", "/", "must be a file, and it is a directory; got '/'"),
        ("SECRET_KEY", " " * 40, "must be at least 32 characters; got 0"),
        ("REDIS_URL", "redis://:hush@h:6379/x", "must be redis://host[:port]/number: the database is a number"),
        ("REDIS_URL", "redis://h/1/2", "must be redis://host[:port]/number: the database is a number"),
        ("REDIS_URL", "redis://h?db=x", "must be redis://host[:port]/number: the database is a number"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(monkeypatch, name, value, expected):
    monkeypatch.setenv(f"SWITCHBOARD_{name}", value)

    with pytest.raises(SystemExit) as ended:
        load()

    assert str(ended.value) == f"Invalid settings:\n  SWITCHBOARD_{name}: {expected}"


def test_reading_a_setting_searches_no_model():
    calls = []

    def note(frame, event, _argument):
        calls.append(f"{frame.f_code.co_qualname} {event}")

    settings.CONFIG  # noqa: B018  # Django has it from now on
    sys.setprofile(note)
    try:
        settings.CONFIG  # noqa: B018
    finally:
        sys.setprofile(None)

    assert not [call for call in calls if call.startswith("BaseModel.")]


@pytest.mark.parametrize(
    "url", ["redis://h", "redis://h/", "redis://h/0", "rediss://u:p@[::1]:6380/15", "redis://h?db=3"]
)
def test_each_database_of_redis_can_be_named(url):
    assert Config(redis_url=url).redis_url == url


@pytest.mark.parametrize("sender", ["board@a.example", "switchboard@localhost", "The Board <board@a.example>"])
def test_each_form_of_a_sender_is_taken(sender):
    assert Config(email_from=sender).email_from == sender
