"""Day lines and repeated names in a transcript, as static/js/row-separators.js draws them: done on the server first, so
that nothing moves once scripts run. Called by the conversation page."""

import re
from collections.abc import Iterable, Iterator
from datetime import date

from markupsafe import Markup

_DAY = re.compile(r'<time datetime="(\d{4}-\d\d-\d\d)T')
_LEVEL = re.compile(r' data-level="(\w+)"')
_HEAD = re.compile(r'<div class="body">\s*<div class="head">(.*?)</div>', re.DOTALL)
_START = Markup('<article class="event"')
_FOLLOWS = Markup('<article data-follow class="event"')
_NEW_DAY = Markup('<div class="day">{}</div>\n{}')


def separated(rows: Iterable[Markup]) -> list[Markup]:
    """Add a line between two days (UTC, until the page knows the reader's time zone), and name a sender only at the
    first of several rows in a row."""
    return list(_separated(rows))


def _separated(rows: Iterable[Markup]) -> Iterator[Markup]:
    day = head = ""
    for row in rows:
        own = row.partition("data-inner")[0]  # without the rows that stand in it
        before, (day, head) = (day, head), (_day_of(own), _head_of(own))
        if day and day != before[0]:
            yield _NEW_DAY.format(_words(day), row)
        elif head and head == before[1]:
            yield row.replace(_START, _FOLLOWS, 1)
        else:
            yield row


def _day_of(row: str) -> str:
    """Read the day of a row's own time: the last time in the row."""
    day = _DAY.match(row, max(0, row.rfind("<time ")))
    return day[1] if day else ""


def _head_of(row: str) -> str:
    head, level = _HEAD.search(row), _LEVEL.search(row)
    return f"{level[1]} {head[1]}" if head and level else ""


def _words(day: str) -> str:
    moment = date.fromisoformat(day)
    return f"{moment:%A}, {moment.day} {moment:%B %Y}"
