"""Names: a class's is its own, and none is a word that says nothing (docs/architecture.md, glossary)."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.checks.python_files import defined, modules, modules_of_tests, nodes
from tests.checks.static_files import scripts

# Of variables and parameters.
FILLERS = frozenset({"found", "told", "one", "asked", "said", "kept", "heard", "ear"})
# Of fields and methods as well: a participle does not say what is in it.
BARE_PARTICIPLES = FILLERS | {
    "held",
    "made",
    "taken",
    "given",
    "known",
    "rung",
    "gone",
    "seen",
    "left",
    "engine",
    "house",
    "pen",
}
# Of modules, classes and functions.
BANNED = frozenset({
    "telling", "hearing", "heard", "told", "kept", "asked", "decided", "pen", "house", "vitals", "fetcher", "standings",
    "looker", "lookers", "teller", "guest", "news_or", "learn_hues", "seen_through", "deeds",
})  # fmt: skip
# Of constants: a bound is a MAX_ or MIN_ of something.
VAGUE_BOUNDS = frozenset({"MOST", "LEAST", "LONGEST", "LARGEST", "FEW"})
BOUNDS_OF_ANYTHING = frozenset({"MAX_ITEMS", "MIN_ITEMS"})
# Names that a framework looks for, and contracts of two layers that are the same thing to their readers: the public
# API's schemas carry the field's word, as the models do; `switchboard` stands alone and has its own errors.
SHARED_BY_DESIGN = frozenset({"Command", "DatabaseWrapper"})
MAY_REPEAT = ("dashboard/api/schemas/", "switchboard/", "dashboard/api/search.py")
# What declares names in a script, as patterns: a variable, a parameter, a private method or field.
SCRIPT_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\w\"'`/])//[^\n]*", re.DOTALL)
SCRIPT_VARIABLES = re.compile(r"\b(?:const|let|var)\s+(\w+|[{\[].*?[}\]](?=\s*(?:=|of\b)))", re.DOTALL)
SCRIPT_PARAMETERS = re.compile(
    r"""(?<![\w.$])(\w+)\s*=>                                                   # name => …
    | \(((?:[^()]|\([^()]*\))*)\)\s*=>                                         # (a, { b: name }) => …
    | (?:\b(?:function\b[ *]*\w*|catch)|^[ ]+(?:static[ ]|async[ ]|set[ ])*\#?(?!(?:if|for|while|switch)\b)\w+)
      \s*\(((?:[^()]|\([^()]*\))*)\)\s*{                                      # function f(name) {, #method(name) {
    """,
    re.MULTILINE | re.VERBOSE,
)
SCRIPT_MEMBERS = re.compile(r"^ +(?:static |async |get |set |\*)*#(\w+)(?= *[(=;])", re.MULTILINE)
# Of a list or a pattern: not the keys of a pattern, nor its defaults.
SCRIPT_BINDINGS = re.compile(r"(?<![\w$])(?<![^.]\.)(\w+)(?!\w)(?!\s*:)(?:\s*=\s*(?:\"[^\"]*\"|[^,}\])]*))?")


def distinct_class_names(root: Path) -> Iterator[str]:
    """No two modules define a public class of the same name."""
    places = defaultdict(list)
    for path, _, tree in modules(root):
        where = str(path.relative_to(root))
        if not where.startswith(MAY_REPEAT):
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(where)
    for name, modules_of in places.items():
        if len(modules_of) > 1 and name not in SHARED_BY_DESIGN:
            yield f"{modules_of[0]}: class {name} is also defined in {', '.join(modules_of[1:])}"


def banned_names(root: Path) -> Iterator[str]:
    """No module, class or function is named by a word of the list."""
    for path, _, tree in modules(root):
        where = path.relative_to(root)
        if path.stem in BANNED:
            yield f"{where}: a module named {path.stem}"
        for node, _ in defined(tree):
            if node.name.strip("_") in BANNED:
                yield f"{where}:{node.lineno}: {node.name} says nothing"


def filler_names(root: Path) -> Iterator[str]:
    """No variable and no parameter is named by a word that would fit any other as well; nor in tests."""
    for path, _, tree in (*modules(root), *modules_of_tests(root)):
        fields = {id(line.target) for node in nodes(tree) if isinstance(node, ast.ClassDef) for line in node.body
                  if isinstance(line, ast.AnnAssign)}  # fmt: skip
        for node in nodes(tree):
            is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields
            name = node.id if is_stored else node.arg if isinstance(node, ast.arg) else ""
            if name in FILLERS:
                yield f"{path.relative_to(root)}:{node.lineno}: rename it: `{name}` does not say what it holds"


def filler_attributes(root: Path) -> Iterator[str]:
    """No field, attribute, function or method is named by a participle alone; a variable inside a function may be.

    In tests only the fillers are refused.
    """
    everything = [(module, BARE_PARTICIPLES) for module in modules(root)]
    everything += [(module, FILLERS) for module in modules_of_tests(root)]
    for (path, _, tree), refused in everything:
        classes = [node for node in nodes(tree) if isinstance(node, ast.ClassDef)]
        fields = {id(line) for owner in (tree, *classes) for line in owner.body}
        for node in nodes(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = node.name
            elif id(node) in fields and isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                name = node.target.id
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                name = node.attr
            else:
                continue
            if name.strip("_") in refused:
                yield f"{path.relative_to(root)}:{node.lineno}: {name} does not say what it is"


def vague_bounds(root: Path) -> Iterator[str]:
    """No constant says that it is a bound without saying MAX or MIN, and of what."""
    for path, _, tree in modules(root):
        for statement in tree.body:
            for node in ast.walk(statement) if isinstance(statement, ast.Assign | ast.AnnAssign) else ():
                is_stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
                if not is_stored:
                    continue
                parts = node.id.lstrip("_").split("_")
                if node.id.lstrip("_") in BOUNDS_OF_ANYTHING or VAGUE_BOUNDS & {*parts[:2], parts[-1]}:
                    yield f"{path.relative_to(root)}:{node.lineno}: {node.id} is a MAX_ or MIN_ of something"


def filler_names_of_scripts(root: Path) -> Iterator[str]:
    """No variable, parameter or private member of a script is named by a word that would fit any other as well."""
    for path in scripts(root):
        text = SCRIPT_COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), path.read_text())
        for refused, name, start in _declared_in_script(text):
            if name in refused:
                line = text.count("\n", 0, start) + 1
                yield f"{path.relative_to(root)}:{line}: rename it: `{name}` does not say what it holds"


def _declared_in_script(text: str) -> Iterator[tuple[frozenset[str], str, int]]:
    """Yield the words refused for a declared name, the name, and its place in the text."""
    for pattern in (SCRIPT_VARIABLES, SCRIPT_PARAMETERS):
        for declaration in pattern.finditer(text):
            group = declaration.lastindex or 0
            for binding in SCRIPT_BINDINGS.finditer(declaration[group]):
                yield FILLERS, binding[1], declaration.start(group) + binding.start()
    for member in SCRIPT_MEMBERS.finditer(text):
        yield BARE_PARTICIPLES, member[1], member.start(1)


RULES = (
    distinct_class_names,
    banned_names,
    filler_names,
    filler_attributes,
    vague_bounds,
    filler_names_of_scripts,
)
