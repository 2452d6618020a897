"""Windows that tests share, one after another: to open one costs as much CPU as the page that it shows."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import BrowserContext, Page

LASTING = (
    *("route", "route_web_socket", "add_init_script", "on", "once", "expose_function", "expose_binding"),
    *("set_extra_http_headers", "set_default_timeout", "add_locator_handler"),
)
"""What a test cannot take back, so that nobody else gets its window."""
FORGET = """() => {
  sessionStorage.clear();
  localStorage.clear();
}"""


class Windows:
    """Lends a window of a browser, and takes it back for the next test as it was when it was opened."""

    def __init__(self, context: BrowserContext) -> None:
        self._context = context
        self._free: list[Page] = []
        self._lasting: set[Page] = set()

    @contextmanager
    def lent(self) -> Iterator[Page]:
        """Lend a window that nobody uses."""
        page = self._free.pop() if self._free else self._open()
        yield page
        self._take_back(page)

    def _take_back(self, page: Page) -> None:
        """Take a window back from its test: it leaves its page, which ends what goes on there."""
        if page.is_closed():
            return
        is_ours = page.url.startswith("http")
        if is_ours:
            page.wait_for_load_state("domcontentloaded")
            page.evaluate(FORGET)
        if page in self._lasting or not is_ours:
            page.close()
            return
        page.emulate_media(media="screen", color_scheme="light")
        page.goto("about:blank")
        page.mouse.move(0, 0)
        if page.viewport_size != self._size:
            page.set_viewport_size(self._size)
        self._free.append(page)

    def _open(self) -> Page:
        page = self._context.new_page()
        size = page.viewport_size
        assert size is not None
        self._size = size
        for name in LASTING:
            setattr(page, name, self._noting(page, getattr(page, name)))
        return page

    def _noting(self, page: Page, lasting: Any) -> Any:
        def noting(*arguments: Any, **options: Any) -> Any:
            self._lasting.add(page)
            return lasting(*arguments, **options)

        return noting
