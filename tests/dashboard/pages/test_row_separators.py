"""Joints of a transcript's rows as the server draws them: a line between two days, a voice named once."""

import re

from markupsafe import Markup

from dashboard.pages.row_separators import separated

ROW = Markup(
    '<article class="event" data-level="{}" data-sender="{}"><div class="body">\n<div class="head">{}</div>{}</div>'
    '<time datetime="{}T10:00:00.000000Z" data-clock="time">10:00:00</time>'
    '<div class="inner" data-inner>{}</div></article>'
)
NOTHING = Markup("")
FROM = re.compile(r'data-from="([^"]*)"')
NESTED = Markup('<time datetime="2026-03-09T10:00:00.000000Z">10:00:00</time>')


def row(
    head: str, day: str = "2026-03-01", level: str = "chat", words: str = "", inner: str = "", sender: str = ""
) -> Markup:
    """Draw a row as its template does."""
    return ROW.format(level, sender or head, head, words, day, inner)


def test_a_day_begins_with_a_line():
    first, second, third = separated([row("Ada"), row("Ada"), row("Ada", "2026-03-02")])

    assert first.startswith('<div class="day">Sunday, 1 March 2026</div>')
    assert 'class="day"' not in second
    assert third.startswith('<div class="day">Monday, 2 March 2026</div>')
    assert "data-follow" not in third


def test_a_voice_that_goes_on_is_named_once():
    rows = separated([row("Ada"), row("Ada"), row("Ben"), row("Ada", level="steps"), row("Ada"), row("")])

    assert ["data-follow" in drawn for drawn in rows] == [False, True, False, False, False, False]


def test_another_sender_of_the_same_name_is_named():
    rows = separated([row("Billing", sender="system"), row("Billing", sender="user:Billing")])

    assert "data-follow" not in rows[1]


NUMBERED = Markup(
    '<article class="event" id="e{0}" data-item data-seq="{0}"{1} data-kind="{2}" data-level="chat">\n'
    '<a class="seq" href="#">{0}</a><div class="inner" data-inner>{3}</div></article>'
)


def numbered(seq: int, kind: str = "message", last: int = 0, inner: Markup = NOTHING) -> Markup:
    """Draw a row with its number as its template does; `last`: the last event that is drawn in it."""
    return NUMBERED.format(seq, Markup(' data-last="{}"').format(last) if last else "", kind, inner)


def starts(rows: list[Markup]) -> list[str | None]:
    """Return where the parts of each row begin, rows that stand in another after it."""
    links = [link for row in separated(rows) for link in re.findall(r'<a [^>]*class="seq"', row)]
    return [match[1] if (match := FROM.search(link)) else None for link in links]


def test_the_numbers_of_a_texts_parts_stand_with_its_own():
    rows = [numbered(1), numbered(9, "output"), numbered(10, "tool_step", 12), numbered(15, "output"), numbered(16)]
    rows += [numbered(17, "tool_step", 30), numbered(20, "output"), numbered(21, "output"), numbered(33, "output")]

    assert starts(rows) == [None, "2–", None, "13–", None, None, "18–", None, "31–"]


def test_no_number_that_another_row_has_is_counted_among_a_texts_parts():
    call = numbered(5, "tool_step", 20, inner=numbered(15, "output"))

    assert starts([numbered(4), call, numbered(6), numbered(30, "output")]) == [None, None, "7–", None, "21–"]


def test_of_the_first_row_nobody_knows_where_its_parts_began():
    assert starts([numbered(9, "output")]) == [None]


def test_neither_words_nor_rows_within_are_taken_for_the_row_itself():
    words = Markup.escape('data-inner <time datetime="2020-01-01T10:00:00Z"><div class="head">Ada</div>')

    rows = separated([row("Ada", words=words, inner=NESTED), row("Ada", words=words)])

    assert [drawn.count('class="day"') for drawn in rows] == [1, 0]
    assert "data-follow" in rows[1]
