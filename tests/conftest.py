"""What every test has: plain addresses of files, quick passwords, the cast, counts of its own; browser tests last."""

import gc
import math
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.contrib.contenttypes.management import create_contenttypes
from django.db import connection
from django.db.models.signals import post_migrate
from django.test import Client, TransactionTestCase, override_settings
from pytest_django import DjangoDbBlocker

from conversations.access.accounts.people import create_person
from conversations.core.principals import SYSTEM
from conversations.models import User
from conversations.rendering import agent_colors
from tests.browser import chromium  # noqa: F401  # a fixture of every test: a run has one playwright
from tests.support import databases, teamwork, tiers
from tests.support.cast import PASSWORD, cast, client_of
from tests.support.doors_served import callers, door_server  # noqa: F401  # one server for all tests of its doors
from tests.support.grids import forget
from tests.support.live import Server
from tests.support.preloading import share_templates
from tests.support.recorders import bus, either, nursery, place, postgres_nursery, redis_server  # noqa: F401  # fixtures
from tests.support.services import PostgresServer, running
from tests.support.shared_servers import writers

# An example may take as long as a busy machine takes for it; a test has its own bound.
hypothesis.settings.register_profile("no deadline", deadline=None)
hypothesis.settings.load_profile("no deadline")

PLAIN = {
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
}


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:  # wraps pytest-django's
    """Wait for no disk: this process's own database outlives no crash. Servers have the product's settings."""
    if connection.vendor == "sqlite":
        connection.settings_dict["OPTIONS"]["init_command"] += "PRAGMA synchronous=OFF;"
        databases.share_tables(Path(os.environ["SWITCHBOARD_TEST_SHARED"]))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:  # wraps theirs
    """Free what ended threads left of their connections: PostgreSQL drops no database that a session still uses."""
    yield
    with django_db_blocker.unblock():
        databases.ensure_only_session()


def pytest_sessionstart() -> None:
    """Set up, once and without fixtures that each test would ask for: plain addresses of static files (`test_static`
    tests those that pages get); quick hashes of passwords, slow on purpose; compiled templates; a quicker way to empty
    a database; no row per model and permission, which Django writes for each database and no test reads.
    """
    override_settings(STORAGES=PLAIN, PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]).enable()
    share_templates(os.environ["SWITCHBOARD_TEST_SHARED"])
    TransactionTestCase._fixture_teardown = lambda _: databases.empty()  # type: ignore[method-assign]
    assert post_migrate.disconnect(create_contenttypes)
    assert post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")


def pytest_runtest_setup() -> None:
    """Forget what earlier tests left in this process, and look for no colours in the middle of a test that does not
    ask.
    """
    forget()
    agent_colors._looked_at = math.inf


@pytest.fixture
def team() -> dict[str, User]:
    """Make everybody, by role."""
    return cast()


@pytest.fixture
def people(team: dict[str, User]) -> dict[str, User]:
    """The same, where a team is one of agents."""
    return team


@pytest.fixture
def otto(team: dict[str, User]) -> User:
    """The operator."""
    return team["operator"]


@pytest.fixture
def browsers(team: dict[str, User]) -> dict[str, Client]:
    """A browser of each."""
    return {role: client_of(user) for role, user in team.items()}


@pytest.fixture
def browser(team: dict[str, User]) -> Client:
    """A browser of the viewer's."""
    return client_of(team["viewer"])


@pytest.fixture
def admin(team: dict[str, User]) -> Client:
    """A browser of the admin's."""
    return client_of(team["admin"])


@pytest.fixture
def town() -> None:
    """Have the town hall served, whose agents stand still."""
    teamwork.team()


@pytest.fixture
def maria(team: dict[str, User]) -> User:
    """Make a viewer who has a password."""
    return create_person(SYSTEM, "maria", ["viewer"], password=PASSWORD)


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresServer]:
    """A PostgreSQL server of a file's own."""
    with running(PostgresServer()) as server:
        assert isinstance(server, PostgresServer)
        yield server


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests of the client library; each takes topics of its own."""
    server = Server(tmp_path_factory.mktemp("served") / "data", SWITCHBOARD_TEAMS="")  # the tests are the agents
    yield writers.share("the client library", server.start())
    server.terminate()


@pytest.fixture(scope="session")
def served_token(served: Server) -> str:
    """A token of that server that may publish as anybody."""
    return served.token()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Look for garbage neither while thousands of tests are collected nor, later, among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a file that has nothing for this run; None has others decide."""
    return tiers.is_left_out(collection_path) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put files that drive a browser last: from then on playwright's loop runs in this thread, `asyncio.run` cannot.

    A file is run as a whole, so one test of it that needs none does not bring it forward. The longest of them begin
    first, so that none is left alone at the end.
    """
    databases.choose(config, items)
    tiers.choose(config, items)
    driving = {item.path for item in items if "chromium" in getattr(item, "fixturenames", ())}
    sizes: Counter[Path] = Counter()  # of the code of a file's chosen tests: how long they take, roughly
    for item in items:
        sizes[item.path] += len(item.function.__code__.co_code) if isinstance(item, pytest.Function) else 0
    items.sort(key=lambda item: -sizes[item.path] if item.path in driving else -math.inf)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out files; None has xdist decide where something else was asked for."""
    from tests.support.scheduling import ByFile  # it needs xdist, which one may run without

    return ByFile(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Look what a file wrote before its last test is over, while the shared servers run."""
    if nextitem is None or nextitem.path != item.path:
        writers.note(item.nodeid.partition("::")[0])
    return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand what one of several processes noted to the one that tells it, which fails where two files clash."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(databases.left_out)
        session.config.workeroutput["writers"] = writers.noted()
    elif writers.clashes():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take it: each process collects all tests, so one's count is everybody's."""
    output = getattr(node, "workeroutput", {})
    databases.left_out.update(Counter(output.get("left_out", {})) - databases.left_out)
    writers.merge(output.get("writers", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which database it was, how much the long proofs did, and which files clash."""
    for line in writers.clashes():
        terminalreporter.write_line(f"FAILED {line}", red=True)
    for line in databases.report():
        terminalreporter.write_line(line)
    for report in (report_ for some in terminalreporter.stats.values() for report_ in some):
        if getattr(report, "when", "") == "teardown":
            for name, value in report.user_properties:
                terminalreporter.write_line(f"{report.nodeid}: {name}: {value}")
