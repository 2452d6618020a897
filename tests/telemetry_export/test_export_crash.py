"""SIGKILL of the server around the collector's answer: every run arrives, and what arrives twice is the same."""

import pytest

from tests.support.alerting import receiving
from tests.support.collecting import Collector
from tests.support.live import Server, until
from tests.support.tiers import variants

SEED = "from tests.support.collecting import ran\nfor n in range({}, {}): print(ran(f'c{{n}}'))"


@pytest.mark.slow
@pytest.mark.parametrize("where", variants(["after-export", "before-export"]))
def test_a_kill_around_the_answer_loses_no_run(tmp_path, where):
    with receiving(Collector()) as collector:
        environment = {"SWITCHBOARD_OTLP_ENDPOINT": collector.endpoint, "SWITCHBOARD_TEAMS": ""}
        server = Server(tmp_path / "data", "--no-demo", **environment).start()
        until(lambda: place_of(server), what="the export to begin")
        server.terminate()
        runs = server.command("shell", "--no-imports", "-c", SEED.format(0, 3)).split()

        server.environment["SWITCHBOARD_FAILPOINT"] = f"{where}:1"
        server.launch()
        until(lambda: server.process.poll() is not None, what="the server to be killed")
        before = collector.runs()
        del server.environment["SWITCHBOARD_FAILPOINT"]
        server.start()
        until(lambda: set(runs) <= set(collector.runs()), what="the runs to arrive")
        server.terminate()

        assert before == ({} if where == "before-export" else dict.fromkeys(runs, 1))
        again = 1 if where == "before-export" else 2
        assert collector.runs() == dict.fromkeys(runs, again)
        spans = collector.spans()
        assert len({span.id for span in spans}) * again == len(spans) == 9 * again


def place_of(server):
    with server.database() as database:
        return database.execute("SELECT value FROM conversations_meta WHERE name='telemetry_export'").fetchone()
