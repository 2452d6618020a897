"""Characters that cannot be seen are named, and those that a script or an emoji needs are left alone."""

import json
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from conversations.core import hidden_characters
from conversations.rendering import richtext
from tests.support.drawn_html import Seen


@pytest.mark.parametrize(
    "code",
    [0x202E, 0x2066, 0x200B, 0xFEFF, 0x0, 0x7, 0x1B, 0x9B, 0xAD, 0xE0001, 0x2028, 0x3164, 0xD800, 0x1BCA0, 0x1BCA3],
)
def test_invisible_character_is_named(code):
    assert f"U+{code:04X}" in Seen(hidden_characters.to_html(f"a{chr(code)}b")).text


def test_name_of_the_character_is_in_the_title():
    assert (
        hidden_characters.to_html("\u202e") == '<span class="hidden-char" title="RIGHT-TO-LEFT OVERRIDE">U+202E</span>'
    )


def test_entity_of_an_invisible_character_is_named_too():
    assert "U+202E" in Seen(richtext.render("a &#8238; b &#x202e;")).text


def test_words_of_tag_characters_are_spelled_out():
    secret = "".join(chr(0xE0000 + ord(c)) for c in "ignore <b>")

    assert Seen(hidden_characters.to_html(f"Hello{secret}")).text == "Hello10 tag characters: ignore <b>"


def test_long_run_is_one_token():
    assert Seen(hidden_characters.to_html("\u200b" * 40_000)).text == "U+200B ×40,000"


def test_many_tokens_do_not_grow_without_bound():
    html = hidden_characters.to_html("a\u200b" * 50_000)

    assert len(html) < 200_000
    assert html.endswith("a\ufffd")


@pytest.mark.parametrize(
    "text",
    [
        "👨\u200d👩\u200d👧",
        "❤\ufe0f 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈",
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "می\u200cخواهم",
        "क्\u200dष क्\u200cष",
        "葛\U000e0100",
        "\u1820\u180b",
    ],
)
def test_joiners_and_selectors_that_are_needed_stay(text):
    assert hidden_characters.to_html(text) == text


@pytest.mark.parametrize(
    "text", ["a\u200db", "\u200d\u200d", "می\u200c\u200cx", "a\ufe0f", "❤\ufe0f\ufe0f", "x\U000e0100", "🏴\U000e0041"]
)
def test_the_same_characters_elsewhere_are_named(text):
    assert "hidden-char" in hidden_characters.to_html(text)


def test_json_with_hidden_characters_stays_the_same_json():
    drawn = hidden_characters.to_json_html('"a\u202e\U000e0041"')

    assert Seen(drawn).text == '"a\\u202e\\udb40\\udc41"'


def test_json_with_very_many_of_them_stays_the_same_json_too():
    value = "a\u200b" * 1_000

    assert json.loads(Seen(hidden_characters.to_json_html(json.dumps(value, ensure_ascii=False))).text) == value


def test_attributes_get_words_instead_of_elements():
    assert hidden_characters.spelled_out("maria\u202e") == "maria[U+202E]"


def test_every_language_of_the_sample_is_left_alone():
    folder = Path(settings.SAMPLES_DIR) / "scripts-udhr"
    if not folder.is_dir():
        pytest.skip(f"no sample of languages in {folder}")
    for path in folder.glob("*.html"):
        text = path.read_text(encoding="utf-8").replace("\r", "")

        assert hidden_characters.to_html(text) == text, path.name


@given(st.text(max_size=200))
def test_nothing_invisible_is_left_but_what_a_neighbour_needs(text):
    drawn = hidden_characters.to_html(text)

    assert hidden_characters.to_html(drawn) == drawn
    drawn.encode("utf-8")  # no lone surrogate is left to break a frame
