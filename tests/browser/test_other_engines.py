"""What Firefox and Safari lack or do otherwise: each simulated in Chromium, or the mechanism that avoids it."""

from playwright.sync_api import Page

PILL = """async () => {
  const { NewsPill } = await import("/static/js/news-pill.js");
  const { TailPill } = await import("/static/js/tail-pill.js");
  document.body.innerHTML = `<button class="news"><span>1 new row</span></button>
    <div><button class="pill"><span>1 new</span></button></div>`;
  const [news, host] = [document.querySelector(".news"), document.querySelector("div")];
  const newsPill = new NewsPill(news, () => {}, new AbortController().signal);
  const tailPill = new TailPill(host, () => {});
  const pressed = [...document.querySelectorAll("span")].map((label) => label.firstChild);
  newsPill.show(2, "2 new rows");
  tailPill.add({ count: 2, names: ["Desk"] });
  tailPill.draw();
  return pressed.map((node) => [node.isConnected, node.data]);
}"""
TIME = """async () => {
  document.body.innerHTML = '<a href="#e1"><time datetime="2001-11-21T22:02:07Z" data-age>now</time></a>';
  const pressed = document.querySelector("time").firstChild;
  const { drawTimes } = await import("/static/js/clock.js");
  drawTimes();
  return [pressed.isConnected, pressed.data !== "now"];
}"""
ICONS = """async () => {
  const { morph } = await import("/static/js/morph.js");
  const { render } = await import("/static/js/html.js");
  const icon = (state) => `<svg class="icon"><use href="#i-s-${state}"></use></svg>`;
  const drawn = (state) => render(`<p><span data-state="${state}">${icon(state)}Desk</span></p>`).firstChild;
  document.body.replaceChildren(drawn("running"));
  const [row, label, turning] = ["p", "span", "svg"].map((name) => document.querySelector(name));
  morph(row, drawn("running"));
  const before = turning.isConnected;
  morph(row, drawn("done"));
  return [before, turning.isConnected, label.isConnected, row.isEqualNode(drawn("done"))];
}"""


def test_a_label_that_changes_under_a_press_keeps_its_text_node(empty_page: Page) -> None:
    assert empty_page.evaluate(PILL) == [[True, "2 new rows"], [True, "2 new from Desk"]]
    assert empty_page.evaluate(TIME) == [True, True]


def test_an_icon_that_turns_is_replaced_once_its_state_ends(empty_page: Page) -> None:
    assert empty_page.evaluate(ICONS) == [True, False, True, True]
