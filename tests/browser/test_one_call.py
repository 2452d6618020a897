"""One call's page in a real browser: its form by keyboard, the replay's outcome live, two compared, every look."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import in_every_look
from tests.support.live import Server, until

ASKED = {"type": "message", "sender": "Rosa", "recipient": "agent:Dialogue", "content": "Give me the figures."}


@pytest.fixture(scope="module")
def call(server: Server, token: str) -> str:
    """The call of `give_insights` in the conversation "figures", and another conversation's to compare it with."""
    for key in ("figures", "figures-too"):
        server.publish(token, f"chat:{key}", ASKED | {"conversation_id": key}, key)

    def done() -> list[str]:
        with server.database() as database:
            query = (
                "SELECT c.id FROM conversations_toolcall c "
                "JOIN conversations_conversation t ON t.id = c.conversation_id "
                "WHERE c.name = 'give_insights' AND c.status = 'done' ORDER BY t.key"
            )
            rows = [row[0] for row in database.execute(query)]
        return rows if len(rows) == 2 else []

    return until(done, within=60, what="two calls")[0]


@pytest.mark.slow
def test_a_call_is_made_again_by_keyboard_and_its_outcome_comes_live(page: Page, call: str) -> None:
    page.goto(f"/calls/{call}/")
    expect(page.get_by_role("heading", level=1)).to_have_text("give_insights")
    page.wait_for_selector("live-state[data-state=live]")
    other = page.context.new_page()
    other.goto(f"/calls/{call}/")

    page.keyboard.press("r")
    expect(page.locator("#replay :focus")).to_have_count(1)
    page.get_by_role("button", name="Dry run", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Request to send")).to_be_visible()
    page.get_by_role("button", name="Run for real", exact=True).focus()
    page.keyboard.press("Enter")

    page.wait_for_url(lambda address: "/calls/" in address and call not in address)
    expect(page.get_by_text("a replay of")).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Output compared with the recording")).to_be_visible()
    expect(other.get_by_role("heading", name="Replays")).to_be_visible()  # live: it was open before
    other.close()

    page.goto("/conversations/figures/")
    line = page.locator(".tool > summary", has=page.locator(".tag")).last
    line.scroll_into_view_if_needed()
    boxes = "(line) => ['.tag', '.preview', '.meta'].map((name) => line.querySelector(name).getBoundingClientRect())"
    tag, preview, meta = line.evaluate(boxes)
    assert tag["right"] <= preview["left"]
    assert meta["top"] < tag["bottom"], "all in one line"


@pytest.mark.slow
def test_a_call_that_ended_on_the_page_is_not_asked_about_again(
    page: Page, call: str, server: Server, token: str
) -> None:
    frames: list[str] = []
    fetched: list[str] = []
    page.on("websocket", lambda ws: ws.on("framereceived", lambda frame: frames.append(str(frame))))
    page.on("request", lambda request: fetched.append(request.url) if "part=outcome" in request.url else None)

    def ends() -> list[int]:
        with server.database() as database:
            query = (
                "SELECT e.seq FROM conversations_event e JOIN conversations_conversation c ON c.id = e.conversation_id"
                " WHERE c.key = 'figures' AND e.kind = 'run.done' ORDER BY e.seq"
            )
            return [row[0] for row in database.execute(query)]

    def received(seq: int) -> bool:
        page.wait_for_timeout(20)  # lets the browser's events in
        return any(f'"seq":{seq},"kind":"run.done"' in frame for frame in frames)

    page.goto(f"/calls/{call}/")
    before = len(ends())
    page.get_by_role("button", name="Run for real", exact=True).click()
    page.wait_for_url(lambda address: "/calls/" in address and call not in address)
    expect(page.get_by_role("heading", name="Output compared with the recording")).to_be_visible()
    until(lambda: received(ends()[-1]) if len(ends()) > before else None, what="the replay's end on the page")
    page.wait_for_load_state("networkidle")
    at_its_end = len(fetched)

    server.publish(token, "chat:figures", ASKED | {"conversation_id": "figures"}, "figures-again")
    until(lambda: received(ends()[-1]) if len(ends()) > before + 1 else None, what="another run's end on the page")
    page.wait_for_load_state("networkidle")

    assert len(fetched) == at_its_end


@pytest.mark.slow
def test_the_title_stands_out_and_the_head_leads_to_the_replay(page: Page, call: str) -> None:
    page.goto(f"/calls/{call}/")
    size = "(element) => parseFloat(getComputedStyle(element).fontSize)"
    title = page.get_by_role("heading", level=1).locator("code").evaluate(size)
    assert title > page.locator(".head > .lede").evaluate(size)

    page.get_by_role("link", name="Replay", exact=True).click()

    expect(page.locator("#replay-title")).to_be_in_viewport()


@pytest.mark.slow
def test_what_is_pressed_on_a_phone_is_24_px_high(page: Page, call: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    heights = "(all) => all.map((target) => target.getBoundingClientRect().height)"

    page.goto("/conversations/figures/")
    expect(page.locator(".offered > summary").first).to_be_visible()
    offered = page.locator(".offered > summary").evaluate_all(heights)
    page.goto(f"/calls/{call}/")
    bars = page.locator(".bars > li").evaluate_all(heights)

    assert offered
    assert bars
    assert min(offered + bars) >= 24


def test_ids_are_folded_until_somebody_wants_them(page: Page, call: str) -> None:
    page.goto(f"/calls/{call}/")
    identity = page.locator("aside .card", has_text="Identity")
    expect(identity.get_by_text("Public name")).to_be_visible()
    expect(identity.get_by_text("Lookup key")).to_be_hidden()

    identity.get_by_text("IDs", exact=True).click()

    expect(identity.get_by_text("Lookup key")).to_be_visible()
    expect(identity.get_by_text("Call ID from the provider")).to_be_visible()


@pytest.mark.slow
def test_axe_finds_nothing_on_the_pages_of_calls(page: Page, call: str) -> None:
    page.goto(f"/calls/{call}/")
    first = page.get_by_role("link", name="Compare").first
    faults = in_every_look(page, "call")
    first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Two calls compared")

    assert faults | in_every_look(page, "compared") == {}
