"""Files that are written whole, and what stands at their path before: a device, a pipe or a link stays what it is."""

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from conversations.core import private_file


def test_a_pipe_stays_one_and_its_reader_gets_the_content(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()

    with private_file.written_whole(pipe) as file:
        file.write(b"content")

    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(10)
    assert received == [b"content"]


def test_a_terminal_stays_a_device(tmp_path):
    ours, theirs = os.openpty()
    try:
        (link := tmp_path / "terminal").symlink_to(os.ttyname(theirs))
        private_file.replace(link, b"content")
        assert link.is_char_device()
        assert os.read(ours, 100) == b"content"
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_stays_one_and_the_file_it_names_is_replaced(tmp_path, is_there):
    target, link = tmp_path / "elsewhere" / "file", tmp_path / "link"
    target.parent.mkdir()
    if is_there:
        target.write_bytes(b"before")
    link.symlink_to(target)

    private_file.replace(link, b"content")

    assert link.is_symlink()
    assert target.read_bytes() == b"content"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_file_behind_a_link_is_as_before_when_writing_fails(tmp_path):
    target, link = tmp_path / "file", tmp_path / "link"
    target.write_bytes(b"before")
    link.symlink_to(target)

    with suppress(RuntimeError), private_file.written_whole(link) as file:
        file.write(b"half")
        raise RuntimeError

    assert target.read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_what_a_shell_adds_to_stays(tmp_path):
    (tmp_path / "log").write_bytes(b"before\n")
    with (tmp_path / "log").open("ab") as log:
        private_file.replace(Path(f"/dev/fd/{log.fileno()}"), b"content")

    assert (tmp_path / "log").read_bytes() == b"before\ncontent"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="the system has no memory for files below /dev")
def test_a_file_below_dev_is_replaced_whole():
    with TemporaryDirectory(dir="/dev/shm") as folder:
        private_file.replace(Path(folder) / "file", b"before")
        private_file.replace(Path(folder) / "file", b"after")

        assert (Path(folder) / "file").read_bytes() == b"after"


def test_links_that_end_nowhere_are_refused(tmp_path):
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")

    with pytest.raises(OSError, match="symbolic links"):
        private_file.replace(tmp_path / "one", b"content")
