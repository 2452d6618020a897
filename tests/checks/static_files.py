"""Scripts and style sheets: nothing missing, nothing from elsewhere, small elements, one door for markup."""

import re
from collections.abc import Iterator
from pathlib import Path

MAX_ELEMENT_LINES = 150  # of a file that defines a custom element, its comments included
LOADED_SHEETS = ("app.css", "page.css", "records.css", "lanes.css", "graph.css", "timeline.css")
ELSEWHERE = re.compile(r"""(?:\bhttps?:|(?<=[\s"'(=]))//[a-z0-9][\w.-]+\.\w+""")
MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|setHTMLUnsafe|parseFromString|document\.write|createContextualFragment"
)
PLAIN_SIBLINGS = re.compile(r"(?<![\w.\[:#-])[a-z]+ *[+~] *[a-z]+(?=\s*[,{])")


def scripts(root: Path) -> list[Path]:
    """List our scripts."""
    return sorted((root / "static" / "js").glob("*.js"))


def sheets(root: Path) -> list[Path]:
    """List our style sheets."""
    return sorted((root / "static" / "css").rglob("*.css"))


def imports_exist(root: Path) -> Iterator[str]:
    """What a script imports is there."""
    for path in scripts(root):
        for name in re.findall(r'(?:\bfrom|^import) "([^"]+)"', path.read_text(), re.M):
            if not (path.parent / name).is_file():
                yield f"{path.relative_to(root)}: imports {name}, which is not there"


def nothing_from_elsewhere(root: Path) -> Iterator[str]:
    """Neither a script, a sheet, a template nor the icon names an address of another site."""
    files = [*scripts(root), *sheets(root), *(root / "templates").rglob("*.html"), *(root / "static").glob("*.svg")]
    for path in files:
        for address in ELSEWHERE.findall(path.read_text()):
            if "www.w3.org" not in address:
                yield f"{path.relative_to(root)}: loads {address}"


def one_door_for_markup(root: Path) -> Iterator[str]:
    """Markup enters a page in `html.js` and nowhere else."""
    for path in scripts(root):
        if path.name != "html.js" and (match := MARKUP.search(path.read_text())):
            yield f"{path.relative_to(root)}: {match[0]} belongs in html.js"


def small_elements(root: Path) -> Iterator[str]:
    """A file that defines a custom element has at most 150 lines."""
    for path in scripts(root):
        text = path.read_text()
        if "customElements.define" in text and (lines := text.count("\n")) > MAX_ELEMENT_LINES:
            yield f"{path.relative_to(root)}: {lines} lines, at most {MAX_ELEMENT_LINES}"


def sheet_rules(root: Path) -> Iterator[str]:
    """No !important, no rule for an id, no variable that no sheet sets."""
    texts = {path: re.sub(r"/\*.*?\*/|url\([^)]*\)", "", path.read_text(), flags=re.S) for path in sheets(root)}
    known = set(re.findall(r"(--[\w-]+)\s*:", "".join(texts.values())))
    for path, text in texts.items():
        where = path.relative_to(root)
        if "!important" in text:
            yield f"{where}: !important"
        for rule in re.findall(r"#[a-zA-Z][\w-]*(?=\s*[{,.:\[>])", text):
            yield f"{where}: a rule for the id {rule}"
        for variable in sorted(set(re.findall(r"var\((--[\w-]+)", text)) - known):
            yield f"{where}: {variable} is set nowhere"


def cheap_siblings(root: Path) -> Iterator[str]:
    """No rule for a plain tag after a plain tag: for it, each row that moves has all rows around it styled anew."""
    for path in sheets(root):
        for rule in PLAIN_SIBLINGS.findall(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)):
            yield f"{path.relative_to(root)}: {rule.strip()}; write :not(:first-child)"


def sheets_are_loaded(root: Path) -> Iterator[str]:
    """Every sheet is part of one that pages load, and what those import is there."""
    folder = root / "static" / "css"
    loaded = [name for name in LOADED_SHEETS if (folder / name).is_file()]
    named = {*loaded, *re.findall(r'@import url\("([^"]+)"\)', "".join((folder / name).read_text() for name in loaded))}
    there = {str(path.relative_to(folder)) for path in sheets(root)}
    yield from (f"static/css/{name}: no page loads it" for name in sorted(there - named))
    yield from (f"static/css/{name}: imported, but not there" for name in sorted(named - there))


RULES = (
    imports_exist,
    nothing_from_elsewhere,
    one_door_for_markup,
    small_elements,
    sheet_rules,
    cheap_siblings,
    sheets_are_loaded,
)
