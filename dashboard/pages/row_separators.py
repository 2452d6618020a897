"""Day lines, repeated names and part numbers in a transcript, as static/js/row-separators.js draws them: done on the
server first, so that nothing moves once scripts run. Called by the conversation page."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date

from markupsafe import Markup

from conversations.core.html_escape import safe

_DAY = re.compile(r'<time datetime="(\d{4}-\d\d-\d\d)T')
_LEVEL = re.compile(r' data-level="(\w+)"')
_SENDER = re.compile(r' data-sender="([^"]*)"')
_HEAD = re.compile(r'<div class="body">\s*<div class="head">(.*?)</div>', re.DOTALL)
_NUMBERS = re.compile(r' data-seq="(\d+)"(?: data-last="(\d+)")? data-kind="')
_OUTPUT = re.compile(r'(<article [^>]* data-seq="(\d+)" data-kind="output"[^>]*>\s*)<a class="seq"')
_PARTS = Markup('<a data-from="{}–" title="Event {}; its parts are among events {} to {}" class="seq"')
_INNER = '<div class="inner" data-inner>'
_START = Markup('<article class="event"')
_FOLLOWS = Markup('<article data-follow class="event"')
_NEW_DAY = Markup('<div class="day">{}</div>\n{}')


def separated(rows: Iterable[Markup]) -> list[Markup]:
    """Add a line between two days (UTC, until the page knows the reader's time zone), name a sender only at the first
    of several rows in a row, and say of a text that was written in parts which events these are."""
    drawn = list(rows)
    numbers = sorted({int(seq) for row in drawn for pair in _NUMBERS.findall(row) for seq in pair if seq})
    return list(_separated(drawn, numbers))


def _separated(rows: Iterable[Markup], numbers: Sequence[int]) -> Iterator[Markup]:
    day = head = ""
    for row in rows:
        own = row.partition(_INNER)[0]  # without the rows that stand in it
        before, (day, head) = (day, head), (_day_of(own), _head_of(own))
        numbered = safe(_OUTPUT.sub(lambda tag: _numbered(tag, numbers), row))
        if day and day != before[0]:
            yield _NEW_DAY.format(_words(day), numbered)
        elif head and head == before[1]:
            yield numbered.replace(_START, _FOLLOWS, 1)
        else:
            yield numbered


def _numbered(tag: re.Match[str], numbers: Sequence[int]) -> str:
    """Return the beginning of an output's row with the numbers of its parts: what no other row has, before its own."""
    seq = int(tag[2])
    at = bisect_left(numbers, seq)
    first = numbers[at - 1] + 1 if at else seq
    return f"{tag[1]}{_PARTS.format(first, seq, first, seq - 1)}" if first < seq else tag[0]


def _day_of(row: str) -> str:
    """Read the day of a row's own time: the last time in the row."""
    day = _DAY.match(row, max(0, row.rfind("<time ")))
    return day[1] if day else ""


def _head_of(row: str) -> str:
    parts = [pattern.search(row) for pattern in (_LEVEL, _SENDER, _HEAD)]
    return " ".join(part[1] for part in parts if part) if all(parts) else ""


def _words(day: str) -> str:
    moment = date.fromisoformat(day)
    return f"{moment:%A}, {moment.day} {moment:%B %Y}"
