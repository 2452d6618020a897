"""The rules of the house that a machine can watch: sizes, docstrings, what no file may say, settings, migrations."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core import checks
from django.core.management import call_command

from tests.live import ROOT

PACKAGES = ("dashboard", "conversations", "agents_app", "switchboard")
PYTHON = sorted(p for folder in PACKAGES for p in (ROOT / folder).rglob("*.py"))
WRITTEN = [path for path in PYTHON if not {"migrations", "build"} & set(path.parts)]
LONGEST_FILE, LONGEST_FUNCTION = 400, 40  # lines

# What ties a checkout to one machine: a package registry, an index, a folder outside of the project.
FOREIGN = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|jsdelivr|unpkg|artifactory)\b|index-url|find-links|https?://[\w.-]*packages\b"
    r"|(?<![\w.~<>/*-])/(?:work|root|tmp|home|Users)/\w",
    re.IGNORECASE,
)
MAY_SAY = {"tests/test_house.py"}  # it names them to forbid them
# Warnings of `check --deploy` that we accept, and why.
ACCEPTED = {
    "security.W001": "our own middleware sets the headers (dashboard/middleware.py, tests/test_headers.py)",
    "security.W002": "Content-Security-Policy says frame-ancestors 'none'",
    "security.W012": "plain HTTP on 127.0.0.1 is the first deployment; a secure cookie would not come back",
    "security.W016": "as W012",
}


class Defined(NamedTuple):
    """A function or class, and what it stands in."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    is_public: bool


def defined(tree: ast.AST, is_public: bool = True) -> Iterator[Defined]:
    """Walk functions and classes; public is what stands in nothing private or local. Django's `Meta` has no story."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            here = is_public and not node.name.startswith("_") and node.name != "Meta"
            yield Defined(node, here)
            yield from defined(node, here and isinstance(node, ast.ClassDef))
        else:
            yield from defined(node, is_public)


def name(path: Path) -> str:
    """Name a file in the list of tests."""
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    """List the files under version control; where there is none, this cannot be told."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no git checkout")
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


def test_no_file_names_a_registry_or_a_folder_of_one_machine(tracked: list[Path]) -> None:
    said = [
        f"{name(path)}:{number}: {line.strip()[:120]}"
        for path in tracked
        if name(path) not in MAY_SAY
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if FOREIGN.search(line)
    ]

    assert said == []


def test_what_is_made_here_is_not_under_version_control(tracked: list[Path]) -> None:
    made = {"uv.lock", ".venv", "data", "build", "dist", "node_modules", "__pycache__"}

    assert [name(path) for path in tracked if made & set(path.relative_to(ROOT).parts)] == []


def test_pattern_finds_what_it_forbids() -> None:
    for line in ('"/work/main/x"', "cd /root/project", "see /tmp/notes", "--index-url x", "https://pypi.org/simple"):
        assert FOREIGN.search(line), line
    for line in ("/tmpl/x", "templates/root/x", "https://packaging.python.org", "/conversations/work/x", "~/tmp/x"):
        assert not FOREIGN.search(line), line


@pytest.mark.parametrize("path", WRITTEN, ids=name)
def test_file_and_its_functions_are_short_and_told(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    found = list(defined(tree))

    lengths = {one.node.name: (one.node.end_lineno or 0) - one.node.lineno + 1 for one in found if _is_function(one)}
    untold = [one.node.name for one in found if one.is_public and not ast.get_docstring(one.node)]

    assert len(text.splitlines()) <= LONGEST_FILE
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}
    assert untold == []
    assert not text.strip() or ast.get_docstring(tree)


def _is_function(one: Defined) -> bool:
    return not isinstance(one.node, ast.ClassDef)


@pytest.mark.django_db
def test_migrations_say_what_the_models_say() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_deployment_check_warns_of_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DJANGO_ALLOW_ASYNC_UNSAFE", raising=False)  # these tests' own, see conftest

    warned = {message.id for message in checks.run_checks(include_deployment_checks=True)}

    assert warned == set(ACCEPTED)


def test_every_dependency_says_what_it_is_for() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    project = tomllib.loads("\n".join(lines))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]

    told = {one for one in wanted if any(f'"{one}",' in line and re.search(r",\s+# \w", line) for line in lines)}

    assert told == set(wanted)


def test_lock_files_hold_every_dependency_and_nothing_but_versions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {"runtime": project["dependencies"], "dev": project["optional-dependencies"]["dev"]}

    for lock, dependencies in wanted.items():
        lines = (ROOT / "requirements" / f"{lock}.lock").read_text().splitlines()
        locked = {line.split("==")[0] for line in lines}
        assert all(re.match(r"[a-z0-9-]+==[\w.]+( ; .+)?$", line) for line in lines)
        assert {re.match(r"[\w-]+", one)[0].lower() for one in dependencies} <= locked  # type: ignore[index]


def test_lock_files_agree() -> None:
    runtime, dev = (
        set((ROOT / "requirements" / f"{lock}.lock").read_text().split("\n")) for lock in ("runtime", "dev")
    )

    assert runtime <= dev
