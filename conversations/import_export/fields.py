"""Fields of foreign JSON: in either spelling that exporters use, as the wanted type."""

from typing import Any

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import fit_name

Fields = dict[str, Any]  # any JSON


def field(fields: Fields, name: str) -> Any:  # any JSON
    """Return a field by its name in snake case or camel case (`trace_id`, `traceId`); None without it."""
    if fields.get(name) is not None:
        return fields[name]
    first, *others = name.split("_")
    return fields.get(first + "".join(word.capitalize() for word in others))


def text_field(fields: Fields, name: str) -> str:
    """Return a text field; empty for anything else."""
    value = field(fields, name)
    return value if isinstance(value, str) else ""


def objects_field(fields: Fields, name: str) -> list[Fields]:
    """Return the objects of a list field; empty for anything else."""
    value = field(fields, name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count_field(fields: Fields, *names: str) -> int:
    """Return the first of these fields that is a count; 0 without any."""
    return next((n for name in names if type(n := field(fields, name)) is int and 0 <= n < 1 << 53), 0)


def object_of(value: object, what: str) -> Fields:
    """Return a JSON object. Raises Invalid that says what it must be."""
    if not isinstance(value, dict):
        raise Invalid(f"must be {what}: a JSON object; got {type(value).__name__}")
    return value


class ConversationNames:
    """Unique names for the conversations of one file, valid in addresses."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, text: str, *more: str) -> str:
        """Return the name for the source's own; if that is used, with `more` appended, then with a number."""
        name = fit_name(text)
        if name in self._used and more:
            name = fit_name("-".join((text, *more)))
        plain, count = name, 1
        while name in self._used:
            count += 1
            name = f"{plain[:90]}-{count}"
        self._used.add(name)
        return name
