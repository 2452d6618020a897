"""An id of a conversation that goes, and what takes its place: in texts, in JSON and in addresses."""

import json
import re
from typing import Any
from urllib.parse import quote

from django.db.models import Q

from conversations.core import url_converters
from conversations.redaction.call_field import in_json


class ErasedId:
    """One id, with the ways in which it is written, and the new one."""

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        addresses = (quote(old, safe=""), url_converters.to_url(old), url_converters.segment_of(old))
        self._forms = sorted({old, *in_json(old), *addresses}, key=len, reverse=True)
        forms = "|".join(map(re.escape, self._forms))
        self._within = re.compile(rf"(?<!\w)(?:{forms})(?!\w)")
        self._alone = re.compile(rf"(\w+:)?(?:{forms})")

    def held_by(self, *columns: str) -> Q:
        """Return the condition that one of these columns may have it."""
        condition = Q()
        for column in columns:
            for form in self._forms:
                condition |= Q(**{f"{column}__contains": form})
        return condition

    def in_text(self, text: str) -> str:
        """Replace it where it stands as a word of its own, in plain text or in JSON."""
        value = _parsed(text)
        if not isinstance(value, dict | list):
            return self._within.sub(self.new, text)
        left = self.in_json(value)
        return text if left == value else _written(left)

    def as_reference(self, text: str) -> str:
        """Replace it where a value of the JSON is it and nothing else, or an address on the bus (`chat:ID`)."""
        value = _parsed(text)
        left = self.in_json(value, only_alone=True)
        return text if left == value else _written(left)

    def in_json(self, value: Any, *, only_alone: bool = False) -> Any:  # any JSON
        """Replace it in a value and everything within."""
        if isinstance(value, str):
            if not only_alone:
                return self._within.sub(self.new, value)
            match = self._alone.fullmatch(value)
            return f"{match[1] or ''}{self.new}" if match else value
        if isinstance(value, list):
            return [self.in_json(item, only_alone=only_alone) for item in value]
        if isinstance(value, dict):
            return {
                self.in_json(name, only_alone=only_alone): self.in_json(item, only_alone=only_alone)
                for name, item in value.items()
            }
        return value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _written(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, which no column holds
        return json.dumps(value, separators=(",", ":"))
    return text
