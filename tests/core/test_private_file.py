"""A file is put in place whole; what is no file is not replaced by it."""

import os
import threading

from conversations.core import private_file


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()), daemon=True)
    reader.start()

    private_file.replace(pipe, b"content")

    reader.join(10)
    assert received == [b"content"]
    assert pipe.is_fifo()


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "file").write_bytes(b"before")
    (tmp_path / "link").symlink_to("file")

    private_file.replace(tmp_path / "link", b"after")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]
