"""A crash of the interpreter is told: its stacks are kept, and the next start says so in the log and on a page."""

import os
import shutil
import signal
import urllib.request

import pytest

from conversations.core import crash_reports
from tests.support.live import Server, prepared, until


@pytest.fixture
def server():
    made = Server()
    shutil.copytree(prepared(), made.data_dir)
    yield made
    made.kill()


@pytest.mark.slow
@pytest.mark.crash
def test_a_crash_leaves_its_stacks_and_is_told_after_the_next_start(server: Server) -> None:
    token = server.token()
    server.environment = {"SWITCHBOARD_FAILPOINT": "after-commit:segfault"}  # in the thread that holds the interpreter
    server.start()
    with pytest.raises(ConnectionError):
        server.publish(token, "chat:crash", {"conversation_id": "crash", "content": "the last"})
    assert server.process.wait(60) == -signal.SIGSEGV

    (left,) = (server.data_dir / crash_reports.FOLDER).iterdir()
    stacks = left.read_text()
    assert stacks.startswith("Fatal Python error: Segmentation fault")
    assert "uvicorn" in stacks  # the main thread's
    assert "failpoint" in stacks  # the one that crashed
    assert left.stat().st_mode & 0o077 == 0
    server.environment = {}
    server.start()
    words = f"Fatal Python error: Segmentation fault). Stack traces: crashes/{left.name}"
    assert words in server.output()
    page = until(lambda: page_with(server, token, left.name), within=60, what="the crash on the operations page")
    assert "serve crashed at" in page


def page_with(server: Server, token: str, words: str) -> str:
    request = urllib.request.Request(f"{server.url}/ops/", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        page = answer.read().decode()
    return page if words in page else ""


@pytest.mark.thorough
@pytest.mark.crash
def test_a_server_that_is_killed_or_stopped_leaves_no_crash(server: Server) -> None:
    for end in (server.kill, server.terminate):
        server.start()
        end()
    server.start()

    assert "crashed" not in server.output()
    (own,) = (server.data_dir / crash_reports.FOLDER).iterdir()
    assert own.stat().st_size == 0


def test_the_files_of_crashes_are_bounded(tmp_path) -> None:
    folder = tmp_path / crash_reports.FOLDER
    folder.mkdir()
    for number in range(30):
        (folder / f"serve-{number}-1.txt").write_text("Fatal Python error: Aborted\n")

    crashes = crash_reports._earlier(folder)

    assert len(crashes) == len(list(folder.iterdir())) == crash_reports.MAX_REPORTS
    os.utime(next(folder.iterdir()), (0, 0))
    assert len(crash_reports._earlier(folder)) == crash_reports.MAX_REPORTS - 1  # an old one is kept, not told
