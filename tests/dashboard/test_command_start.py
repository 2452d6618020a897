"""Commands answer at once: they import what they do, no page, no agent and no server."""

import os
import shutil
import signal
import subprocess
import sys

import pytest
from django.core.management import get_commands, load_command_class

from tests.support.live import ROOT, Server, prepared

HEAVY = (
    "agents",
    "openai",
    "dashboard.pages",
    "dashboard.api",
    "dashboard.urls",
    "dashboard.asgi",
    "jinja2",
    "uvicorn",
    "ag_ui",
    "pydantic_settings",
    "jsonschema",
    "markdown_it",
)
NEEDED = {"serve": {"uvicorn"}}  # its own
OURS = sorted(name for name, app in get_commands().items() if app in ("conversations", "agents_app", "dashboard"))

LOAD_EACH = f"""
import sys
import django
django.setup()
print("setup", *[module for module in {(*HEAVY, "cryptography")!r} if module in sys.modules])
from django.core.management import get_commands, load_command_class

for name in {OURS!r}:
    before = set(sys.modules)
    load_command_class(get_commands()[name], name)
    print(name, *[module for module in {HEAVY!r} if module in set(sys.modules) - before])
"""

RUN_EACH = f"""
import sys
from django.core.management import execute_from_command_line

for line in ("user anna --role viewer", "token robot --role agent", "signin-link anna", "tail nothing", "verify",
             "migrate --check"):
    try:
        execute_from_command_line(["manage.py", *line.split()])
    except SystemExit:
        print("error:", line)
    print("heavy:", line, *[module for module in {HEAVY!r} if module in sys.modules])
"""


@pytest.fixture
def server() -> Server:
    """A data directory whose tables are made; nothing runs there."""
    made = Server()
    shutil.copytree(prepared(), made.data_dir)
    return made


def python(server: Server, code: str) -> list[str]:
    """Run code in a new interpreter with a server's environment; return the lines it printed."""
    environment = server.env() | {"DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def cpu_of(server: Server, *arguments: str) -> float:
    """Return the CPU seconds that a new interpreter takes: the less of two tries."""
    took = []
    environment = server.env() | {"DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
        ) as client:
            _, status, used = os.wait4(client.pid, 0)
            client.returncode = status
        assert status == 0
        took.append(used.ru_utime + used.ru_stime)
    return min(took)


@pytest.mark.slow
def test_no_command_imports_pages_agents_or_a_server(server: Server) -> None:
    expected = dict.fromkeys(OURS, ())
    expected |= {name: tuple(heavy) for name, *heavy in map(str.split, python(server, LOAD_EACH))}

    assert {name: set(heavy) for name, heavy in expected.items() if heavy} == NEEDED


@pytest.mark.slow
def test_a_server_without_redis_imports_no_client_that_it_does_not_use(server: Server) -> None:
    """Each of these takes a tenth of a second of CPU: the SDK's tracing, switched off, makes an HTTP client first."""
    code = """
import sys
from dashboard.asgi import application
application.load_agents()
print(*[name for name in ("agents", "httpcore2", "redis", "opentelemetry.sdk") if name in sys.modules])
"""

    assert python(server, code) == ["agents"]


@pytest.mark.slow
def test_no_command_runs_the_checks_of_django() -> None:
    """They import every page, and `make check` and the tests run them."""
    commands = {name: load_command_class(get_commands()[name], name) for name in OURS}
    parsers = {name: command.create_parser("manage.py", name) for name, command in commands.items()}
    skipped = {name for name, parser in parsers.items() if parser.get_default("skip_checks") is True}

    assert [name for name in OURS if commands[name].requires_system_checks and name not in skipped] == []


@pytest.mark.slow
def test_commands_for_people_run_without_importing_pages(server: Server) -> None:
    lines = [line for line in python(server, RUN_EACH) if line.startswith(("heavy:", "error:"))]

    assert lines == [
        "heavy: user anna --role viewer",
        "heavy: token robot --role agent",
        "heavy: signin-link anna",
        "error: tail nothing",  # no server runs there
        "heavy: tail nothing",
        "heavy: verify",
        "heavy: migrate --check",
    ]


@pytest.mark.thorough
def test_command_takes_little_more_than_the_models(server: Server) -> None:
    """A ratio: it holds on a busy machine, and where nothing is kept compiled."""
    models = cpu_of(server, "-c", "import django; django.setup()")
    command = cpu_of(server, "manage.py", "verify")

    assert command < 1.8 * models


@pytest.mark.parametrize("where", ["django.core.management.execute_from_command_line", "django.setup"])
def test_a_command_that_is_interrupted_ends_by_the_signal_without_a_traceback(where) -> None:
    module = where.rpartition(".")[0]
    code = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests with it ignored
import {module}
{where} = lambda *_: os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["manage.py", "migrate"]
from dashboard.cli import main
main()
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert (ended.returncode, ended.stderr) == (-signal.SIGINT, "")
