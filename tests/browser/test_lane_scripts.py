"""Scripts of the lanes in an empty page of a real browser: what a page of cards and a scroll cost."""

import pytest
from playwright.sync_api import Page

from conversations.events import registry

LANES = """async () => {
  globalThis.card = (seq, folds = "") => `<article class="lane-event" id="e${seq}" data-seq="${seq}" data-sender="a"
    ${folds && `data-folds="${folds}"`}>${folds && `<i id="e${folds}" hidden></i>`}<div class="lane-card">
    <div class="ends"><span class="mark"></span><b class="name">a</b></div></div></article>`;
  globalThis.placed = (...cards) => {
    const fragment = document.createRange().createContextualFragment(cards.join(""));
    document.querySelector("lane-heads").place(fragment);
    return [...fragment.children].map(({ dataset }) => Number(dataset.seq));
  };
  document.body.innerHTML = `<tail-follow><div class="transcript lanes"><lane-heads><template>
    <div class="lane-head"><span class="mark"></span><b class="name"></b></div>
    <div data-others><b class="name"></b></div></template>
    </lane-heads><div class="rows">${card(10)}${card(12, 11)}</div></div></tail-follow>`;
  await import("/static/js/lane-heads.js");
}"""
SEARCHES = """() => {
  let searches = 0;
  for (const name of ["querySelector", "querySelectorAll"]) {
    const search = Document.prototype[name];
    Document.prototype[name] = function (...values) { return (searches += 1), search.apply(this, values); };
  }
  placed(...Array.from({ length: 60 }, (_, n) => card(n + 20)));
  return searches - 1; // that of the element itself, above
}"""


@pytest.fixture
def lanes(empty_page: Page) -> Page:
    """Lanes of the events 10 and 12, of which 12 says the same as 11 and replaces it."""
    empty_page.evaluate(LANES)
    return empty_page


def test_an_output_is_left_out_whichever_of_it_and_its_message_comes_first(lanes: Page) -> None:
    assert lanes.evaluate("placed(card(11), card(13))") == [13]
    assert lanes.evaluate("placed(card(14, 10))") == [14]

    shown = "[...document.querySelectorAll('.lane-event')].map(({ dataset }) => Number(dataset.seq))"
    assert lanes.evaluate(shown) == [12]


def test_a_page_of_cards_is_placed_without_a_search_of_the_document_for_each(lanes: Page) -> None:
    assert lanes.evaluate(SEARCHES) == 0


FOLDED = """async () => {
  const { TranscriptRows } = await import("/static/js/transcript-rows.js");
  document.querySelector(".rows").replaceChildren();
  const heads = document.querySelector("lane-heads");
  const rows = new TranscriptRows(document.querySelector(".lanes"), (fragment) => heads.place(fragment));
  const at = '<time datetime="2026-11-27T10:00:00Z">10</time></article>';
  const put = (seq, folds) => rows.put(card(seq, folds).replace("</article>", at));
  for (let seq = 1; seq <= 12; seq += 1) put(seq); // the day's line is one more
  put(14, 12);
  return [...document.querySelectorAll(".rows")].map(({ children }) =>
    [...children].map(({ dataset, className }) => dataset.seq ?? className));
}"""


def test_a_card_that_was_alone_in_its_stretch_and_is_folded_begins_no_day(lanes: Page) -> None:
    stretches = lanes.evaluate(FOLDED)

    assert [row for stretch in stretches for row in stretch] == ["day", *map(str, range(1, 12)), "14"]


GROUPED = """async () => {
  const { TranscriptRows } = await import("/static/js/transcript-rows.js");
  document.querySelector(".rows").replaceChildren();
  const heads = document.querySelector("lane-heads");
  const rows = new TranscriptRows(document.querySelector(".lanes"), (fragment) => heads.place(fragment));
  for (let seq = 1; seq <= 40; seq += 2) {
    rows.put(card(seq).replace("<article", `<article data-group="turn:${seq}"`));
    rows.put(card(seq + 1, seq));
  }
  rows.unloadOldest(8);
  return Array.from({ length: 20 }, (_, n) => rows.find(`turn:${2 * n + 1}`)).filter(Boolean).length;
}"""


def test_an_output_that_its_message_folded_is_forgotten(lanes: Page) -> None:
    assert lanes.evaluate(GROUPED) == 0


NAMED = """async (name) => {
  document.body.innerHTML = '<div class="lane-head"><b class="name"></b></div>';
  const element = document.querySelector(".name");
  element.textContent = name;
  const { laneOf } = await import("/static/js/lane-head.js");
  laneOf(document.querySelector(".lane-head"));
  return [element.textContent, element.innerHTML];
}"""


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("PermitVerificationDesk", ["Permit", "Verification", "Desk"]),
        ("triage_and_routing", ["triage_", "and_", "routing"]),
        ("geo.locate__address-2", ["geo.", "locate__", "address-", "2"]),
        ("MCP/ВодныйДом", ["MCP/", "Водный", "Дом"]),
        ("Wassermeister", ["Wassermeister"]),
        ("", [""]),
    ],
)
def test_the_name_of_a_lane_breaks_at_its_separators(empty_page: Page, name: str, parts: list[str]) -> None:
    text, html = empty_page.evaluate(NAMED, name)

    assert text == name
    assert html == "<wbr>".join(parts)


ACTIVITY = """async (kinds) => {
  const { LaneActivity } = await import("/static/js/lane-activity.js");
  const cards = kinds.map((kind, n) => {
    const card = document.createElement("article");
    Object.assign(card.dataset, { seq: n + 1, kind, sender: "a", ...(kind.startsWith("run.") && { run: "r" }) });
    return card;
  });
  new LaneActivity().draw(cards);
  return cards.at(-1).querySelectorAll(".activity").length;
}"""


@pytest.mark.parametrize("end", registry.run_ends())
def test_nobody_is_at_work_after_the_end_of_a_run(empty_page: Page, end: str) -> None:
    assert empty_page.evaluate(ACTIVITY, ["run.queued", "message"]) == 1
    assert empty_page.evaluate(ACTIVITY, ["run.queued", end, "message"]) == 0


BUSY = """async (steps) => {
  const { TranscriptRows } = await import("/static/js/transcript-rows.js");
  const heads = document.querySelector("lane-heads");
  const rows = new TranscriptRows(document.querySelector(".lanes"), (...drawn) => heads.place(...drawn));
  const drawn = (cards) => cards.map(([seq, kind]) => card(seq)
    .replace("<article", `<article data-kind="${kind}"${kind.startsWith("run.") ? ' data-run="r"' : ""}`)).join("");
  rows.reset("");
  const gap = () => heads.dispatchEvent(new Event("connection:gap", { bubbles: true }));
  for (const [way, ...cards] of steps) way === "gap" ? gap() : rows[way](drawn(cards));
  return [...document.querySelectorAll(".lane-event:has(> .activity)")].map(({ dataset }) => Number(dataset.seq));
}"""
STARTED = (21, "run.started")


def message(seq: int) -> tuple[int, str]:
    return seq, "message"


@pytest.mark.parametrize(
    ("steps", "busy"),
    [
        pytest.param([("put", STARTED), ("put", message(29))], [21, 29], id="tokens between, which have no cards"),
        pytest.param(
            [("reset", STARTED, message(22)), ("reset", message(900)), ("put", message(901))], [], id="newest"
        ),
        pytest.param(
            [("reset", message(29)), ("reset", STARTED, message(22)), ("extend", message(23))],
            [21, 22, 23],
            id="earlier page",
        ),
        pytest.param(
            [
                ("put", STARTED),
                ("put", message(22)),
                ("extend", message(22), (23, "run.done"), message(24)),
                ("put", message(25)),
            ],
            [21, 22, 23],
            id="the end in a page that overlaps",
        ),
        pytest.param([("put", STARTED), ("gap",), ("put", message(29))], [21], id="missing events"),
        pytest.param([("put", message(29)), ("prepend", STARTED), ("put", message(30))], [21], id="older page"),
    ],
)
def test_an_agent_is_at_work_only_as_far_as_the_cards_drawn_say(
    lanes: Page, steps: list[object], busy: list[int]
) -> None:
    assert lanes.evaluate(BUSY, steps) == busy
