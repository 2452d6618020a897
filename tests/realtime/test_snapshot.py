"""Snapshot + events = fresh snapshot, for every kind: a page drawn now equals an older page with the frames since then.

The client here does what `transcript-rows.js` does: a block takes the place of the one of its group, else it is
appended; an output goes behind what came before it; text is added to its block.
"""

import itertools
import json
import random
import re

import pytest

from conversations.conversation import conversation_list
from conversations.core import principals
from conversations.events import log, registry
from conversations.realtime.live_renderer import LiveRenderer
from dashboard.pages.conversation_entries import entries_of
from dashboard.pages.lanes import cards_alone
from tests.support.event_types import EXAMPLES
from tests.support.grids import for_each
from tests.support.tiers import sampled
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
WHO = [principals.SYSTEM, principals.token_principal("robot"), principals.import_principal("file")]
LIVE_TEXT = re.compile(r"(<[^>]*data-live-text[^>]*>)(.*?)(</)", re.DOTALL)


class Client:
    """Rows by seq order, as the page keeps them."""

    def __init__(self, rows):
        self.rows = [str(row) for row in rows]

    def take(self, event):
        if "html" in event:
            self.put(event["html"])
        elif "text" in event:
            if event.get("opens") and self.find(event["group"]) is None:
                self.put(event["opens"])
            at = self.find(event["group"])
            if at is not None:
                self.rows[at] = LIVE_TEXT.sub(lambda m: m[1] + m[2] + escape(event["text"]) + m[3], self.rows[at])

        for block in event.get("also", ()):
            if self.find(block["group"]) is not None:
                self.put(block["html"])

    def put(self, html):
        at = self.find(group_of(html))
        if at is None:
            at = next((i for i, row in enumerate(self.rows) if seq_of(row) == seq_of(html)), None)
        if at is not None:
            del self.rows[at]
        place = next((i for i, row in enumerate(self.rows) if seq_of(row) > seq_of(html)), len(self.rows))
        self.rows.insert(place, html)

    def find(self, group):
        return next((i for i, row in enumerate(self.rows) if group and group_of(row) == group), None)


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def seq_of(row):
    return int(re.search(r'data-seq="(\d+)"', row)[1])


def group_of(row):
    group_mark = re.search(r'data-group="([^"]*)"', row.split(">", 1)[0] + ">")
    return group_mark[1] if group_mark else None


def fresh(mode="html"):
    page = log.newest_page("c", 1000)
    return [str(row) for row in (cards_alone(page) if mode == "lanes" else entries_of(page))]


def follow(events, cut, mode="html"):
    """Store some, draw the page, store the rest, apply their frames; return both pages."""
    if cut:
        log.append(events[:cut])
    client = Client(fresh(mode) if cut else [])
    artist = LiveRenderer("c", mode)
    for event_ in events[cut:]:
        log.append([event_])
        stored = log.read_after("c", log.head("c") - 1)
        for _, text in artist.draw(stored):
            client.take(json.loads(text))
    return client.rows, fresh(mode)


def test_every_kind_of_the_union_has_an_example():
    assert set(registry.names()) <= set(EXAMPLES)


@pytest.mark.slow
def test_page_and_frames_equal_a_fresh_page_for_any_kind_whoever_says_it():
    for_each(
        sampled(itertools.product(sorted(EXAMPLES), WHO, ["html", "lanes"]), one_of=5), assert_frames_equal_a_fresh_page
    )


def assert_frames_equal_a_fresh_page(kind, principal, mode):
    events = [unchecked("c", payload, principal) for payload in EXAMPLES[kind]]

    live, drawn = follow(events, len(events) // 2, mode)

    assert live == drawn


@pytest.mark.parametrize("mode", ["html", "lanes"])
@pytest.mark.parametrize("seed", range(12))
def test_page_and_frames_equal_a_fresh_page_for_a_shuffle(seed, mode):
    dice = random.Random(seed)
    everything = list(itertools.chain.from_iterable(EXAMPLES.values()))
    chosen = [
        unchecked("c", {k: v for k, v in p.items() if k not in ("id", "tool_call", "approval_id")}, dice.choice(WHO))
        for p in dice.choices(everything, k=30)
    ]

    live, drawn = follow(chosen, dice.randrange(30), mode)

    assert live == drawn


def test_list_and_rows_equal_a_fresh_list():
    everything = list(itertools.chain.from_iterable(EXAMPLES.values()))
    log.append([unchecked("c", p, principals.token_principal("robot")) for p in everything[:6]])
    rows = {row["key"]: row for row in conversation_list.newest_rows(100)}

    log.append([unchecked("c", p, principals.token_principal("robot")) for p in everything[6:]])
    for row in conversation_list.rows(["c"]):
        rows[row["key"]] = row

    assert list(rows.values()) == conversation_list.newest_rows(100)
