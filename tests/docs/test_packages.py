"""The diagram of packages in docs/architecture.md shows all of them, in the layers that `make check` enforces."""

import re
import tomllib

import pytest

from tests.support.live import ROOT

DIAGRAM = re.compile(r"^## 1\. Packages\n.*?^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
NO_PACKAGE = {"management", "migrations"}  # Django's: commands, and the tables' history


def drawn() -> dict[str, list[list[str]]]:
    """Return by root package the packages of each of its rows, from the top: `  one | other   what they do`."""
    match = DIAGRAM.search((ROOT / "docs/architecture.md").read_text())
    assert match
    rows: dict[str, list[list[str]]] = {}
    root = ""
    for indent, names in re.findall(r"^( {2}|)(\S+(?: \| \S+)*)", match[1], re.MULTILINE):
        if indent:
            rows[root].append(names.split(" | "))
        else:
            root = names.rstrip("/")
            rows[root] = []
    return rows


def test_the_packages_of_the_record_are_drawn_in_the_layers_that_are_enforced():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]

    assert drawn()["conversations"] == [layer.split(" | ") for layer in layers]


@pytest.mark.parametrize("root", ["agents_app", "dashboard"])
def test_every_other_package_is_drawn_too(root: str):
    packages = {path.parent.name for path in (ROOT / root).glob("*/__init__.py")} - NO_PACKAGE

    assert {name for row in drawn()[root] for name in row} == packages
