"""Rules about the project's own files, one pass over all of them: `python -m tests.checks`, run by `make check`.

A rule takes the project's folder and yields what breaks it, as `path:line: what` or `path: what`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.checks import event_types, names, python_files, repository, static_files, templates

Rule = Callable[[Path], Iterator[str]]

RULES: tuple[Rule, ...] = (
    *python_files.RULES,
    *names.RULES,
    *event_types.RULES,
    *static_files.RULES,
    *templates.RULES,
    *repository.RULES,
)


def problems(root: Path) -> Iterator[str]:
    """Yield what breaks any rule, with the rule's name in front."""
    for rule in RULES:
        for problem in rule(root):
            yield f"{rule.__name__}: {problem}"
