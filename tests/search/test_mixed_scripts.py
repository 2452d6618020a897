"""Numbers and Latin words beside characters of scripts without spaces are found by any part of the text."""

from __future__ import annotations

import json

import pytest

from conversations import search
from conversations.events.log import Stored
from conversations.search import event_filter
from tests.support.searching import catch_up, say, search_all

TEXTS = {
    "このペンは100円です": ("100円", "は100円", '"100 円"', "100円で", "100"),
    "价格是100元的商品": ("100元", "是100元", "格是100", "元的商"),
    "価格100元": ("価格100元", "格100元", "格100"),
    "次は3回目": ("3回", "は3回", "3回目"),
    "日本v2版本已发布": ("v2版", "本v2", "本v2版", "日本v2版本"),
    "10명이 왔다": ("10명", '"명이 왔"', '"이 왔"', "10명이"),
    "iPhone手机": ("iPhone手", "iphone手机"),
    "ราคา100บาท": ("100บ", "า100", "า100บ"),
    "第３回・大会": ("第3回", '"3回 大"', "3回・大会", "回・大"),
}
NOT_THERE = ("100円", "本100円", "ドル円", "1円", "10円")
OTHER = "100ドルと11円、100 本円、円と100"


def marked(text: str, q: str) -> list[str]:
    """Return the marked parts of a message's excerpt."""
    body = json.dumps({"content": text})
    hit = search.SearchHit(1, "", Stored("c", 1, "message", 1, "token:robot", None, None, None, body))
    ((cut,),) = search.of_hits([hit], search.read(q))
    return [cut.text[start:end] for start, end in cut.marks]


@pytest.mark.django_db
@pytest.mark.parametrize("text", TEXTS)
def test_a_word_with_one_character_beside_it_is_found_inside_a_longer_run(text):
    say("prices", text, OTHER)
    catch_up()

    for q in TEXTS[text]:
        assert ("prices", 1) in search_all(q), q
        assert marked(text, q), q


@pytest.mark.django_db
def test_a_character_that_is_not_beside_the_word_is_no_match():
    say("prices", OTHER)
    catch_up()

    assert {q: search_all(q) for q in NOT_THERE} == {q: [] for q in NOT_THERE}
    assert {q: marked(OTHER, q) for q in NOT_THERE} == {q: [] for q in NOT_THERE}


@pytest.mark.django_db
def test_lists_of_other_things_are_filtered_by_the_same_words():
    say("prices", "このペンは100円です", OTHER)
    catch_up()

    matching = event_filter.matching("100円", 10)

    assert matching is not None
    assert matching.places is not None
    assert [seq for _, seq in matching.places] == [1]


def test_any_part_of_a_text_is_marked_that_cuts_no_word():
    text = "は100円ですv2版、手iPhone の3回"
    cuts = [at for at in range(len(text) + 1) if not text[max(at - 1, 0) : at + 1].isascii() or at in (0, len(text))]
    parts = [text[start:end] for start in cuts for end in cuts if start < end and text[start:end].strip(" 、")]

    assert len(parts) > 80
    assert [part for part in parts if not any(part.strip(" 、") in mark for mark in marked(text, f'"{part}"'))] == []


def test_only_the_characters_are_marked_that_were_searched_for():
    assert marked("このペンは100円です", "100円") == ["100円"]
    assert marked("日本v2版本", "本v2版") == ["本v2版"]
