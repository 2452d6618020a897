"""Scripts as pages load them: one file for each that a template names, instead of one for each module.

A page that asked for 25 modules asks for 3 files. `app.js`, which is on every page, holds what several of the others
need; each other file holds its own modules and takes the rest from there, or from a script that its page names beside
it. What two files need that no page has together is in both, so that other pages do not load it. Each module keeps a
scope of its own.
What it can be: `import "./x.js"` and `import { a, b as c } from "./x.js"`, one to a line; `export` before a function,
class or const; no circle. Anything else raises ValueError, which ends `collectstatic`.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

SHARED = "app.js"
COPIES = 2  # files that may each have a module of their own, where no page loads both
_IMPORT = re.compile(r'^import (?:\{ ([^}\n]*) \} from )?"\./([\w-]+\.js)";[^\n]*\n', re.MULTILINE)
_LATER = re.compile(r'\bimport\("\./([\w-]+\.js)"\)')
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const)\b[ *]*(\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?:/\*\*.*?\*/|//[^\n]*)[ \t]*\n", re.MULTILINE | re.DOTALL)
_REMARK = re.compile(r"[ \t]+// [^\n\"'`]*$", re.MULTILINE)  # after code; with a quote it may be the end of a text


def bundles(modules: Mapping[str, str], pages: Collection[Collection[str]]) -> dict[str, str]:
    """Return the files to serve by name, of modules (name: source) and the scripts that each page has."""
    sources = {name: _REMARK.sub("", _COMMENT.sub("", text)) for name, text in modules.items()}
    imports = {name: [statement[2] for statement in _IMPORT.finditer(text)] for name, text in sources.items()}
    entries = {*chain(*pages), *(name for text in sources.values() for name in _LATER.findall(text))} - {SHARED}
    parts = {entry: _in_order([entry], imports) for entry in sorted(entries)}
    users = {name: {entry for entry, part in parts.items() if name in part} for name in sources.keys() - entries}
    common = {name for name, by in users.items() if len(by) > COPIES or any(len(by & set(page)) > 1 for page in pages)}
    parts[SHARED] = _in_order([*sorted(common), SHARED], imports)
    files = {}
    for entry, part in parts.items():
        beside = {name for page in pages if entry in page for name in page if name in part} - {entry}
        elsewhere = {name: other for other in (*beside, SHARED) if other != entry for name in parts[other]}
        own = [name for name in part if name not in elsewhere]
        files[entry] = _joined(entry, own, sources, imports, elsewhere)
    return files


def _in_order(names: Iterable[str], imports: Mapping[str, list[str]]) -> list[str]:
    """Return modules with all that they import, what is imported first."""
    ordered: dict[str, None] = {}
    under_way: list[str] = []

    def add(name: str) -> None:
        if name in under_way:
            raise ValueError(f"scripts must not import each other in a cycle: {' → '.join([*under_way, name])}")
        if name not in ordered:
            under_way.append(name)
            for inner in imports[name]:
                add(inner)
            under_way.pop()
            ordered[name] = None

    for name in names:
        add(name)
    return list(ordered)


def _joined(
    entry: str,
    own: list[str],
    sources: Mapping[str, str],
    imports: Mapping[str, list[str]],
    elsewhere: Mapping[str, str],
) -> str:
    """Write a file: what it takes from others, each module in a function, and what others take from it."""
    outside = dict.fromkeys(inner for name in own for inner in imports[name] if inner not in own)
    heads: dict[str, list[str]] = {elsewhere[name]: [] for name in outside}
    for name in outside:
        heads[elsewhere[name]].append(_handle(name))
    lines = [f'import {{ {", ".join(handles)} }} from "./{other}";' for other, handles in heads.items()]
    lines += [_in_function(name, sources[name]) for name in own]
    lines.append(f"export {{ {', '.join(map(_handle, own))} }};")
    if entry != SHARED:
        lines += [f"export const {{ {name} }} = {_handle(entry)};" for name in _EXPORT.findall(sources[entry])]
    return "\n".join(lines) + "\n"


def _handle(name: str) -> str:
    """Return the variable that holds what a module exports."""
    return "$" + name.removesuffix(".js").replace("-", "_")


def _in_function(name: str, source: str) -> str:
    exported = _EXPORT.findall(source)
    body = _EXPORT.sub("", _IMPORT.sub(_import_bindings, source))
    if other := _OTHER.search(body):
        raise ValueError(f"{name}: must be an import or export that can be bundled; got {other[0]!r}")
    return f"const {_handle(name)} = (() => {{\n{body.strip()}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _import_bindings(statement: re.Match[str]) -> str:
    names, name = statement.groups()
    return f"const {{ {names.replace(' as ', ': ')} }} = {_handle(name)};\n" if names else ""
