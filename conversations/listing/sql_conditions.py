"""Combine SQL conditions into a query, and fetch its rows."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from django.db import connection

Fetch = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]  # what `fetch_rows` does, or one that remembers


class SqlCondition(NamedTuple):
    """An SQL condition on a row `t` of the list, with its values."""

    sql: str
    values: tuple[Any, ...] = ()


def join_conditions(tests: Iterable[SqlCondition]) -> tuple[str, list[Any]]:
    """Return the SQL that requires all conditions, and its values."""
    some = list(tests)
    return " AND ".join(test.sql for test in some), [value for test in some for value in test.values]


def fetch_rows(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def fetch_branches(
    branches: Iterable[Iterable[SqlCondition]],
    table: str,
    columns: str,
    order: str,
    limit: int,
    merged: tuple[str, str],
) -> list[tuple[Any, ...]]:
    """Return the first rows of several walks along one index, each in `order`; `merged` names the columns and the order
    of their combined result."""
    parts, values = [], []
    for number, conditions in enumerate(branches):
        where, given = join_conditions(conditions)
        part = f"SELECT {columns} FROM {table} t WHERE {where} ORDER BY {order} LIMIT %s"
        parts.append(f"SELECT * FROM ({part}) AS b{number}")
        values += [*given, limit]
    if len(parts) == 1:
        return fetch_rows(part, values)
    sql = f"SELECT {merged[0]} FROM ({' UNION ALL '.join(parts)}) AS t ORDER BY {merged[1]} LIMIT %s"
    return fetch_rows(sql, [*values, limit])
