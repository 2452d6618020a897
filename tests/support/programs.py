"""Programs of Python in processes of their own, forked with the libraries imported: that is most of what a start costs.

Their arguments are `-c` with code and what follows it, `-m` with a module, or those of `manage.py`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from tests.support.forking import Forked, bare_nursery, nursery
from tests.support.live import ROOT


class Ended(NamedTuple):
    """A program that has ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def run(arguments: Sequence[str], env: Mapping[str, str], within: float = 120) -> Ended:
    """Run a program to its end, for so many seconds at most."""
    with tempfile.TemporaryDirectory(prefix="switchboard-program-") as folder:
        output, errors = Path(folder, "stdout"), Path(folder, "stderr")
        code = _fork(arguments, env, output, errors).wait(within)
        return Ended(code, output.read_text(), errors.read_text())


@contextmanager
def printing(arguments: Sequence[str], env: Mapping[str, str] = os.environ) -> Iterator[tuple[Forked, TextIO]]:
    """Run a program in the block, with what it prints; it is killed at the end."""
    with tempfile.TemporaryDirectory(prefix="switchboard-program-") as folder:
        pipe = Path(folder, "stdout")
        os.mkfifo(pipe)
        program = _fork(arguments, env, pipe, Path(os.devnull))
        try:
            with pipe.open() as output:
                yield program, output
        finally:
            program.kill()
            program.wait(60)


def _fork(arguments: Sequence[str], env: Mapping[str, str], stdout: Path, stderr: Path) -> Forked:
    home = bare_nursery if arguments[0] in ("-c", "-m") else nursery
    return home(ROOT).fork(arguments, env=env, stdout=stdout, stderr=stderr)
