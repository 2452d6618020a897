"""Nothing moves while a page loads: what scripts draw anew has its room, and its words, from the first paint on."""

from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser import team_server, work
from tests.browser.piecewise import open_in_pieces
from tests.support.live import ROOT, Server
from tests.support.tiers import sampled

MOST = 0.01  # cumulative layout shift of a page, all shifts added up
WIDTHS = {"phone": (390, 844), "desk": (1440, 900)}
NOTE = """
window.shifts = [];
const where = ({ node, previousRect: was, currentRect: is }) =>
  `${(node?.outerHTML ?? node?.textContent ?? "gone").slice(0, 90)} from ${[was.x, was.y]} to ${[is.x, is.y]}`;
new PerformanceObserver((list) => {
  for (const one of list.getEntries())
    if (!one.hadRecentInput) shifts.push([one.value, one.sources.map(where)]);
}).observe({ type: "layout-shift", buffered: true });
"""
SETTLED = """async () => {
  const calm = () => new Promise((done) => requestAnimationFrame(() => requestIdleCallback(done, { timeout: 500 })));
  for (let n = 0; n < 3; n += 1) await calm();
  return shifts;
}"""
TEAM = """
t.team()
t.say(o, 'tree', 'A lime tree has fallen across the tram stop', client_id='1')
t.ask(o, 'noise', client_id='1')
t.fail(o, 'swing', client_id='1')
from conversations.events import log
from tests.support.toolcalls import call
for n in range(12):
    status = ('success', 'error')[n % 2]
    log.append(call('desk', n, status=status, duration_ms=17, agent='Desk', name='look_up', args={'n': n}))
"""
ADDRESSES = """
from conversations.models import Approval, ToolCall
recorded = Conversation.objects.exclude(key__in=["tree", "noise", "swing", "desk"]).first()
print(Approval.objects.first().id, ToolCall.objects.filter(name="look_up").first().id, recorded.key)
"""
PAGES = [
    "/", "/?q=nothing+like+it", "/approvals/", "/approvals/?view=all", "/approvals/rules/", "/calls/", "/agents/",
    "/agents/Town%20Hall/Dialogue/", "/tools/Town%20Hall/file_incident/", "/numbers/", "/audit/", "/audit/1/",
    "/audit/record/",
    "/people/", "/tokens/", "/policies/", "/policies/budgets/", "/alerts/", "/ops/", "/ops/quarantine/",
    "/search/?q=lime", "/account/", "/connect/", "/conversations/noise/fork/?event=1", "/compare/?a=noise&b=swing",
]  # fmt: skip
VIEWS = ["", "?view=lanes", "?view=timeline", "?view=graph", "?at=2"]


@pytest.fixture(scope="module")
def served() -> Server:
    """A team with a request that waits, a run that failed, and a recording of another year."""
    with team_server(TEAM) as started:
        started.command("import", str(ROOT / "tests/samples/simulations.json"))
        yield started


@pytest.fixture
def noted(desk: BrowserContext) -> Page:
    """A window that notes what moves in it."""
    page = desk.new_page()
    page.add_init_script(NOTE)
    yield page
    page.close()


def addresses(served: Server) -> list[str]:
    """Return where every page is."""
    approval, call, recorded = work(served, ADDRESSES).split()[-3:]
    talks = [f"/conversations/{talk}/{view}" for talk in ("noise", recorded) for view in VIEWS]
    return [*PAGES, f"/approvals/{approval}/", f"/calls/{call}/", *talks]


CUTS = [
    '<nav class="nav"', 'href="/approvals/"', 'href="/calls/"', 'href="/agents/"', 'popovertarget="more-menu"',
    "<list-filter", "<form role", "<select", '<button class="button" data-submit',
    "New conversation</summary>", "conversation</summary>",
]  # fmt: skip


def shifts_of(page: Page, server: Server, *cuts: str) -> dict[str, list[Any]]:
    """Return what moves while a document comes in two pieces, by where it is cut; what moves nothing is left out."""
    html = page.request.get("/").text()
    moved = {}
    for cut in cuts:
        at = html.rindex("<", 0, html.index(cut)) if cut.startswith(("href", "popover")) else html.index(cut)
        open_in_pieces(page, server, html, at)
        moved[cut] = page.evaluate("shifts")
    return {cut: shifts for cut, shifts in moved.items() if shifts}


@pytest.mark.parametrize("width", ["phone", pytest.param("desk", marks=pytest.mark.thorough)])
def test_nothing_moves_while_a_document_comes_in_pieces(served: Server, noted: Page, width: str) -> None:
    noted.set_viewport_size(dict(zip(("width", "height"), WIDTHS[width], strict=True)))

    assert shifts_of(noted, served, *CUTS) == {}


def test_nothing_moves_at_the_end_of_a_head_as_it_comes(served: Server, noted: Page) -> None:
    assert shifts_of(noted, served, "<select", "New conversation</summary>") == {}


def test_a_head_that_nothing_follows_shows_its_actions(noted: Page) -> None:
    noted.goto("/numbers/?from=nonsense")

    expect(noted.get_by_role("alert")).to_be_visible()


def test_the_word_for_the_connection_moves_nothing_as_it_comes(noted: Page) -> None:
    noted.set_viewport_size({"width": 390, "height": 844})
    noted.goto("/")
    expect(noted.locator("live-state[data-state=live]")).to_be_visible()

    shifts = noted.evaluate(SETTLED)

    assert [shift for shift in shifts if "tools" in str(shift)] == []


@pytest.mark.parametrize("width", ["phone", pytest.param("desk", marks=pytest.mark.thorough)])
def test_nothing_moves_while_a_page_loads(served: Server, noted: Page, width: str) -> None:
    moved = {}
    noted.set_viewport_size(dict(zip(("width", "height"), WIDTHS[width], strict=True)))

    for address in sampled(addresses(served), one_of=3):
        answer = noted.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        shifts = noted.evaluate(SETTLED)
        if sum(value for value, _ in shifts) > MOST:
            moved[address] = shifts

    assert moved == {}
