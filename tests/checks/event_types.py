"""Event types: everything about one is declared in `conversations/events/types`, and what we write fits its schema."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from conversations.events import registry
from tests.checks.python_files import Module, modules, nodes
from tests.checks.static_files import scripts

DECLARATIONS = "conversations/events/types/"
# Names that mean something else, too.
COMMON_WORDS = {"message", "control", "token", "output", "log", "signal"}
NAMES = frozenset(registry.names())
STATE_SCRIPT = "static/js/state-events.js"  # the table of the trait `leaves_state` for pages
NAMED_IN_SCRIPT = re.compile(rf"""["'`]((?:{"|".join(registry.FAMILIES)})\.[a-z_]+)["'`]""")
TABLES_APART = {  # what a protocol of others makes of our events; /v1/responses turns them into its own frames
    "conversations/asgi/responses/stream_encoder.py",
    "conversations/asgi/agui/run_encoder.py",
    "conversations/telemetry_export/run_spans.py",
}


def tables_of_event_types(root: Path) -> Iterator[str]:
    """No other module has a table of event types: two keys of a dictionary, or three members of anything else."""
    for name, module in _undeclared(root):
        lines = sorted({node.lineno for node in nodes(module.tree) if _is_table(node)})  # type: ignore[attr-defined]
        if name in TABLES_APART:
            if not lines:
                yield f"{name}: no table of event types any more, and it is said to have one"
            continue
        for line in lines:
            yield f"{name}:{line}: a table of event types, which belongs to their declarations"


def written_payloads(root: Path) -> Iterator[str]:
    """A payload that is written in the code is of a known type and names fields of its schema."""
    for name, module in _undeclared(root):
        for line, kind, fields in _payloads(module.tree):
            if (known := registry.find(kind)) is None:
                yield f"{name}:{line}: {kind} is no event type"
            elif strange := sorted(fields - known.fields):
                yield f"{name}:{line}: {kind} has no {', '.join(strange)}"


def tables_of_scripts(root: Path) -> Iterator[str]:
    """The types that leave a conversation's state as it is are the same in the script; a type that a script names is
    one."""
    for path in scripts(root):
        name, text = path.relative_to(root).as_posix(), path.read_text()
        for kind in sorted(set(NAMED_IN_SCRIPT.findall(text)) - NAMES):
            yield f"{name}: {kind} is no event type"
        if name == STATE_SCRIPT:
            listed, declared = set(re.findall(r'"([\w.]+)"', text)), set(registry.names_with("leaves_state"))
            yield from (f"{name}: {kind} has the trait `leaves_state`: list it" for kind in sorted(declared - listed))
            yield from (f"{name}: {kind} lacks the trait `leaves_state`" for kind in sorted(listed - declared))


def _undeclared(root: Path) -> Iterator[tuple[str, Module]]:
    for module in modules(root):
        if not (name := module.path.relative_to(root).as_posix()).startswith(DECLARATIONS):
            yield name, module


def _payloads(tree: ast.AST) -> Iterator[tuple[int, str, set[str]]]:
    for node in nodes(tree):
        if isinstance(node, ast.Dict):
            fields = {k.value: v for k, v in zip(node.keys, node.values, strict=True) if _is_text(k)}  # type: ignore[union-attr]
            if _is_text(kind := fields.get("event")) and kind.value:  # type: ignore[union-attr]
                yield node.lineno, str(kind.value), {str(field) for field in fields}  # type: ignore[union-attr]


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_table(node: ast.AST) -> bool:
    is_dictionary = isinstance(node, ast.Dict)
    parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
    names = {part.value for part in parts if isinstance(part, ast.Constant)} & NAMES
    return len(names) >= (2 if is_dictionary else 3) and bool(names - COMMON_WORDS)


RULES = (tables_of_event_types, written_payloads, tables_of_scripts)
