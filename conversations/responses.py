"""The names of the Open Responses door: ids of responses and of what they answer. Used by the door and by workers. No
Django.

An item's id is made from what the record knows already, so that the door can name it while it streams and the worker
names the same one when it stores the whole answer.
"""

import hashlib
import re

from conversations.ids import new_id

_RESPONSE_ID = re.compile(r"resp_[0-9a-f]{32}")
CONTINUABLE = ("completed", "incomplete")  # statuses of a response that another may follow


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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
