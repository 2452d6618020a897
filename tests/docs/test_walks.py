"""What the documents say of the code is there: the files and functions of the walks, and where to change what."""

import ast
import re
from itertools import pairwise
from typing import NamedTuple

import pytest
from django.urls import resolve

from tests.support.live import ROOT

MOST_FILES = 10  # of one walk: with the README and the page itself, twelve
WALK = re.compile(r"^### (4\.\d [^\n]+)\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\d+\. (.+?)(?=^\d+\. |\n\n|\Z)", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"`(@?)([\w.]+)\(\)`")
ADDRESS = re.compile(r"`POST (/\S*)`")
ROW = re.compile(r"^\| ([^|`]+) \| (.+) \|$", re.MULTILINE)
PATH = re.compile(r"`([\w./-]+/[\w./-]*)`")


class Step(NamedTuple):
    """One line of a walk: a file, what to read in it, and the rest."""

    walk: str
    path: str
    names: list[str]
    words: str


def steps() -> list[Step]:
    """Read the walks of docs/architecture.md."""
    made = []
    for title, text in WALK.findall((ROOT / "docs/architecture.md").read_text()):
        for line in STEP.findall(text):
            head, _, words = line.partition(":")
            path, *names = re.findall(r"`([^`]+)`", head)
            made.append(Step(title, path, names, words))
    return made


def names_in(path: str) -> set[str]:
    """Return what a file defines: `function`, `Class`, `Class.method`, `CONSTANT`; of a script its names."""
    text = (ROOT / path).read_text()
    if path.endswith(".html"):
        return set(re.findall(r"{% macro (\w+)\(", text))
    if path.endswith(".js"):
        methods = re.findall(r"^ +(?:async )?(#?\w+)\(.*\) {$", text, re.MULTILINE)
        return {*methods, *re.findall(r"^(?:export )?const (\w+) =", text, re.MULTILINE)}
    return {name for node in ast.parse(text).body for name in _names_of(node)}


def _names_of(node: ast.stmt) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.ClassDef(name=name, body=body):
            return [name, *(f"{name}.{inner}" for part in body for inner in _names_of(part))]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def test_there_is_a_walk_of_each_path_and_none_is_long():
    walks: dict[str, set[str]] = {}
    for step in steps():
        walks.setdefault(step.walk, set()).add(step.path)

    assert len(walks) == 4
    assert {title: len(paths) for title, paths in walks.items() if not 3 <= len(paths) <= MOST_FILES} == {}


@pytest.mark.parametrize("step", steps(), ids=lambda step: f"{step.walk[:3]} {step.path}")
def test_a_step_names_functions_of_its_file_and_calls_that_these_make(step: Step):
    text = (ROOT / step.path).read_text()

    assert set(step.names) - names_in(step.path) == set()
    assert [
        name for at, name in CALL.findall(step.words) if not re.search(rf"{at}(?<!\w){re.escape(name)}\(", text)
    ] == []


def test_an_address_that_a_step_names_is_answered_by_the_file_of_the_next():
    posts = [(address, after) for step, after in pairwise(steps()) for address in ADDRESS.findall(step.words)]

    assert len(posts) > 0
    for address, after in posts:
        view = resolve(address).func
        assert (after.path, view.__name__ in after.names) == (f"{view.__module__.replace('.', '/')}.py", True)


@pytest.mark.parametrize(
    ("step", "after"),
    [(step, after) for step, after in pairwise(steps()) if step.walk == after.walk == steps()[0].walk],
    ids=lambda step: step.path,
)
def test_a_file_on_the_way_from_a_publish_to_its_row_names_the_next_at_its_head(step: Step, after: Step):
    head = re.match(r'"""(.*?)"""|/\*\*(.*?)\*/', (ROOT / step.path).read_text(), re.DOTALL)

    assert head
    assert after.path.rpartition("/")[2] in head[0]


def test_a_step_of_python_or_script_names_what_to_read():
    silent = [step.path for step in steps() if not step.names and not step.path.endswith("__init__.py")]

    assert silent == []


def test_every_file_that_the_documents_name_for_a_change_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text().partition("## Where to change what")[2].partition("\n## ")[0]
    rows = ROW.findall(text)
    paths = [path for _, places in rows for path in PATH.findall(places)]

    assert len(rows) > 10
    assert [task for task, places in rows if not PATH.search(places) and not task.startswith(("to ", "---"))] == []
    assert [path for path in paths if not (ROOT / path.replace("NAME", "")).exists()] == []
