"""The documents are true: links lead somewhere, the reference is what the code says, citations have their section."""

import ast
import importlib.util
import os
import re
import subprocess
import sys

import pytest

from tests.support.live import ROOT

README_LINES = 150
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(#[^)\s]*)?\)")
CODE = ("conversations", "agents_app", "dashboard", "switchboard", "static", "templates")
CITATION = re.compile(r"§(\d(?:\.\d)?)|\blaw ([A-Z])\b")


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as a host of repositories makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_between_documents_leads_to_a_file_and_its_heading() -> None:
    broken = []
    for document in DOCUMENTS:
        for target, anchor in LINK.findall(document.read_text()):
            if "://" in target:
                continue
            path = (document.parent / target) if target else document
            if not path.exists() or (anchor and anchor not in anchors(path.read_text())):
                broken.append(f"{document.relative_to(ROOT)}: {target}{anchor}")

    assert broken == []


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


@pytest.mark.thorough
def test_reference_is_what_the_code_says(tmp_path) -> None:
    environment = {**os.environ, "SWITCHBOARD_DATA_DIR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    for name in [name for name in environment if name.startswith("SWITCHBOARD_") and name != "SWITCHBOARD_DATA_DIR"]:
        del environment[name]

    done = subprocess.run(
        [sys.executable, "docs/generate_reference.py", "--check"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_every_citation_has_its_section() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    sections = set(re.findall(r"^#+ (\d(?:\.\d)?)\b", text, re.MULTILINE))
    laws = set(re.findall(r"^([A-Z])\. \*\*", text, re.MULTILINE))
    files = [path for folder in CODE for path in (ROOT / folder).rglob("*.*") if path.suffix in (".py", ".js", ".html")]
    cited = [match for path in files for match in CITATION.findall(path.read_text())]

    assert len(cited) > 100
    assert {section for section, _ in cited if section} <= sections
    assert {law for _, law in cited if law} <= laws


@pytest.mark.parametrize(
    "document", ["docs/tutorial.md", "docs/how-to/open-responses.md", "docs/how-to/mcp-servers.md"]
)
def test_python_of_documents_is_python(document: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)

    assert blocks
    for block in blocks:
        tree = ast.parse(block)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agents_app"):
                assert importlib.util.find_spec(node.module or ""), node.module
