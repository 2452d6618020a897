"""What is compiled before a run is what its processes would write, and is not compiled again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compiling import compile_once

TEST = "def test_a_sum():\n    assert 1 + 1 == 2, 'told'\n"
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]


def written(path: Path) -> dict[str, tuple[bytes, int]]:
    """Return the compiled forms beside a file: their bytes, and when each was written."""
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in (path.parent / "__pycache__").iterdir()}


def run(path: Path) -> None:
    """Have pytest run a file in a process of its own, which may write compiled forms."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # a second of a processor, most of it hypothesis
    subprocess.run([*PYTEST, path.name], cwd=path.parent, env=environment, check=True, capture_output=True)


@pytest.mark.slow
def test_pytest_takes_the_form_of_a_test_as_its_own(tmp_path):
    path = tmp_path / "test_it.py"
    path.write_text(TEST)

    compile_once(path)
    ours = written(path)
    run(path)

    assert written(path) == ours
    next((tmp_path / "__pycache__").iterdir()).unlink()
    run(path)
    assert {name: form for name, (form, _) in written(path).items()} == {name: form for name, (form, _) in ours.items()}


def test_a_file_that_changed_is_compiled_again(tmp_path):
    for path in (tmp_path / "test_it.py", tmp_path / "page.py"):
        path.write_text(TEST)
        os.utime(path, (0, 0))  # Python's form goes by whole seconds
        compile_once(path)
        before = written(path)

        compile_once(path)
        assert written(path) == before
        path.write_text(TEST.replace("told", "told again"))
        compile_once(path)

        assert written(path).keys() == before.keys()
        assert written(path) != before
