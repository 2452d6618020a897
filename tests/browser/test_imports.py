"""Import in a real browser: a file is sent in pieces, summed up, imported and open; errors name line and cause."""

from itertools import pairwise

from playwright.sync_api import Page, expect

from tests.support.live import ROOT

CHATS = ROOT / "tests" / "samples" / "chats.jsonl"


def send(page: Page, name: str, content: bytes) -> None:
    page.goto("/import/")
    page.get_by_label("File").set_input_files({"name": name, "mimeType": "application/json", "buffer": content})
    page.get_by_role("button", name="Read file").click()


def gaps(page: Page, *selectors: str) -> list[float]:
    """Return how many pixels there are between each of these parts of the page and the next."""
    boxes = [page.locator(f".page {selector}").first.bounding_box() for selector in selectors]
    return [lower["y"] - upper["y"] - upper["height"] for upper, lower in pairwise(boxes) if upper and lower]


def test_a_file_is_sent_in_pieces_and_imported_after_its_summary(page: Page) -> None:
    padding = b'{"messages": [{"role": "user", "content": "' + b"x" * 1_500_000 + b'"}]}\n'

    send(page, "browser-import.jsonl", CHATS.read_bytes() + padding)

    expect(page.locator("[data-state=checked]")).to_contain_text("would become 3 conversations", timeout=30_000)
    assert min(gaps(page, "p.quiet", "[data-state=checked]", "details.beginning")) >= 8
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("[data-state=imported]")).to_contain_text("has become 3 conversations", timeout=30_000)
    page.locator("[data-state=imported] a").first.click()
    expect(page.get_by_text("What may I look up?")).to_be_visible()


def test_what_is_wrong_names_file_line_and_what_was_expected(page: Page) -> None:
    send(page, "browser-import-bad.jsonl", CHATS.read_bytes() + b"[1]\n")

    expect(page.get_by_text("browser-import-bad.jsonl, line 3: must be a JSON object; got list")).to_be_visible(
        timeout=30_000
    )


def test_a_file_of_no_format_is_refused_with_those_that_are_known(page: Page) -> None:
    send(page, "browser-import-unknown.json", b'{"a": 1}')

    expect(page.get_by_role("alert")).to_contain_text("unknown format; supported formats", timeout=30_000)


def test_without_scripts_a_small_file_is_imported_all_the_same(plain_page: Page) -> None:
    send(plain_page, "browser-import-plain.jsonl", CHATS.read_bytes())
    for _ in range(50):
        if "would become" in plain_page.content():
            break
        plain_page.reload()

    expect(plain_page.locator("[data-state=checked]")).to_contain_text("would become 2 conversations")
