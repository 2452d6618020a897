"""Excerpts cost a bounded number of steps, whatever is searched for and in whatever text."""

from __future__ import annotations

import json

import pytest

from conversations import search
from conversations.events.log import Stored
from conversations.search import excerpt, tokenizer
from conversations.search.query import Term

REPEATED = " ".join(f'"{"a " * length}"' for length in range(57, 62))  # five phrases
EVERYWHERE, NOWHERE = "a " * 4_000, f"{'a ' * 56}b " * 70


def hit(**body: str) -> search.SearchHit:
    """Return a hit on an event with this body."""
    return search.SearchHit(1, "", Stored("c", 1, "message", 1, "token:robot", None, None, None, json.dumps(body)))


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the words that are compared with a word of a phrase."""
    words: list[str] = []
    fits = Term.fits

    def counting(term: Term, at: int, word: str) -> bool:
        words.append(word)
        return fits(term, at, word)

    monkeypatch.setattr(Term, "fits", counting)
    return words


@pytest.mark.parametrize("text", [EVERYWHERE, NOWHERE])
def test_phrases_over_a_repetitive_text_are_compared_a_bounded_number_of_times(compared, monkeypatch, text):
    monkeypatch.setattr(excerpt, "MAX_COMPARED", 20_000)

    cut = list(search.of_hits([hit(content=text), hit(content=text)], search.read(REPEATED)))

    assert len(cut) == 2
    assert 1_000 < len(compared) <= 20_000


def test_past_the_bound_an_excerpt_is_a_beginning_and_other_events_have_their_marks(monkeypatch):
    monkeypatch.setattr(excerpt, "MAX_COMPARED", 2_000)
    hits = [hit(content=NOWHERE), hit(content="then a refund is due")]

    (first,), (second,) = search.of_hits(hits, search.read(f'{REPEATED} "a refund"'))

    assert first.text.startswith("a a a")
    assert first.marks == []
    assert [second.text[start:end] for start, end in second.marks] == ["a refund"]


def test_a_phrase_is_not_compared_past_the_excerpt_that_shows_it(compared):
    text = "a refund, " + "other words " * 50 + "a refund " * 500

    ((cut,),) = search.of_hits([hit(content=text)], search.read('"a refund"'))

    assert [cut.text[start:end] for start, end in cut.marks] == ["a refund"]
    assert compared == ["refund"]


@pytest.fixture
def split(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the words into which texts are split."""
    words: list[str] = []
    read = tokenizer.read
    monkeypatch.setattr(tokenizer, "read", lambda text: ((words.append(word.text), word)[1] for word in read(text)))
    return words


LONG = "a refund " + "refunded " * 5_000


def test_a_text_is_split_no_further_than_the_excerpt_that_shows_it(split):
    query = search.read('refund "no such words"')
    split.clear()

    ((cut,),) = search.of_hits([hit(content=LONG)], query)

    assert [cut.text[start:end] for start, end in cut.marks] == ["refund"]
    assert len(split) < 1_000


def test_a_bounded_number_of_words_is_split_off_on_a_page(split, monkeypatch):
    monkeypatch.setattr(excerpt, "MAX_SPLIT", 2_000)
    query = search.read('refund "refunded a"')  # each word of the phrase is there, but not in this order
    split.clear()

    cut = list(search.of_hits([hit(content=LONG), hit(content=LONG), hit(content="then refunded a day")], query))

    assert len(split) <= 2_000
    assert [excerpts[0].text[start:end] for excerpts in cut for start, end in excerpts[0].marks] == [
        *("refund", "refund", "refunded a")
    ]


def test_a_field_with_more_of_the_terms_is_shown_first_wherever_they_are_in_it():
    fields = {"one": "refund", "two": "refund " * 100 + "paid " * 100 + "today", "three": "paid today"}

    (cut,) = search.of_hits([hit(**fields)], search.read("refund paid today"))

    assert [shown.label for shown in cut] == ["two", "three"]


def test_for_single_characters_each_distinct_character_of_a_text_is_folded_once(monkeypatch):
    folded = []
    fold = tokenizer.fold
    monkeypatch.setattr(tokenizer, "fold", lambda text: folded.append(text) or fold(text))
    query = search.read("水 火 木 ｶ")
    folded.clear()

    ((cut,),) = search.of_hits([hit(content="a水bカ木" * 300)], query)

    assert "".join(cut.text[start:end] for start, end in cut.marks[:3]) == "水カ木水"
    assert sorted(folded) == sorted("a水bカ木")
