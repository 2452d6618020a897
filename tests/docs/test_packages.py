"""The diagram of packages in docs/architecture.md shows all of them, in the layers that `make check` enforces; a module
that claims to need no Django needs none."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.live import ROOT

DIAGRAM = re.compile(r"^## 1\. Packages\n.*?^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
SOURCES = ("agents_app", "conversations", "dashboard", "switchboard")
NO_PACKAGE = {"management", "migrations"}  # Django's: commands, and the tables' history


def drawn() -> dict[str, list[str]]:
    """Return by root package the rows of its packages, from the top: `  one | other   what they do`; a colon joins
    packages that may import each other."""
    match = DIAGRAM.search((ROOT / "docs/architecture.md").read_text())
    assert match
    rows: dict[str, list[str]] = {}
    root = ""
    for indent, names in re.findall(r"^( {2}|)(\S+(?: [|:] \S+)*)", match[1], re.MULTILINE):
        if indent:
            rows[root].append(names)
        else:
            root = names.rstrip("/")
            rows[root] = []
    return rows


@pytest.mark.parametrize("root", ["agents_app", "conversations"])
def test_packages_are_drawn_in_the_layers_that_are_enforced(root: str):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract.get("containers") == [root]]

    assert drawn()[root] == layers


def test_every_package_of_the_dashboard_is_drawn():
    packages = {path.parent.name for path in (ROOT / "dashboard").glob("*/__init__.py")} - NO_PACKAGE

    assert {name for row in drawn()["dashboard"] for name in row.split(" | ")} == packages


@pytest.mark.slow
def test_modules_that_claim_no_django_are_imported_without_it():
    claims = [path for source in SOURCES for path in (ROOT / source).rglob("*.py") if "No Django" in docstring_of(path)]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in claims]
    assert "conversations.core.json_values" in names
    program = "import importlib, sys; sys.modules['django'] = None; [importlib.import_module(n) for n in sys.argv[1:]]"
    command = [sys.executable, "-c", program, *names]

    imported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert imported.returncode == 0, imported.stderr


def docstring_of(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""
