"""`make check` finds what breaks our rules: each is shown a small project that breaks it, and one that does not."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core import checks

from tests.checks import RULES
from tests.checks.event_types import TABLES_APART
from tests.checks.repository import FOREIGN
from tests.support.live import ROOT

# Warnings of `check --deploy` that we accept, and why.
ACCEPTED = {
    "security.W001": "our own middleware sets the headers (dashboard/middleware.py, tests/dashboard/test_headers.py)",
    "security.W002": "Content-Security-Policy says frame-ancestors 'none'",
    "security.W012": "plain HTTP on 127.0.0.1 is the first deployment; a secure cookie would not come back",
    "security.W016": "as W012",
}
CLEAN = {
    "pyproject.toml": '[project]\ndependencies = [\n    "django>=5",  # the frame\n]\n'
    '[project.optional-dependencies]\ndev = [\n    "pytest",  # tests\n]\n',
    "requirements/runtime.lock": "django==5.2\n",
    "requirements/dev.lock": "django==5.2\npytest==9.0 ; python_version < '4'\n",
    "dashboard/__init__.py": "",
    "dashboard/page.py": '"""A page."""\n\n\nclass Page:\n    """It."""\n',
    "dashboard/words.py": '"""W."""\n\nCOMMON, ALONE = {"output": 1, "message": 2}, {"run.done": 1}\n',
    "conversations/rendering/flood_rows.py": '"""F."""\n\n\ndef flood():\n    """F."""\n    render("flood")\n',
    "conversations/migrations/0001.py": "x = 1\n" * 500,
    "static/js/html.js": 'import { a } from "./a.js";\nnode.innerHTML = a;\n',
    "static/js/a.js": "export const a = 1; // https://www.w3.org/2000/svg\n",
    "static/js/rows.js": "/** One row. */\nconst { told: text } = row.said; // one => found\n",
    "static/css/app.css": '@import url("parts/row.css");\n:root { --ink: #000; }\n',
    "static/css/parts/row.css": ".row { color: var(--ink); }\n",
    "templates/partials/sprite.html": '<symbol id="i-ok"></symbol>\n',
    "templates/events/flood.html": "{# A flood, drawn by `flood_rows.flood`. #}{% macro draw(e, level) %}\n",
    "templates/events/mail.html": '{# `Row(template="mail")` #}{% macro draw(e, fields, extra) %}\n',
    "templates/page.html": '<p>{{ icon("ok") }}</p><script src="a.js"></script>\n',
}
# What breaks a rule: the rule, a file, its text, and what of the complaint has to be there.
BREAKS = [
    ("short_files", "dashboard/long.py", '"""Long."""\n' + "x = 1\n" * 400, "dashboard/long.py: 401 lines"),
    ("short_files", "tests/test_long.py", "x = 1\n" * 401, "tests/test_long.py: 401 lines"),
    (
        "short_functions",
        "dashboard/f.py",
        '"""F."""\n\n\ndef f():\n    """F."""\n' + "    x = 1\n" * 39,
        "f has 41 lines",
    ),
    (
        "messages_of_errors",
        "agents_app/gone.py",
        '"""G."""\n\n\nclass SwitchboardError(Exception):\n    """S."""\n\n\n'
        'def f(name):\n    """F."""\n    raise SwitchboardError(f"{name} is gone")\n',
        "gone.py:10: begins with name",
    ),
    (
        "principals_of_imports",
        "dashboard/i.py",
        '"""I."""\n\nIMPORT = "import:"\nTARGET = f"import:{IMPORT}"\n',
        "i.py:3: use `principals.is_imported`",
    ),
    ("docstrings", "agents_app/bare.py", "x = 1\n", "agents_app/bare.py:1: no docstring"),
    ("docstrings", "switchboard/a.py", '"""A."""\n\n\nclass A:\n    """A."""\n\n    def b(self): ...\n', "7: b has no"),
    (
        "distinct_class_names",
        "agents_app/page.py",
        CLEAN["dashboard/page.py"],
        "class Page is also defined",
    ),
    (
        "tables_of_event_types",
        "agents_app/a.py",
        '"""A."""\n\nA = {"run.done": 1, "run.failed": 2}\nC = {"output": 1}\n',
        "agents_app/a.py:3: a table",
    ),
    (
        "tables_of_event_types",
        "agents_app/a.py",
        '"""A."""\n\nB = ("message", "run.done", "tool_step")\n',
        "a.py:3: a table",
    ),
    ("tables_of_event_types", "conversations/asgi/agui/run_encoder.py", '"""R."""\n', "run_encoder.py: no table"),
    ("written_payloads", "agents_app/a.py", '"""A."""\n\nA = {"event": "run.eaten"}\n', "a.py:3: run.eaten is no"),
    (
        "written_payloads",
        "agents_app/a.py",
        '"""A."""\n\nA = {"event": "run.done", "never_heard_of": 1}\n',
        "a.py:3: run.done has no never_heard_of",
    ),
    (
        "tables_of_scripts",
        "static/js/state-events.js",
        'const LEAVES_STATE = new Set(["token"]);\n',
        "state-events.js: output has the trait `leaves_state`: list it",
    ),
    (
        "tables_of_scripts",
        "static/js/state-events.js",
        'const LEAVES_STATE = new Set(["message"]);\n',
        "state-events.js: message lacks the trait `leaves_state`",
    ),
    ("tables_of_scripts", "static/js/b.js", 'const isOver = kind === "run.eaten";\n', "b.js: run.eaten is no event"),
    ("banned_names", "agents_app/telling.py", '"""T."""\n', "a module named telling"),
    ("banned_names", "agents_app/a.py", '"""A."""\n\n\ndef _told():\n    pass\n', "4: _told says nothing"),
    ("filler_names", "agents_app/a.py", '"""A."""\n\nfound = 1\n', "a.py:3: rename it: `found` does not say"),
    ("filler_names", "agents_app/a.py", '"""A."""\n\nget = lambda one: one\n', "a.py:3: rename it: `one` does not say"),
    ("filler_names", "tests/support/a.py", "told = 1\n", "tests/support/a.py:1: rename it: `told` does not say"),
    ("filler_attributes", "tests/a.py", "def heard(): ...\n", "tests/a.py:1: heard does not say what it is"),
    (
        "filler_attributes",
        "agents_app/a.py",
        '"""A."""\n\n\nclass Page:\n    """A page."""\n\n    made: int\n',
        "a.py:7: made does not say what it is",
    ),
    ("vague_bounds", "agents_app/a.py", '"""A."""\n\nLONGEST_KEY = 3\n', "a.py:3: LONGEST_KEY is a MAX_ or MIN_"),
    (
        "vague_bounds",
        "agents_app/a.py",
        '"""A."""\n\nMAX_ITEMS = 3\n',
        "a.py:3: MAX_ITEMS is a MAX_ or MIN_ of something",
    ),
    ("filler_attributes", "agents_app/a.py", '"""A."""\n\n\ndef _held():\n    pass\n', "a.py:4: _held does not say"),
    *(
        ("filler_names_of_scripts", "static/js/z.js", f"// z\n{text}\n", f"z.js:2: rename it: `{name}` does not say")
        for name, text in [
            ("found", "const found = 1;"),
            ("told", "for (const told of rows) draw(told);"),
            ("asked", 'let { key, at: asked = "", ...rest } = row;'),
            ("one", "const first = rows.find((one) => one.seq);"),
            ("one", "rows.find(one => one.seq);"),
            ("said", "const draw = async ({ key, said }, row = next()) => {};"),
            ("kept", "export async function draw(row, [first, kept]) {}"),
            ("heard", "  async #draw(a, heard) {}"),
            ("taken", "  #taken() {}"),
            ("known", "  #known = new Map();"),
        ]
    ),
    ("imports_exist", "static/js/b.js", 'import { x } from "./gone.js";\n', "imports ./gone.js"),
    (
        "nothing_from_elsewhere",
        "static/css/x.css",
        "a { background: url(//cdn.example.com/a.png); }",
        "cdn.example.com",
    ),
    ("nothing_from_elsewhere", "templates/x.html", '<img src="https://example.com/a.png">', "example.com"),
    ("one_door_for_markup", "static/js/b.js", "node.insertAdjacentHTML('x', y);\n", "belongs in html.js"),
    ("small_elements", "static/js/b.js", "customElements.define('x-y', X);\n" + "//\n" * 150, "151 lines"),
    ("sheet_rules", "static/css/parts/row.css", "a { color: red !important; }", "!important"),
    ("sheet_rules", "static/css/parts/row.css", "#main { color: red; }", "the id #main"),
    ("sheet_rules", "static/css/parts/row.css", "a { color: var(--gone); }", "--gone is set nowhere"),
    ("cheap_siblings", "static/css/parts/row.css", ".a > p + p { color: red; }", "p + p; write :not(:first-child)"),
    ("sheets_are_loaded", "static/css/parts/lost.css", "a { color: red; }", "lost.css: no page loads it"),
    ("sheets_are_loaded", "static/css/app.css", '@import url("parts/gone.css");', "parts/gone.css: imported"),
    ("nothing_inline", "templates/x.html", '<p style="color: red">', "x.html:1: style="),
    ("nothing_inline", "templates/x.html", "<p>\n<script>go()</script>", "x.html:2: <script"),
    ("nothing_inline", "templates/x.html", "{{ body | safe }}", "safe"),
    ("symbols_exist", "templates/x.html", '{{ icon("gone") }}', "no gone"),
    ("labels_without_article", "templates/x.html", '<summary>{{ icon("ok") }}Add a rule</summary>', "Add a rule"),
    ("named_modules_exist", "templates/x.html", "{# `row` is a `fragments.marks.Row`. #}", "there is no module marks"),
    (
        "drawn_by_whom",
        "templates/events/x.html",
        "{# X. #}{% macro draw(e, fields, extra) %}",
        'name `Row(template="x")`',
    ),
    (
        "drawn_by_whom",
        "templates/events/x.html",
        '{# `Row(template="x")` #}{% macro draw(e) %}',
        "draw(e, fields, extra)",
    ),
    ("drawn_by_whom", "templates/events/flood.html", "{# It. #}{% macro draw(e) %}", "does not name flood_rows.flood"),
    (
        "drawn_by_whom",
        "templates/events/x.html",
        '{# `Row(template="x")`, `flood_rows.flood` #}{% macro draw(e, fields, extra) %}',
        "flood_rows.flood does not draw it",
    ),
    ("no_foreign_places", "dashboard/x.py", "# see /work/main/notes\n", "dashboard/x.py:1"),
    ("nothing_generated", "uv.lock", "", "uv.lock"),
    ("dependencies_are_explained", "pyproject.toml", CLEAN["pyproject.toml"].replace("  # tests", ""), "pytest"),
    ("locks_are_whole", "requirements/dev.lock", "django==5.2\n", "dev.lock: pytest is missing"),
    ("locks_are_whole", "requirements/runtime.lock", "django==5.1\n", "lacks django==5.1"),
    ("locks_are_whole", "requirements/runtime.lock", "django @ https://example.com/d.whl\n", "runtime.lock: django @"),
]

Project = Callable[[dict[str, str]], Path]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return what writes a project under version control."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        subprocess.run(["git", "add", "-A", "-f"], cwd=tmp_path, check=True)
        return tmp_path

    return write


def test_a_clean_project_breaks_no_rule(project: Project) -> None:
    root = project(CLEAN)

    assert [problem for rule in RULES for problem in rule(root)] == []


@pytest.mark.parametrize(("rule", "name", "text", "complaint"), BREAKS, ids=lambda value: str(value)[:40])
def test_a_broken_rule_is_named_with_its_place(
    project: Project, rule: str, name: str, text: str, complaint: str
) -> None:
    root = project(CLEAN | {name: text})

    complaints = [problem for one_of in RULES if one_of.__name__ == rule for problem in one_of(root)]

    assert any(complaint in problem for problem in complaints), complaints


def test_every_rule_is_shown_to_find_something() -> None:
    assert {rule for rule, *_ in BREAKS} == {rule.__name__ for rule in RULES}


def test_pattern_finds_what_it_forbids() -> None:
    for line in ('"/work/main/x"', "cd /root/project", "see /tmp/notes", "--index-url x", "https://pypi.org/simple"):
        assert FOREIGN.search(line), line
    for line in ("/tmpl/x", "templates/root/x", "https://packaging.python.org", "/conversations/work/x", "~/tmp/x"):
        assert not FOREIGN.search(line), line


def test_make_check_runs_the_rules() -> None:
    recipe = (ROOT / "Makefile").read_text().split("\ncheck:")[1].split("\n\n")[0]

    assert "python -m tests.checks" in recipe


def test_deployment_check_warns_of_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DJANGO_ALLOW_ASYNC_UNSAFE", raising=False)  # these tests' own, see conftest

    warned = {message.id for message in checks.run_checks(include_deployment_checks=True)}

    assert warned == set(ACCEPTED)


def test_modules_that_may_have_a_table_of_event_types_are_there():
    assert [name for name in sorted(TABLES_APART) if not (ROOT / name).is_file()] == []
