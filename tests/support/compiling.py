"""Compile once what every process of a test run reads: `make test` does this first, else each of its four would at the
same moment. `python -m tests.support.compiling`, from the repository; on a fresh clone it is ten seconds of a processor
for each. A file whose compiled form is up to date is left as it is.
"""

from __future__ import annotations

import compileall
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType

from _pytest.assertion import rewrite
from hypothesis.internal.constants_ast import constants_from_module

PRODUCT = ("dashboard", "conversations", "agents_app", "switchboard")


class _Plain:
    """What pytest asks of its configuration and of its state while it rewrites a file."""

    def getini(self, _: str) -> bool:
        """Return what is so unless `pyproject.toml` says otherwise: a passing assertion is told to nobody."""
        return False

    def trace(self, _: str) -> None:
        """Tell nobody."""


def compile_once(path: Path) -> None:
    """Write the form of a file that its readers look for: pytest's of a test, Python's of another; of the product also
    the constants from which hypothesis draws."""
    if path.name.startswith("test_") or path.name == "conftest.py":
        _rewrite(path)
        return
    compileall.compile_file(path, quiet=2)
    if "tests" not in path.parts:
        module = ModuleType(path.stem)
        module.__file__ = str(path)
        constants_from_module(module)


def _rewrite(path: Path) -> None:
    """Write a test's compiled form, in which `assert` tells what it compared, where pytest reads it."""
    compiled = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(path, compiled) is None:
        compiled.parent.mkdir(exist_ok=True)
        source_hash, code = rewrite._rewrite_test(path, _Plain())  # type: ignore[arg-type]
        rewrite._write_pyc(_Plain(), code, source_hash, compiled)  # type: ignore[arg-type]


def _files() -> Iterator[Path]:
    for folder in (*PRODUCT, "tests"):
        yield from Path.cwd().joinpath(folder).rglob("*.py")


def main() -> None:
    """Compile all files, on every processor."""
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_once, _files(), chunksize=16))


if __name__ == "__main__":
    main()
