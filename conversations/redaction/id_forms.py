"""An id of a conversation that is erased, and what takes its place: in texts, in JSON and in addresses."""

import re
from collections.abc import Collection, Iterable
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, urlencode

from django.db.models import Q

from conversations.core import json_values, url_converters
from conversations.redaction.call_field import in_json
from conversations.redaction.tombstones import CODE, STRUCTURE
from conversations.telemetry.late_names import MOVED

REFERENCES = ("conversation_id", "conversation", "parent")  # fields whose value is the id of a conversation


class ErasedId:
    """One id, with the ways in which it is written, and the new one.

    A name of a person or an agent may be the same word (`user:ida`): that stays, and so do structural fields of events.
    """

    def __init__(self, old: str, new: str) -> None:
        self.old, self.new = old, new
        addresses = (quote(old, safe=""), quote_plus(old), url_converters.to_url(old), url_converters.segment_of(old))
        self._forms = sorted({old, *in_json(old), *addresses}, key=len, reverse=True)
        forms = "|".join(map(re.escape, self._forms))
        self._within = re.compile(rf"(?<!\w)(?<!user:)(?<!agent:)(?<!token:)(?:{forms})(?!\w)")
        self._topics = {f"{prefix}:{old}": f"{prefix}:{new}" for prefix in ("chat", "stream")}

    def held_by(self, *columns: str) -> Q:
        """Return the condition that one of these columns may have it."""
        condition = Q()
        for column in columns:
            for form in self._forms:
                condition |= Q(**{f"{column}__contains": form})
        return condition

    def topics(self) -> Iterable[tuple[str, str]]:
        """Return its topics on the bus, each with the new one."""
        return self._topics.items()

    def in_words(self, text: str) -> str:
        """Replace it in a text where it is a word of its own."""
        return self._within.sub(self.new, text)

    def in_query(self, query: str) -> str:
        """Replace it in a list's address, after the question mark, where the list is of this conversation."""
        named = {"conversation": self.old, "target": f"conversation:{self.old}"}
        pairs = parse_qsl(query, keep_blank_values=True)
        if not any(named.get(name) == value for name, value in pairs):
            return query
        return urlencode(
            [
                (name, value.removesuffix(self.old) + self.new if named.get(name) == value else value)
                for name, value in pairs
            ]
        )

    def in_body(self, body: str, *, words: bool) -> str:
        """Replace it in an event's body: where a field refers to the conversation, and with `words` in all texts."""
        value = json_values.parse(body)
        if not isinstance(value, dict):
            return self.in_words(body) if words else body
        changed = self.in_fields(value, words=words, structural=STRUCTURE)
        if value.get("event") == MOVED and value.get("to") == self.old:
            changed["to"] = self.new
        return body if changed == value else json_values.compact(changed)

    def in_fields(self, fields: dict[str, Any], *, words: bool, structural: Collection[str]) -> dict[str, Any]:
        """Replace it in a table of fields, of which the words of structural ones stay."""
        return {
            self._name(name, words=words): self._value(name, value, words=words and name not in structural)
            for name, value in fields.items()
        }

    def _value(self, name: str, value: Any, *, words: bool) -> Any:  # any JSON
        if isinstance(value, str):
            if name in REFERENCES and value == self.old:
                return self.new
            return self._topics.get(value) or (self.in_words(value) if words else value)
        if isinstance(value, list):
            return [self._value("", item, words=words) for item in value]
        return self.in_fields(value, words=words, structural=()) if isinstance(value, dict) else value

    def _name(self, name: str, *, words: bool) -> str:
        return self.in_words(name) if words and not CODE.fullmatch(name) else name
