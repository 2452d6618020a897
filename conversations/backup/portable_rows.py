"""The tables and columns of a backup, and the form of their values, which is the same from either database."""

import base64
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.apps import apps
from django.db import models

Value = Any  # of a database driver, or of JSON

# Processes and sign-in links are not part of the record: after a restore, everybody signs in again.
EXCLUDED_MODELS = ("Node", "SignInLink")
# Rows of `Meta` about the deployment that was backed up: the state of its search index and of its last verification.
EXCLUDED_META = ("search", "verification")
KINDS = {
    **dict.fromkeys(("AutoField", "BigAutoField", "BigIntegerField", "IntegerField", "SmallIntegerField"), "int"),
    **dict.fromkeys(("CharField", "TextField"), "text"),
    "PositiveIntegerField": "int",
    "BooleanField": "bool",
    "DateTimeField": "time",
    "FloatField": "float",
    "DecimalField": "decimal",
    "BinaryField": "bytes",
}


class RecordTable(NamedTuple):
    """A table, its columns as `(name, kind)`, and in `order` the columns of its primary key."""

    name: str
    columns: tuple[tuple[str, str], ...]
    order: tuple[str, ...]

    @property
    def quoted(self) -> str:
        """The columns, quoted and joined for SQL."""
        return ",".join(f'"{name}"' for name, _ in self.columns)

    @property
    def select(self) -> str:
        """The query that returns all rows in the order of the key."""
        order = ",".join(f'"{name}"' for name in self.order)
        return f'SELECT {self.quoted} FROM "{self.name}" ORDER BY {order}'


def tables() -> list[RecordTable]:
    """Return the tables that a backup contains, sorted by name."""
    chosen = (m for m in apps.get_app_config("conversations").get_models() if m.__name__ not in EXCLUDED_MODELS)
    return sorted(map(_table, chosen))


def _table(model: type[models.Model]) -> RecordTable:
    fields = model._meta.local_concrete_fields
    columns = tuple((str(field.column), KINDS[_kind(field)]) for field in fields)
    key: Any = model._meta.pk
    order = [field.column for field in getattr(key, "fields", [key])]
    return RecordTable(model._meta.db_table, columns, tuple(order))


def _kind(field: Any) -> str:
    while field.remote_field is not None:
        field = field.target_field
    return str(field.get_internal_type())


def _time_of_text(value: str) -> str:
    return datetime.fromisoformat(value).replace(tzinfo=UTC).isoformat()


def _base64(value: Value) -> str:
    return base64.b64encode(value).decode()


def _time_for_sqlite(value: str) -> str:
    return datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None).isoformat(" ")


FROM_SQLITE: dict[str, Callable[[Value], Value]] = {"bool": bool, "time": _time_of_text, "bytes": _base64,
                                                    "float": float, "decimal": str}  # fmt: skip
FROM_POSTGRESQL: dict[str, Callable[[Value], Value]] = {
    "time": lambda value: value.astimezone(UTC).isoformat(), "bytes": _base64, "decimal": str
}  # fmt: skip
TO_SQLITE: dict[str, Callable[[Value], Value]] = {"bool": int, "time": _time_for_sqlite, "bytes": base64.b64decode}
TO_POSTGRESQL: dict[str, Callable[[Value], Value]] = {"bytes": base64.b64decode}


def converter(
    kinds: Sequence[str], by_kind: dict[str, Callable[[Value], Value]]
) -> Callable[[Sequence[Value]], list[Value]]:
    """Return a function that converts a row whose columns have these kinds."""
    steps = [(at, by_kind[kind]) for at, kind in enumerate(kinds) if kind in by_kind]

    def convert(row: Sequence[Value]) -> list[Value]:
        values = list(row)
        for at, step in steps:
            if values[at] is not None:
                values[at] = step(values[at])
        return values

    return convert
