"""Python modules: short files and functions, a docstring for whatever is public, names that say what they mean."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("dashboard", "conversations", "agents_app", "switchboard")
MAX_FILE_LINES, MAX_FUNCTION_LINES = 400, 40

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Defined(NamedTuple):
    """A function or class, and whether it can be reached by public names alone."""

    node: Definition
    is_public: bool


class Module(NamedTuple):
    """A module of the product, or of its tests."""

    path: Path
    text: str
    tree: ast.Module


@cache
def modules(root: Path) -> list[Module]:
    """List the product's modules, migrations aside; read once for all rules."""
    return [_module(path) for path in _product(root)]


def modules_that_mention(root: Path, *words: str) -> list[Module]:
    """List those in which one of these words is; the others are not parsed, which is most of the work."""
    return [_module(path) for path in _product(root) if any(word in path.read_text() for word in words)]


@cache
def modules_of_tests(root: Path) -> list[Module]:
    """List the modules of tests and what supports them; read once for all rules."""
    return [_module(path) for path in sorted((root / "tests").rglob("*.py"))]


def _product(root: Path) -> list[Path]:
    paths = [path for package in PACKAGES for path in sorted((root / package).rglob("*.py"))]
    return [path for path in paths if not {"migrations", "build"} & {*path.relative_to(root).parts}]


def _module(path: Path) -> Module:
    text = path.read_text()
    return Module(path, text, ast.parse(text))


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """List all nodes of a tree; walked once for all rules."""
    return list(ast.walk(tree))


@cache
def defined(tree: ast.AST) -> list[Defined]:
    """List functions and classes; public is what stands in nothing private or local. Django's `Meta` is not."""
    return list(_defined(tree, is_public=True))


def _defined(tree: ast.AST, *, is_public: bool) -> Iterator[Defined]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Definition):
            here = is_public and not node.name.startswith("_") and node.name != "Meta"
            yield Defined(node, here)
            yield from _defined(node, is_public=here and isinstance(node, ast.ClassDef))
        elif not isinstance(node, ast.expr):
            yield from _defined(node, is_public=is_public)


def short_files(root: Path) -> Iterator[str]:
    """A module has at most 400 lines, one of tests too."""
    for path, text, _ in (*modules(root), *modules_of_tests(root)):
        if (lines := len(text.splitlines())) > MAX_FILE_LINES:
            yield f"{path.relative_to(root)}: {lines} lines, at most {MAX_FILE_LINES}"


def short_functions(root: Path) -> Iterator[str]:
    """A function has at most 40 lines."""
    for path, _, tree in modules(root):
        for node, _ in defined(tree):
            where, lines = f"{path.relative_to(root)}:{node.lineno}", (node.end_lineno or 0) - node.lineno + 1
            if not isinstance(node, ast.ClassDef) and lines > MAX_FUNCTION_LINES:
                yield f"{where}: {node.name} has {lines} lines, at most {MAX_FUNCTION_LINES}"


def docstrings(root: Path) -> Iterator[str]:
    """A module, and each public class and function, has a docstring."""
    for path, text, tree in modules(root):
        if text.strip() and not ast.get_docstring(tree):
            yield f"{path.relative_to(root)}:1: no docstring"
        for node, is_public in defined(tree):
            if is_public and not ast.get_docstring(node):
                yield f"{path.relative_to(root)}:{node.lineno}: {node.name} has no docstring"


def messages_of_errors(root: Path) -> Iterator[str]:
    """A message of our errors begins with a word of ours: pages write its first letter as a capital, which no name may
    get. A principal (`user:maria`) is told by its form, and quotes keep any other name."""
    trees = [(module.path, module.tree) for module in modules(root)]
    errors = _errors_of([tree for _, tree in trees])
    for path, tree in trees:
        for node in nodes(tree):
            if not isinstance(node, ast.Call) or _name_of(node.func) not in errors or not node.args:
                continue
            if (name := _leading_name(node.args[0])) and not OUR_WORDS & {name, name.rpartition(".")[2]}:
                yield f"{path.relative_to(root)}:{node.lineno}: begins with {name}: write what it is before it"


def principals_of_imports(root: Path) -> Iterator[str]:
    """How the principal of an import begins is written in `core/principals.py` alone."""
    for path, _, tree in modules(root):
        if path.relative_to(root).as_posix() != "conversations/core/principals.py":
            for node in nodes(tree):
                if isinstance(node, ast.Constant) and node.value == "import:" and not _is_in_f_string(tree, node):
                    yield f"{path.relative_to(root)}:{node.lineno}: use `principals.is_imported`"


def _is_in_f_string(tree: ast.AST, constant: ast.Constant) -> bool:
    """Return whether it begins a longer text, such as the target of an audit entry."""
    return any(constant in node.values for node in nodes(tree) if isinstance(node, ast.JoinedStr))


OUR_WORDS = {
    *("principal", "by", "made_by", "updated_by", "closed_by", "revoked_by", "decided_by"),  # `user:maria`
    *("who", "what", "where", "fact", "location", "message", "expected"),  # words of ours, or a principal
    *("path", "data_dir"),  # begins with a slash
}


def _errors_of(trees: list[ast.Module]) -> set[str]:
    """Return the classes of our tree of errors."""
    classes = [node for tree in trees for node in nodes(tree) if isinstance(node, ast.ClassDef)]
    errors = {"SwitchboardError"}
    while more := {c.name for c in classes if errors & {_name_of(base) for base in c.bases}} - errors:
        errors |= more
    return errors


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _leading_name(node: ast.expr) -> str:
    """Return what a text begins with where that is a value, not quoted and not a number; else empty."""
    if not isinstance(node, ast.JoinedStr) or not isinstance(first := node.values[0], ast.FormattedValue):
        return ""
    value = first.value
    is_marked = first.conversion == ord("r") or first.format_spec is not None
    is_principal = isinstance(value, ast.Call) and _name_of(value.func) == "principal_of"
    is_constant = _name_of(value.value if isinstance(value, ast.Subscript) else value).isupper()
    return "" if is_marked or is_principal or is_constant else ast.unparse(value)


RULES = (short_files, short_functions, docstrings, messages_of_errors, principals_of_imports)
