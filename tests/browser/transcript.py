"""One conversation page in a browser: what the tests of the transcript do and see. Publishes through the real door."""

from typing import Any

from playwright.sync_api import Locator, Page

from conversations.core.url_converters import to_url
from tests.browser import work
from tests.support.live import Server, until

RECORD = """
from tests.support.unchecked import unchecked
t.log.append([unchecked({key!r}, message) for message in {messages!r}])
"""


class Transcript:
    """A conversation of its own, and the page that shows it."""

    def __init__(self, page: Page, server: Server, token: str, key: str) -> None:
        self.page, self.server, self.token, self.key = page, server, token, key
        self.head = 0

    def say(self, *texts: str, sender: str = "agent:Dialogue") -> None:
        """Publish messages."""
        for text in texts:
            self.publish({"type": "message", "sender": sender, "recipient": "agent:Triage", "content": text})

    def record(self, *texts: str, sender: str = "agent:Dialogue") -> None:
        """Record many messages at once, as a command does: a tenth of what publishing each costs."""
        message = {"type": "message", "sender": sender, "recipient": "agent:Triage"}
        work(
            self.server,
            RECORD.format(key=self.key, messages=[message | {"content": text} for text in texts]),
        )
        self.head += len(texts)

    def stream(self, **event: Any) -> None:
        """Publish one stream event."""
        self.publish(event)

    def call(self, name: str = "find", call_id: str = "c1", **step: Any) -> None:
        """Publish one step of a tool call."""
        self.publish({"event": "tool_step", "agent": "Triage", "name": name, "tool_call_id": call_id, **step})

    def publish(self, payload: dict[str, Any]) -> None:
        """Publish anything; the head is what the door answered."""
        status, answer = self.server.publish(self.token, f"stream:{self.key}", payload)
        assert status == 201, answer
        self.head = answer["seq"]

    def open(self, query: str = "") -> "Transcript":
        """Open the page and wait until it follows, or stands at its event."""
        self.page.goto(f"/conversations/{to_url(self.key)}/{query}")
        self.page.wait_for_selector("live-transcript:defined")
        if not self.page.locator("live-transcript[data-has-newer]").count():
            self.sees()
        return self

    def sees(self, seq: int | None = None) -> None:
        """Wait until an event is drawn (the newest published)."""
        wanted = self.head if seq is None else seq
        until(lambda: self.drawn >= wanted, what=f"event {wanted} on the page; it is at {self.drawn}")
        self.settle()

    def settle(self) -> None:
        """Wait for two frames: what was drawn is laid out, and what follows from it is done."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    @property
    def drawn(self) -> int:
        """The seq up to which the page is drawn."""
        return int(self.page.locator("live-transcript").get_attribute("data-head") or 0)

    @property
    def rows(self) -> list[int]:
        """The seqs of the rows, in order."""
        state = self.page.evaluate(
            "() => [...document.querySelectorAll('.rows > [data-seq]')].map((row) => row.dataset.seq)"
        )
        return [int(seq) for seq in state]

    def row(self, seq: int) -> Locator:
        """The row of an event."""
        return self.page.locator(f"#e{seq}")

    @property
    def left(self) -> float:
        """How far the end is below what is in view, in px."""
        script = "(t) => t.scrollHeight - t.scrollTop - t.clientHeight"
        return float(self.page.locator(".transcript").evaluate(script))

    @property
    def is_following(self) -> bool:
        """Whether the tail is in view and followed."""
        return self.left < 1 and not self.page.locator("tail-follow[data-paused]").count()

    @property
    def pill(self) -> Locator:
        """What leads back to the tail."""
        return self.page.locator(".pill")

    @property
    def strip(self) -> Locator:
        """What is said of the connection."""
        return self.page.locator("conversation-strip")

    def wheel(self, px: int) -> None:
        """Scroll as a person does, and wait until it has happened."""
        self.page.locator(".transcript").hover()
        before = self.page.locator(".transcript").evaluate("(t) => t.scrollTop")
        self.page.mouse.wheel(0, px)
        until(lambda: self.page.locator(".transcript").evaluate("(t) => t.scrollTop") != before, what="the scroll")
        self.settle()

    def y(self, seq: int) -> float:
        """Where a row stands on the screen, in px."""
        return float(self.row(seq).evaluate("(row) => row.getBoundingClientRect().top"))
