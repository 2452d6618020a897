"""Loaded by pytest before anything reads settings: a data directory of this run's own, removed at its end. With
`-n` each of its processes has one, and a PostgreSQL cluster too; `SWITCHBOARD_TEST_SHARED` is a folder of them all.

`SWITCHBOARD_TEST_DATABASE=postgresql` runs on a PostgreSQL cluster of this run's own; `tests.support.databases` says
which tests.
"""

import atexit
import os
import shutil
import tempfile


def _start_postgresql() -> None:
    """Start a cluster that need not outlive a crash, and have it removed at the end of this process."""
    from tests.support.services import PostgresServer

    quick = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off", "max_wal_size=4GB")
    server = PostgresServer(*(word for option in quick for word in ("-c", option)))
    atexit.register(server.close)
    server.start()
    os.environ["SWITCHBOARD_DATABASE_URL"] = server.url
    os.environ["SWITCHBOARD_SECRET_KEY"] = "a secret of this run's own, for as long as it runs"


if "SWITCHBOARD_TEST_SHARED" not in os.environ:
    SHARED = os.environ["SWITCHBOARD_TEST_SHARED"] = tempfile.mkdtemp(prefix="switchboard-test-shared-")
    atexit.register(shutil.rmtree, SHARED, ignore_errors=True)
ME = os.environ.get("PYTEST_XDIST_WORKER", "alone")  # what it starts knows by this that there is a directory already
if os.environ.get("SWITCHBOARD_TEST_RUN") != ME:
    HOME = tempfile.mkdtemp(prefix="switchboard-test-")
    atexit.register(shutil.rmtree, HOME, ignore_errors=True)
    os.environ["SWITCHBOARD_DATA_DIR"] = HOME
    os.environ["SWITCHBOARD_TEST_RUN"] = ME
    if os.environ.get("SWITCHBOARD_TEST_DATABASE") == "postgresql":
        _start_postgresql()
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # playwright's sync API runs a loop in the test's thread
for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SWITCHBOARD_MODEL"):
    os.environ.pop(name, None)  # tests say which server they mean; none is OpenAI's
