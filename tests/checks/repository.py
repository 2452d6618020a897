"""What is under version control, and what the project depends on."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# What ties a checkout to one machine: a package registry, an index, a folder outside of the project.
FOREIGN = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|jsdelivr|unpkg|artifactory)\b|index-url|find-links|https?://[\w.-]*packages\b"
    r"|(?<![\w.~<>/*-])/(?:work|root|tmp|home|Users)/\w",
    re.IGNORECASE,
)
MAY_SAY = {"tests/checks/repository.py", "tests/dashboard/test_checks.py"}  # they name them to forbid them
MADE_HERE = {"uv.lock", ".venv", "data", "build", "dist", "node_modules", "__pycache__"}
LOCKED = re.compile(r"([a-z0-9-]+)==[\w.]+( ; .+)?")


def tracked(root: Path) -> list[Path]:
    """List the files under version control. Raises CalledProcessError where there is none."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    return [root / name for name in done.stdout.split("\0") if name and (root / name).exists()]


def no_foreign_places(root: Path) -> Iterator[str]:
    """No file names a package registry or a folder of one machine."""
    for path in tracked(root):
        if str(where := path.relative_to(root)) not in MAY_SAY:
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                if FOREIGN.search(line):
                    yield f"{where}:{number}: {line.strip()[:120]}"


def nothing_generated(root: Path) -> Iterator[str]:
    """What is made here is not under version control."""
    for path in tracked(root):
        if MADE_HERE & set((where := path.relative_to(root)).parts):
            yield f"{where}: is made here"


def _project(root: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return project


def dependencies_are_explained(root: Path) -> Iterator[str]:
    """Each dependency has its reason behind it."""
    project, lines = _project(root), (root / "pyproject.toml").read_text().splitlines()
    for name in [*project["dependencies"], *project["optional-dependencies"]["dev"]]:
        if not any(f'"{name}",' in line and re.search(r",\s+# \w", line) for line in lines):
            yield f"pyproject.toml: {name} does not say what it is for"


def locks_are_whole(root: Path) -> Iterator[str]:
    """Lock files hold every dependency, nothing but versions, and agree."""
    project = _project(root)
    wanted = {"runtime": project["dependencies"], "dev": project["optional-dependencies"]["dev"]}
    lines = {lock: (root / "requirements" / f"{lock}.lock").read_text().splitlines() for lock in wanted}
    for lock, dependencies in wanted.items():
        file, matches = f"requirements/{lock}.lock", [LOCKED.fullmatch(line) for line in lines[lock]]
        yield from (f"{file}: {line}" for line, match in zip(lines[lock], matches, strict=True) if not match)
        locked = {match[1] for match in matches if match}
        names = [re.split(r"[^\w-]", dependency, maxsplit=1)[0].lower() for dependency in dependencies]
        yield from (f"{file}: {name} is missing" for name in names if name not in locked)
    yield from (f"requirements/dev.lock: lacks {line}" for line in lines["runtime"] if line not in set(lines["dev"]))


RULES = (no_foreign_places, nothing_generated, dependencies_are_explained, locks_are_whole)
