"""The connection goes and comes back: what the strip says is what happened."""

import itertools
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser import Wires, in_every_look, violations
from tests.browser.transcript import Transcript
from tests.support.live import Server, until
from tests.support.tiers import variants

_number = itertools.count(1)


@pytest.fixture
def transcript(page: Page, server: Server, token: str) -> Iterator[Transcript]:
    """A conversation with five lines, open; its server runs again afterwards."""
    opened = Transcript(page, server, token, f"connection-{next(_number)}")
    opened.say(*[f"line {n}" for n in range(5)])
    yield opened.open()
    page.context.set_offline(False)
    if server.process is None or server.process.poll() is not None:
        server.start()


@contextmanager
def away(page: Page) -> Iterator[None]:
    """Keep the window from finding its way back while the record goes on."""
    page.context.set_offline(True)
    yield
    page.context.set_offline(False)


@pytest.fixture
def long_transcript(page: Page, server: Server, token: str) -> tuple[Wires, Transcript]:
    """A conversation of several pages, open at its end, whose socket has been cut."""
    wires = Wires(page)
    transcript = Transcript(page, server, token, f"connection-{next(_number)}")
    transcript.record(*[f"line {n}" for n in range(1200)])
    transcript.open()
    expect(page.locator("live-state[data-state=live]")).to_be_visible()
    wires.cut()
    expect(transcript.strip).to_contain_text("No connection for")
    page.locator(".transcript").focus()
    page.keyboard.press("Home")
    expect(transcript.row(1)).to_be_visible()
    return wires, transcript


@pytest.mark.slow
def test_the_strip_ends_with_the_loss_also_on_a_page_that_follows_nothing(
    long_transcript: tuple[Wires, Transcript],
) -> None:
    wires, transcript = long_transcript

    wires.mend()

    expect(transcript.strip).to_contain_text("Reconnected after")
    expect(transcript.strip).not_to_contain_text("No connection")


@pytest.mark.slow
def test_a_page_that_follows_again_during_the_loss_counts_what_it_missed(
    long_transcript: tuple[Wires, Transcript],
) -> None:
    wires, transcript = long_transcript
    transcript.page.keyboard.press("End")
    expect(transcript.row(1200)).to_be_visible()
    transcript.record("line 1201")

    wires.mend()

    expect(transcript.strip).to_contain_text("1 event restored, event 1,201. Nothing is missing.")


@pytest.mark.thorough
def test_a_killed_server_comes_back_and_the_strip_counts_what_was_restored(transcript: Transcript) -> None:
    transcript.stream(event="token", agent="Dialogue", text="half ", index=0)
    transcript.sees()
    transcript.server.kill()
    expect(transcript.strip).to_contain_text("Showing events up to 6; reconnecting.")
    expect(transcript.strip).to_contain_text("No connection for")
    assert violations(transcript.page) == []

    with away(transcript.page):
        transcript.server.start()
        transcript.stream(event="token", agent="Dialogue", text="a word", index=1)
        transcript.say(*[f"meanwhile {n}" for n in range(36)])
    transcript.sees()

    expect(transcript.strip).to_contain_text("37 events restored, 7 to 43. Nothing is missing.")
    expect(transcript.row(6).locator("[data-live-text]")).to_have_text("half a word")
    assert transcript.rows == [*range(1, 7), *range(8, 44)]
    transcript.say("and on")
    transcript.sees()
    assert transcript.rows[-2:] == [43, 44]


NO_RETRY = """() => {
  const wait = setTimeout;
  globalThis.setTimeout = (act, ...rest) => (String(act).includes("#connect") ? 0 : wait(act, ...rest));
}"""


@pytest.mark.slow
@pytest.mark.parametrize("address", variants(["", "/", "/approvals/", "/calls/", "/audit/"], quick=2))
def test_the_strip_of_a_lost_connection_has_it_try_at_once(transcript: Transcript, address: str) -> None:
    page, wires = transcript.page, Wires(transcript.page)
    page.goto(address or page.url)
    expect(page.locator("live-state[data-state=live]")).to_be_visible()
    page.evaluate(NO_RETRY)
    wires.cut()
    button = page.get_by_role("button", name="Try now")
    expect(button).to_be_visible()
    assert in_every_look(page, "lost", is_part_of_another=address != "") == {}

    wires.mend()
    button.dblclick()

    expect(button).to_be_hidden()
    assert len(wires.open) == 1


@pytest.mark.thorough
def test_a_record_restored_from_a_copy_is_told_and_drawn_anew(transcript: Transcript, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite3"
    with closing(transcript.server.database()) as database, closing(sqlite3.connect(copy)) as older:
        database.backup(older)
    transcript.say("gone", "gone too")
    transcript.sees()
    transcript.server.terminate()
    with away(transcript.page):
        put_back(copy, transcript.server.data_dir / "switchboard.sqlite3")
        transcript.server.start()

    expect(transcript.strip).to_contain_text("The record was restored from a backup. This page was reloaded.")
    until(lambda: transcript.rows == [1, 2, 3, 4, 5], what="the older history")
    transcript.say("a new sixth")
    transcript.sees(6)
    assert transcript.rows == [1, 2, 3, 4, 5, 6]


def put_back(copy: Path, database: Path) -> None:
    """Put an older database in a newer one's place, as a restore does."""
    for leftover in database.parent.glob(f"{database.name}-*"):
        leftover.unlink()
    shutil.copy(copy, database)


def test_a_hole_that_the_server_tells_is_drawn_in_its_place(page: Page, server: Server, token: str) -> None:
    transcript = Transcript(page, server, token, "hole")
    transcript.say("one")
    wires: list[WebSocketRoute] = []
    page.route_web_socket("**/ws/", lambda wire: wires.append(wire))
    transcript.open()
    until(lambda: len(wires), what="the socket")

    tell(wires[0], {"t": "gap", "topic": "stream:hole", "from": 2, "to": 4, "reason": "The stream was trimmed."})

    note = page.locator(".rows .gap")
    expect(note).to_have_text("Events 2 to 4 are missing. The stream was trimmed.")
    expect(transcript.strip).to_contain_text("Events 2 to 4 are missing.")
    expect(transcript.strip).to_have_role("alert")
    assert transcript.rows == [1, 2]


RESTORED = """(detail) => document.querySelector("live-transcript").dispatchEvent(
  new CustomEvent("connection:restored", { bubbles: true, detail }))"""


def test_a_return_that_restored_only_a_gap_counts_no_events_and_links_to_none(transcript: Transcript) -> None:
    transcript.page.evaluate(RESTORED, {"count": 0, "first": 0, "last": 120, "isWhole": False})

    expect(transcript.strip).to_contain_text("Not everything could be restored.")
    expect(transcript.strip).not_to_contain_text("0 events")
    expect(transcript.strip.get_by_role("link")).to_have_count(0)


def tell(wire: WebSocketRoute, frame: dict[str, Any]) -> None:
    """Send a frame to the page as the server would."""
    wire.send(json.dumps(frame))
