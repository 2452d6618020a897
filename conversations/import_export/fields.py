"""Fields of foreign JSON: in either spelling that exporters use, as the wanted type."""

import hashlib
import re
from collections import Counter
from typing import Any

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import fit_name
from conversations.import_export.recording import encoded

Fields = dict[str, Any]  # any JSON
DIGITS = 16  # hexadecimal, of the digest in a name
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DIGEST = re.compile(rf"-[0-9a-f]{{{DIGITS}}}$")


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
    """Names for the conversations of one file, valid in addresses. Each depends on the source's own key alone: a later
    export, which may contain other conversations, gives the same names."""

    def __init__(self) -> None:
        self._uses: Counter[tuple[str, ...]] = Counter()

    def of(self, text: str, *more: str) -> str:
        """Return the name for the source's own, `text`, whose whole key is `more` and `text`. A digest of the key is
        appended if the name alone does not tell the key, or if the file has the same key again."""
        key = (*more, text)
        self._uses[key] += 1
        if self._uses[key] > 1:
            return _with_digest(text, *key, str(self._uses[key]))
        is_unique = not any(more) or _UUID.fullmatch(text)
        is_exact = fit_name(text) == text and not _DIGEST.search(text)
        return text if is_unique and is_exact else _with_digest(text, *key)


def _with_digest(text: str, *key: str) -> str:
    digest = hashlib.sha256(encoded(key)).hexdigest()[:DIGITS]
    return f"{fit_name(text)[: 98 - DIGITS]}-{digest}"
