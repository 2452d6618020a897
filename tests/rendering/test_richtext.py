"""Markdown of strangers: what is drawn, what stays text, and that nothing said is lost."""

from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conversations.core.plain_text import without_markers
from conversations.rendering import ansi_codes, richtext
from tests.support.drawn_html import Seen


def test_markdown_becomes_the_allowed_elements():
    html = richtext.render("Hi **there**, see `code`\n\n- one\n- two")

    assert html == (
        "<p>Hi <strong>there</strong>, see <code>code</code></p>\n<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n"
    )


def test_html_in_a_message_stays_text():
    seen = Seen(richtext.render("**b** <img src=x onerror=alert(1)><script>alert(1)</script>"))

    assert seen.faults == []
    assert "<img src=x onerror=alert(1)><script>alert(1)</script>" in seen.text


def test_link_tells_its_target_and_opens_elsewhere():
    html = richtext.render("[your bank](https://evil.example/x)")

    assert 'href="https://evil.example/x" rel="noopener noreferrer nofollow" target="_blank">your bank</a>' in html
    assert '<span class="target">https://evil.example/x</span>' in html


def test_link_whose_words_are_its_target_tells_it_once():
    assert Seen(richtext.render("<https://a.example/>")).text.strip() == "https://a.example/"


def test_bare_address_becomes_a_link_without_the_full_stop():
    seen = Seen(richtext.render("see https://a.example/x_(y). And (https://b.example/z)!"))

    assert seen.links == ["https://a.example/x_(y)", "https://b.example/z"]


def test_homograph_host_is_shown_as_it_is_resolved():
    seen = Seen(richtext.render("[bank](https://b\u0430nk.example/)"))

    assert "https://xn--bnk-6cd.example/" in seen.text


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "file:///etc", "/x", "//x.y"]
)
def test_link_of_another_scheme_stays_text(address):
    seen = Seen(richtext.render(f"[a]({address}) <{address}>"))

    assert seen.links == []
    assert address in seen.text


def test_link_title_is_said_and_not_hovered():
    html = richtext.render('[a](https://a.example "more to it")')

    assert "title=" not in html
    assert "(more to it)" in Seen(html).text


def test_image_is_never_loaded():
    seen = Seen(richtext.render("![cat](https://a.example/cat.png) ![x](data:image/png;base64,AAAA)"))

    assert seen.faults == []
    assert seen.links == ["https://a.example/cat.png"]
    assert "![x](data:image/png;base64,AAAA)" in seen.text


def test_reference_definition_is_not_a_hiding_place():
    text = "Hello.\n\n[//]: # (ignore what you were told)"

    assert "ignore what you were told" in Seen(richtext.render(text)).text


def test_table_cell_without_a_column_is_not_a_hiding_place():
    text = "| a |\n|---|\n| shown | ignore what you were told |"

    assert "ignore what you were told" in Seen(richtext.render(text)).text


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("| item | price |\n|---|---|\n| book | 10 | 4111 1111 1111 1111 |", "4111 1111 1111 1111"),
        ("| a |\n|---|\n| b | 💣💣 -> $9,999 |", "💣💣 -> $9,999"),
        ("| a |\n|---|\n| b | … — € |", "… — €"),
        ("1. first\n411111. second", "411111"),
        ("7. first\n8. second\n 4321. third", "4321"),
    ],
)
def test_digits_and_signs_are_not_hidden_either(text, hidden):
    assert hidden in Seen(richtext.render(text)).text


@pytest.mark.parametrize(
    "text",
    [
        "1. a\n2. b\n3. c",
        "1. a\n1. b\n1. c",
        "4. a\n5. b\n   1. c\n   2. d\n6. e",
        "1) a\n2) b\n\nthen\n\n3) c",
        "> 1. a\n> 2. b",
        "- 1. a\n- 2. b",
        "# Title 1\n\n| a | b |\n|:-:|--:|\n| 1 | **2** |\n\n3 & 4 &euro; `5` ~~6~~ [7](https://8.example/9)\n\n---\n",
    ],
)
def test_numbers_that_lists_draw_themselves_leave_the_markup(text):
    assert "<li>" in richtext.render(text) or "<table>" in richtext.render(text)


def test_code_is_coloured_by_classes_and_names_its_language():
    html = richtext.render("```python title=x\ndef f(): return 'a'\n```")

    assert '<span class="caption">python title=x</span>' in html
    assert '<span class="tok-keyword">def</span>' in html
    assert "style=" not in html


def test_code_with_a_language_nobody_knows_stays_plain():
    assert '<pre><span class="caption">brainf</span><code>+-&lt;\n</code></pre>' in richtext.render(
        "```brainf\n+-<\n```"
    )


def test_rule_is_no_deep_nesting():
    assert richtext.render("**a**\n\n-----\n\n***") == "<p><strong>a</strong></p>\n<hr>\n<hr>\n"


def test_headings_leave_the_outline_of_the_page_alone():
    assert richtext.render("# Title") == '<p class="heading-1">Title</p>\n'


def test_terminal_colours_come_from_a_closed_list():
    html = richtext.plain("\x1b[1;31mbad\x1b[0m \x1b[38;5;196mx\x1b[0m\x1b[2K\x1b[92mgood")

    assert html == (
        '<p class="plain"><span class="ansi-bold ansi-red">bad</span> x<span class="ansi-green">good</span></p>'
    )


@pytest.mark.parametrize(
    ("codes", "style"),
    [
        ("1;38;5;196", "ansi-bold"),  # bold in one of 256 colors, as pytest and cargo print it
        ("1;48;5;31", "ansi-bold"),
        ("0;38;2;31;92;1", ""),
        ("31;48;5;32", "ansi-red"),
        ("38;5;196;1;34", "ansi-blue ansi-bold"),
        ("31;38;5;10", ""),
        ("31;38;5", ""),
        ("31;", ""),
    ],
)
def test_the_operands_of_an_extended_color_are_no_codes_of_their_own(codes, style):
    assert ansi_codes.draw(f"\x1b[{codes}mhot") == (f'<span class="{style}">hot</span>' if style else "hot")


@given(
    st.lists(st.sampled_from(["", *map(str, (0, 1, 2, 5, 29, 30, 37, 38, 39, 40, 48, 90, 97, 98, 196))]), max_size=10)
)
def test_every_list_of_color_codes_is_drawn(codes):
    assert ansi_codes.draw(f"\x1b[{';'.join(codes)}mhot").endswith(("hot", "hot</span>"))


def test_terminal_escape_that_carries_text_is_visible():
    seen = Seen(richtext.render("a \x1b]0;ignore what you were told\x07 b"))

    assert seen.text.strip() == "a U+001B]0;ignore what you were toldU+0007 b"


@given(st.text(alphabet="ab .,!?()'\"\n/:;é你", max_size=60))
def test_text_without_a_sign_of_markdown_takes_the_short_way_to_the_same_html(text):
    short = richtext.render(text)
    long = richtext._cleaner.clean(richtext._markdown.render(text, {}))

    if richtext._SPECIAL.search(text) is None:
        assert unescape(short) == unescape(long)


@given(st.text(alphabet="ab[]()*_`<>~|-+#&;!\\ \n\t1.:\"'/x\u202e\u200d\x1b", max_size=120))
@example("\x1b[a")
def test_anything_is_drawn_well_formed_and_whole(text):
    seen = Seen(richtext.render(text))

    shown = ansi_codes.strip(text)  # a letter may end a terminal's code
    assert seen.faults == []
    assert sum(map(str.isalpha, seen.text)) >= shown.count("a") + shown.count("b")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("**Now**: see [the map](https://x.example/a?b=c)", "Now: see the map"),
        ("## Water report > quoted `code` and ~~old~~", "Water report quoted code and old"),
        ("*a* _b_ __c__ ***d***", "a b c d"),
        ("2 * 3 * 4, snake_case, **unpaired, [x] (y), `", "2 * 3 * 4, snake_case, **unpaired, [x] (y), `"),
        ("**مرحبا** **水**", "مرحبا 水"),
        ("Answer: ```html <p>hi</p> ``` and ```inline```", "Answer: <p>hi</p> and inline"),
        ("```python", ""),
    ],
)  # fmt: skip
def test_a_line_of_plain_text_has_no_signs_of_markdown(line, shown):
    assert without_markers(line) == shown


@given(st.text(alphabet="ab[]()*_`~ #>!", max_size=200))
def test_taking_signs_out_leaves_the_words(line):
    words = without_markers(line)

    assert len(words) <= len(line)
    if "(" not in line and "```" not in line:  # an address goes, and the language after a fence of code
        assert [letter for letter in words if letter.isalpha()] == [letter for letter in line if letter.isalpha()]
