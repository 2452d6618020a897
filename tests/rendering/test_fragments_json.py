"""JSON as a tree, as fields, as text: the text of the tree is the JSON, whatever is in it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.rendering import json_tree, message_body
from tests.support.drawn_html import Seen

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
    max_leaves=30,
)


@pytest.mark.slow
@given(VALUES)
def test_text_of_the_tree_is_the_same_json(value):
    seen = Seen(str(json_tree.draw(json.dumps(value))))

    assert seen.faults == []
    assert json.loads(seen.text) == value


def test_numbers_keep_their_digits_and_double_keys_stay():
    seen = Seen(str(json_tree.draw('{"a": 1.500, "a": 12345678901234567890.10}')))

    assert "1.500" in seen.text
    assert "12345678901234567890.10" in seen.text
    assert seen.text.count('"a"') == 2


def test_rows_tell_their_path():
    html = str(json_tree.draw('{"a": [{"b c": 1}]}'))

    assert 'data-path="$.a[0][&#34;b c&#34;]"' in html


def test_large_value_is_clipped_with_its_size_and_stays_whole():
    text = json.dumps({"a": "x" * 5_000})
    html = str(json_tree.draw(text))

    assert "Show all 5,002 characters" in html
    assert json.loads(Seen(html).text) == {"a": "x" * 5_000}


def test_many_lines_are_clipped_too():
    text = "line\n" * 41

    html = str(json_tree.draw_text(text))

    assert "line\n" * 40 + '<details class="rest"><summary aria-label="Show all 205 characters"' in html
    assert Seen(html).text == text
    assert "<details" not in json_tree.draw_text("line\n" * 40)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(list(range(1_000))),
        "[" * 30 + "]" * 30,
        "[" * 90_000,
        json.dumps({"k" * 500: 1}),
        json.dumps("x" * 70_000),
        "no json",
        '{"a": NaN}',
        "",
    ],
)
def test_json_too_large_or_wrong_is_shown_as_its_text(text):
    seen = Seen(str(json_tree.draw(text)))

    assert seen.faults == []
    assert "data-path" not in seen.html
    assert seen.text == text


def test_flat_result_becomes_fields():
    html = message_body.result('{"wish": "a bench", "tags": ["a", "b"], "urgent": false, "none": []}')

    assert '<dl class="result">' in html
    assert "Wisha benchTagsa, bUrgentfalseNonenone" in Seen(str(html)).text


def test_fields_have_their_json_behind_them_to_be_copied():
    text = '{"ticket_id": "T\u202e7", "tags": ["a, b", "c"], "total": 2.50}'

    for html in (message_body.result(text), message_body.result(json.dumps(text))):
        _, _, source = str(html).partition("<div data-source hidden>")
        assert Seen(source.removesuffix("</div>")).text == text.replace("\u202e", r"\u202e")


@pytest.mark.parametrize("text", ['{"a": {"b": 1}}', '{"a": [[1]]}', "{}", json.dumps({str(n): n for n in range(40)})])
def test_other_result_becomes_a_tree(text):
    assert "data-path" in message_body.result(text)


def test_result_that_is_json_in_a_string_is_drawn_as_json():
    assert '<dl class="result">' in message_body.result(json.dumps('{"wish": "a bench"}'))


def test_result_that_is_text_keeps_its_lines():
    assert (
        message_body.result(json.dumps("a\n  <b>")) == '<div class="output" data-source dir="auto">a\n  &lt;b&gt;</div>'
    )
