"""Templates: nothing inline, no unescaped text, no symbol that the sprite lacks, one form of the words on buttons."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.checks.python_files import defined, modules

INLINE = re.compile(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)|\|\s*safe\b")
LABEL = re.compile(r'<(summary|button|h\d|a class="button")\b[^>]*>(.*?)</', re.S)
WITH_ARTICLE = re.compile(r"\b(?:Add|Choose|Create|Edit|New|Place|Read|Register|Set) (?:an?|the) [a-z-]+")


def pages(root: Path) -> list[Path]:
    """List our templates."""
    return sorted((root / "templates").rglob("*.html"))


def nothing_inline(root: Path) -> Iterator[str]:
    """No style, script or handler stands in a template, and nothing is marked safe."""
    for path in pages(root):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if match := INLINE.search(" " + line):
                yield f"{path.relative_to(root)}:{number}: {match[0].strip()}"


def symbols_exist(root: Path) -> Iterator[str]:
    """Every icon that a template names is in the sprite."""
    sprite = root / "templates" / "partials" / "sprite.html"
    symbols = set(re.findall(r'<symbol id="i-([\w-]+)"', sprite.read_text() if sprite.is_file() else ""))
    for path in pages(root):
        for name in re.findall(r'\bicon\("([\w-]+)"\s*[,)]', path.read_text()):
            if name not in symbols:
                yield f"{path.relative_to(root)}: the sprite has no {name}"


def labels_without_article(root: Path) -> Iterator[str]:
    """What begins a form and what sends it have the same words: a verb and a noun, as in Add rule."""
    for path in pages(root):
        for _, label in LABEL.findall(path.read_text()):
            if match := WITH_ARTICLE.search(label):
                yield f"{path.relative_to(root)}: an article in the label {match[0]}"


def named_modules_exist(root: Path) -> Iterator[str]:
    """A module whose class a template's comment names is there: `module.Class`, in backticks."""
    known = {name for module in modules(root) for name in (module.path.stem, module.path.parent.name)}
    for path in pages(root):
        for comment in re.findall(r"\{#(.*?)#\}", path.read_text(), re.S):
            for name in re.findall(r"`(?:[a-z_]+\.)*([a-z_]+)\.[A-Z]\w+`", comment):
                if name not in known:
                    yield f"{path.relative_to(root)}: there is no module {name}"


def drawn_by_whom(root: Path) -> Iterator[str]:
    """The first comment of an event's template names what calls its `draw`: functions of rendering, or their modules; a
    template that nothing calls by name is that of a `Row(template=…)`, with its parameters."""
    callers = _callers_of_templates(root)
    for path in sorted((root / "templates/events").glob("*.html")):
        text, where, row = path.read_text(), path.relative_to(root), f'`Row(template="{path.stem}")`'
        if "{% macro draw(" not in text:
            continue
        comment = text.partition("#}")[0]
        named = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)?)`", comment))
        for caller in sorted(callers[path.stem]):
            if not named & {caller, caller.partition(".")[0]}:
                yield f"{where}: the first comment does not name {caller}, which draws it"
        for name in sorted(named & set().union(*callers.values()) - callers[path.stem]):
            yield f"{where}: {name} does not draw it"
        if not callers[path.stem] and not (row in comment and "{% macro draw(e, fields, extra) %}" in text):
            yield f"{where}: the first comment must name {row}, whose macro is draw(e, fields, extra)"


def _callers_of_templates(root: Path) -> defaultdict[str, set[str]]:
    """Return the functions that call `render` or `render_as` with a template's name, by these names."""
    callers: defaultdict[str, set[str]] = defaultdict(set)
    for path, _, tree in modules(root):
        functions = defined(tree) if path.parent.name == "rendering" else ()
        for function, call in ((node.name, call) for node, _ in functions for call in ast.walk(node)):
            match call:
                case ast.Call(
                    func=ast.Name(id="render" | "render_as") | ast.Attribute(attr="render" | "render_as"),
                    args=[ast.Constant(value=str(template)), *_],
                ):
                    callers[template].add(f"{path.stem}.{function}")
    return callers


RULES = (nothing_inline, symbols_exist, labels_without_article, named_modules_exist, drawn_by_whom)
