"""How the tests run axe-core: it reads each colour once and finds what it finds without that."""

from playwright.sync_api import Page

from tests.browser import violations

TEXTS = """<!doctype html><html lang="en"><title>Texts</title><main><h1>Texts</h1>
<p style="color: oklch(0.8 0.05 200); background: oklch(0.85 0.02 200)">first</p>
<p style="color: #999; background: #aaa">second</p>
<p style="color: oklch(0.4 0.1 200 / 20%); background: #fff">third</p>
<p style="color: #000; background: #aaa">legible</p>
<p style="color: #999; background: #aaa">like the second</p>
<p style="color: #999; background: #000">legible, too</p>
</main></html>"""


def test_each_text_of_low_contrast_is_found(empty_page: Page) -> None:
    empty_page.set_content(TEXTS)

    for _ in range(2):
        faults = violations(empty_page)
        assert [fault.partition(": ")[0] for fault in faults] == ["color-contrast"] * 4
        assert [fault.partition('">')[2].partition("<")[0] for fault in faults] == [
            *("first", "second"),
            *("third", "like the second"),
        ]
