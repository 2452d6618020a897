"""Scripts put together: each module once on a page, with its imports and what it exports; what cannot be is refused."""

import re

import pytest
from playwright.sync_api import Browser

from dashboard.script_bundles import SHARED, bundles
from dashboard.static_files import scripts_of_pages
from tests.support.live import ROOT

MODULES = {
    "app.js": 'import "./clock.js";\n/** Begins. */\nglobalThis.order.push("app");\n',
    "clock.js": 'export const now = () => 5;\n// said once\nglobalThis.order.push("clock");\n',
    "one.js": 'import { now as time } from "./clock.js";\nimport { both } from "./both.js";\nimport "./own.js";\n'
    'export async function one() {\n  return both(time());\n}\nglobalThis.order.push("one");\n',
    "two.js": 'import { both } from "./both.js"; // x\nexport const two = both(1);\nglobalThis.order.push("two");\n',
    "both.js": 'const now = 2; // said later\nconst text = "kept // as it is";\n'
    'export function both(n) {\n  return n * now;\n}\nglobalThis.order.push("both");\n',
    "own.js": 'const now = 3;\nexport class Own {}\nglobalThis.order.push("own", now);\n',
    "later.js": 'export const later = 4;\n',
    "three.js": 'export const three = async () => (await import("./later.js")).later;\n',
}  # fmt: skip
PAGES = [["one.js", "two.js"], ["three.js"]]
TRY = """async (files) => {
  globalThis.order = [];
  const urls = {};
  const load = (name) => {
    const text = files[name].replaceAll(/"\\.\\/([\\w-]+\\.js)"/g, (_, other) => `"${urls[other] ?? load(other)}"`);
    return (urls[name] = URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  };
  const one = await import(load("one.js"));
  const [two, three] = [await import(load("two.js")), await import(load("three.js"))];
  return [await one.one(), two.two, await three.three(), globalThis.order.join(" ")];
}"""


def test_files_hold_their_own_modules_and_the_shared_one_what_several_need():
    files = bundles(MODULES, PAGES)

    held = {name: re.findall(r"^const \$(\w+) = ", text, re.MULTILINE) for name, text in files.items()}
    assert held == {
        "app.js": ["both", "clock", "app"], "one.js": ["own", "one"], "two.js": ["two"], "three.js": ["three"],
        "later.js": ["later"],
    }  # fmt: skip
    assert "said" not in files[SHARED]
    assert 'const text = "kept // as it is";' in files[SHARED]


def test_what_two_files_need_that_no_page_has_together_is_in_both():
    files = bundles(MODULES, [["one.js"], ["two.js"], ["three.js"]])

    assert [name for name, text in files.items() if "const $both = " in text] == ["one.js", "two.js"]


def test_what_more_files_need_is_in_the_shared_one():
    more = MODULES | {"four.js": 'import { both } from "./both.js";\nglobalThis.order.push(both(2));\n'}
    files = bundles(more, [["one.js"], ["two.js"], ["three.js"], ["four.js"]])

    assert [name for name, text in files.items() if "const $both = " in text] == ["app.js"]


def test_a_page_has_the_scripts_of_the_page_that_it_extends():
    assert any({"lane-heads.js", "conversation.js"} <= set(scripts) for scripts in scripts_of_pages())


def test_a_browser_runs_each_module_once_in_order(chromium: Browser):
    page = chromium.new_page()

    assert page.evaluate(TRY, bundles(MODULES, PAGES)) == [10, 2, 4, "both clock app own 3 one two"]

    page.close()


def test_a_circle_of_imports_is_refused():
    circle = {"app.js": 'import "./a.js";\n', "a.js": 'import "./b.js";\n', "b.js": 'import "./a.js";\n'}

    with pytest.raises(ValueError, match=r"cycle: app\.js → a\.js → b\.js → a\.js"):
        bundles(circle, [])


@pytest.mark.parametrize(
    "line",
    [
        "export let x = 1;",
        "export default 1;",
        'import x from "./a.js";',
        'import {\n  x } from "./a.js";',
        "export { x };",
    ],
)
def test_what_cannot_be_put_together_is_refused(line: str):
    with pytest.raises(ValueError, match=r"x\.js: must be an import or export that can be bundled"):
        bundles({"app.js": "", "x.js": line + "\n", "a.js": ""}, [["x.js"]])


def test_a_script_takes_from_one_that_its_page_names_beside_it():
    files = bundles(MODULES, [["one.js", "own.js"], ["two.js", "own.js"]])

    assert 'import { $own } from "./own.js";' in files["one.js"]
    assert "const $own = " not in files["one.js"]
    assert "const $own = " in files["own.js"]


def test_no_page_has_a_module_twice():
    sources = {path.name: path.read_text() for path in (ROOT / "static/js").glob("*.js")}
    pages = scripts_of_pages()
    files = bundles(sources, pages)
    held = {
        tuple(page): [
            name for entry in {SHARED, *page} for name in re.findall(r"^const (\$\w+) = ", files[entry], re.M)
        ]
        for page in pages
    }

    assert len(held) > 10
    assert {page for page, names in held.items() if len(set(names)) < len(names)} == set()
