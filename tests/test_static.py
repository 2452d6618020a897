"""Static files and templates: nothing missing, nothing from elsewhere, nothing inline, one door for markup."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

ROOT = Path(__file__).resolve().parent.parent
STATIC, TEMPLATES = ROOT / "static", ROOT / "templates"
SCRIPTS = sorted((STATIC / "js").glob("*.js"))
SHEETS = sorted((STATIC / "css").rglob("*.css"))
PAGES = sorted(TEMPLATES.rglob("*.html"))
LONGEST_ELEMENT = 150  # lines of a file that defines a custom element, its comments included


def name(path: Path) -> str:
    """Name a file in the list of tests."""
    return str(path.relative_to(ROOT))


def test_everything_that_a_static_file_names_exists(tmp_path: Path, settings: Any) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = settings.STORAGES | {"staticfiles": {"BACKEND": "dashboard.static_files.Storage"}}

    call_command("collectstatic", interactive=False, verbosity=0)

    names = json.loads((tmp_path / "staticfiles.json").read_text())["paths"]
    assert f'"./{Path(names["js/subscription.js"]).name}"' in (tmp_path / names["js/socket.js"]).read_text()
    sheets = [(tmp_path / names[f"css/{one}.css"]).read_text() for one in ("app", "page")]
    assert not any("@import" in sheet or "/*" in sheet for sheet in sheets)
    assert [sheet.count(".fleet-pill {") for sheet in sheets] == [1, 0]
    assert [sheet.count(".event {") > 0 for sheet in sheets] == [False, True]


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_imports_of_a_module_exist(path: Path) -> None:
    imported = re.findall(r'(?:\bfrom|^import) "([^"]+)"', path.read_text(), re.M)

    assert all((path.parent / one).is_file() for one in imported)


@pytest.mark.parametrize("path", [*SCRIPTS, *SHEETS, *PAGES, STATIC / "icon.svg"], ids=name)
def test_nothing_is_loaded_from_elsewhere(path: Path) -> None:
    addresses = re.findall(r"\b(?:https?:)?//[a-z0-9][\w.-]+\.\w+", path.read_text())

    assert {address for address in addresses if "www.w3.org" not in address} == set()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_no_style_script_or_handler_stands_in_a_template(path: Path) -> None:
    text = path.read_text()

    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)", text)
    assert "|safe" not in text


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_markup_enters_the_page_in_one_function_only(path: Path) -> None:
    doors = (
        r"innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|parseFromString|document\.write|createContextualFragment"
    )

    assert bool(re.search(doors, path.read_text())) == (path.name == "html.js")


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_an_element_is_small(path: Path) -> None:
    text = path.read_text()

    assert "customElements.define" not in text or text.count("\n") <= LONGEST_ELEMENT


@pytest.mark.parametrize("path", SHEETS, ids=name)
def test_a_style_sheet_keeps_the_rules_of_the_house(path: Path) -> None:
    text = re.sub(r"/\*.*?\*/|url\([^)]*\)", "", path.read_text(), flags=re.S)
    defined = set(re.findall(r"(--[\w-]+)\s*:", "".join(sheet.read_text() for sheet in SHEETS)))

    assert "!important" not in text
    assert not re.search(r"#[a-zA-Z][\w-]*\s*[{,.:\[>]", text)
    assert set(re.findall(r"var\((--[\w-]+)", text)) <= defined


def test_every_symbol_that_a_template_names_is_in_the_sprite() -> None:
    symbols = set(re.findall(r'<symbol id="i-([\w-]+)"', (TEMPLATES / "partials" / "sprite.html").read_text()))
    named = {one for page in PAGES for one in re.findall(r'\bicon\("([\w-]+)"\s*[,)]', page.read_text())}

    assert named <= symbols


def test_every_sheet_is_part_of_one_that_pages_load() -> None:
    loaded = ("app.css", "page.css", "lanes.css", "graph.css")
    imported = re.findall(r'@import url\("([^"]+)"\)', "".join((STATIC / "css" / one).read_text() for one in loaded))

    assert sorted([*imported, *loaded]) == sorted(str(path.relative_to(STATIC / "css")) for path in SHEETS)
