"""The words of the Open Responses API: what a client asks, ids of responses and of what they answer. Used by the
endpoints and by workers. No Django.

An item's id is made from what the record knows already, so that the endpoint can name it while it streams and the
worker names the same one when it stores the whole answer.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from conversations.core.ids import new_id, text_digest

_RESPONSE_ID = re.compile(r"resp_[0-9a-f]{32}")
CLIENT_ORIGIN = "external"  # the origin of a call that is the client's to answer
CONTINUABLE = ("completed", "incomplete")  # statuses of a response that another may follow
DELETED = "deleted"  # the status of one that is reached by its id no more
PLAIN_TEAM, PLAIN_MODEL = "Plain models", "Plain model"  # the Agent row that stands for models without an agent

Json = dict[str, Any]


class ResponseRequest(msgspec.Struct, kw_only=True):
    """A request as the endpoint read it: checked, shapes made one, secrets covered."""

    model: str
    input: list[Json]
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[Json] = []
    tool_choice: str | Json = "auto"
    allowed_tools: list[str] | None = None
    params: Json = {}
    conversation: str | None = None
    """whose responses it remembers, by the field of that name"""
    store: bool = True
    stream: bool = False

    @property
    def conversation_id(self) -> str | None:
        """The conversation that the client names for it."""
        return self.conversation or (self.params.get("metadata") or {}).get("conversation_id")


def new_response_id() -> str:
    """Return `resp_` and 32 hex digits of a UUIDv7."""
    return f"resp_{new_id().replace('-', '')}"


def is_response_id(text: str) -> bool:
    """Return whether it may be one of ours: nothing else is looked up."""
    return _RESPONSE_ID.fullmatch(text) is not None


def message_item_id(response_id: str, turn: int) -> str:
    """Return the id of the message that a turn said."""
    return f"msg_{_digest(f'{response_id}:{turn}')}"


def reasoning_item_id(response_id: str, turn: int, nth: int) -> str:
    """Return the id of a turn's `nth` reasoning item, from 1."""
    return f"rs_{_digest(f'{response_id}:{turn}:{nth}')}"


def call_item_id(response_id: str, call_id: str, nth: int) -> str:
    """Return the id of a function call that is the client's to answer; `nth` counts the uses of the call id."""
    return f"fc_{_digest(f'{response_id}:{call_id}:{nth}')}"


def input_item_id(response_id: str, nth: int, kind: str) -> str:
    """Return the id of the `nth` item of a request that came without one; `kind` is its type."""
    prefix = {"message": "msg", "function_call": "fc", "reasoning": "rs", "compaction": "cmp"}.get(kind, "item")
    return f"{prefix}_{_digest(f'{response_id}:input:{nth}')}"


def input_items(response_id: str, raw_items: object) -> list[Json]:
    """Return the items of a request as clients and later requests know them: without nulls, each with an id of its own.
    An item whose id is missing or was used before gets `input_item_id`; a second reference to an item is left out."""
    listed: dict[str, Json] = {}
    for nth, raw_item in enumerate(raw_items if isinstance(raw_items, list) else []):
        if not isinstance(raw_item, dict):
            continue
        item = {name: value for name, value in raw_item.items() if value is not None}
        id_ = item.get("id")
        if not isinstance(id_, str) or not id_ or (id_ in listed and not is_reference(item)):
            id_ = input_item_id(response_id, nth, str(item.get("type") or "message"))
        listed.setdefault(id_, item | {"id": id_})
    return list(listed.values())


def is_reference(item: Json) -> bool:
    """Return whether an item only refers to another one."""
    return item.get("type") == "item_reference" or (item.keys() <= {"type", "id"} and "id" in item)


def words_of(items: Any) -> str:  # any JSON: the body may be a claim's
    """Return the last words that input items say: a message's, else a tool's answer; empty for none."""
    if isinstance(items, str):
        return items
    for item in reversed(items if isinstance(items, list) else []):
        if not isinstance(item, Mapping):
            continue
        is_output = item.get("type") == "function_call_output"
        if text := text_of(item.get("output" if is_output else "content")):
            return text
    return ""


def text_of(content: object) -> str:
    """Return the text of an item's content, its parts joined."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return " ".join(part for part in parts if isinstance(part, str))


def _digest(text: str) -> str:
    return text_digest(text)[:32]
