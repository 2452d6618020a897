"""What axe-core finds on a page."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def violations(page: Page) -> list[str]:
    """Run all rules (WCAG 2.2 A and AA, best practice); answer one line for each finding.

    axe-core puts styles into the page, which the policy refuses with errors on the console: not for a `page` that
    fails on those.
    """
    found = Axe().run(page, options={"preload": False}).response["violations"]
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]
