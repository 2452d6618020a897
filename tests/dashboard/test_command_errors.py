"""What a command says of a path that the disk refuses."""

import errno
import os

import pytest

from dashboard.command_errors import sentence


@pytest.mark.parametrize("code", [errno.ENAMETOOLONG, errno.ELOOP])
def test_a_path_that_no_file_can_have_is_named(code):
    assert sentence(OSError(code, os.strerror(code), "/x")) == (
        f"/x: {os.strerror(code)}. Use another path, or set SWITCHBOARD_DATA_DIR to another directory."
    )
