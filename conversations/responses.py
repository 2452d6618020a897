"""The words of the Open Responses door: what a client asks, ids of responses and of what they answer. Used by the
door and by workers. No Django.

An item's id is made from what the record knows already, so that the door can name it while it streams and the worker
names the same one when it stores the whole answer.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from conversations.ids import new_id

_RESPONSE_ID = re.compile(r"resp_[0-9a-f]{32}")
EXTERNAL = "external"  # the origin of a call that is the client's to answer
CONTINUABLE = ("completed", "incomplete")  # statuses of a response that another may follow
PLAIN_TEAM, PLAIN_MODEL = "Plain models", "Plain model"  # the Agent row that stands for models without an agent

Json = dict[str, Any]


class Asked(msgspec.Struct, kw_only=True):
    """A request as the door read it: checked, shapes made one, secrets covered."""

    model: str
    input: list[Json]
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[Json] = []
    tool_choice: str | Json = "auto"
    allowed_tools: list[str] | None = None
    params: Json = {}
    store: bool = True
    stream: bool = False

    @property
    def conversation_id(self) -> str | None:
        """The conversation that the client names for it."""
        return (self.params.get("metadata") or {}).get("conversation_id")

    @property
    def is_background(self) -> bool:
        """Whether the client waits for no answer."""
        return self.params.get("background") is True


def new_response_id() -> str:
    """Answer `resp_` and 32 hex digits of a UUIDv7."""
    return f"resp_{new_id().replace('-', '')}"


def is_response_id(text: str) -> bool:
    """Tell whether it may be one of ours: nothing else is looked up."""
    return _RESPONSE_ID.fullmatch(text) is not None


def message_item_id(response_id: str, turn: int) -> str:
    """Answer the id of the message that a turn said."""
    return f"msg_{_digest(f'{response_id}:{turn}')}"


def call_item_id(response_id: str, call_id: str, nth: int) -> str:
    """Answer the id of a function call that is the client's to answer; `nth` counts the uses of the call id."""
    return f"fc_{_digest(f'{response_id}:{call_id}:{nth}')}"


def words_of(items: Any) -> str:  # any JSON: the body may be a claim's
    """Answer the last words that input items say: a message's, else a tool's answer; empty for none."""
    if isinstance(items, str):
        return items
    for item in reversed(items if isinstance(items, list) else []):
        if not isinstance(item, Mapping):
            continue
        is_output = item.get("type") == "function_call_output"
        if words := text_of(item.get("output" if is_output else "content")):
            return words
    return ""


def text_of(content: object) -> str:
    """Answer the text of an item's content, its parts joined."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return " ".join(part for part in parts if isinstance(part, str))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
