"""Templates: nothing inline, no unescaped text, no symbol that the sprite lacks."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.checks.python_files import modules

INLINE = re.compile(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)|\|\s*safe\b")


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


def named_modules_exist(root: Path) -> Iterator[str]:
    """A module whose class a template's comment names is there: `module.Class`, in backticks."""
    known = {name for module in modules(root) for name in (module.path.stem, module.path.parent.name)}
    for path in pages(root):
        for comment in re.findall(r"\{#(.*?)#\}", path.read_text(), re.S):
            for name in re.findall(r"`(?:[a-z_]+\.)*([a-z_]+)\.[A-Z]\w+`", comment):
                if name not in known:
                    yield f"{path.relative_to(root)}: there is no module {name}"


RULES = (nothing_inline, symbols_exist, named_modules_exist)
