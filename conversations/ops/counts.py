"""Counts that cost no more than their bound (design 3.6: "1,000+")."""

from typing import Any, NamedTuple

from django.db.models import QuerySet

MOST = 1_000


class Count(NamedTuple):
    """How many, as far as it was counted."""

    number: int
    is_more: bool = False

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.is_more else f"{self.number:,}"


def bounded(rows: QuerySet[Any], most: int = MOST) -> Count:
    """Count the rows up to `most`. One query, over an index where the rows come by one."""
    found = rows.order_by().values("pk")[: most + 1].count()
    return Count(min(found, most), found > most)
