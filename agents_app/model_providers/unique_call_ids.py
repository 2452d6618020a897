"""Call ids that a provider uses again for another call: the SDK's runner takes calls of one id for one call, and ends
the run. So a later one goes through the SDK under an id of its own, which the model sees as well; the record has
the provider's (`original`), and tells its uses apart by their number. Used by `fit_calls` and the run's hooks.

The very same call again (id, name and arguments) keeps its id: the SDK does not make it again.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

from openai.types.responses import ResponseFunctionToolCall

from agents_app.model_providers.sent_arguments import encodable, harmless

_OURS = re.compile(r"(?<=.)~[0-9a-f]{8}$", re.DOTALL)


class CallIds:
    """The call ids of one conversation with a model: those of its input, then those of its answer."""

    def __init__(self, items: Any) -> None:
        self._calls: dict[str, tuple[str, str]] = {}  # by id: name and arguments
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and item.get("type") == "function_call":
                self._calls.setdefault(str(item.get("call_id")), (str(item.get("name")), str(item.get("arguments"))))

    def separate(self, items: Iterable[Any]) -> None:
        """Give each function call of an answer an id that no other call has, and texts that the SDK can hold; done
        again it changes nothing."""
        for item in items:
            if isinstance(item, ResponseFunctionToolCall):
                item.arguments = harmless(item.arguments)
                item.call_id, item.name = encodable(item.call_id), encodable(item.name)
                for field in ("id", "namespace"):
                    if (text := getattr(item, field)) is not None:  # set to None it would be sent to models as null
                        setattr(item, field, encodable(text))
                item.call_id = self._separate(item.call_id, (item.name, item.arguments))

    def _separate(self, call_id: str, call: tuple[str, str]) -> str:
        if self._calls.setdefault(call_id, call) == call:
            return call_id
        text = "\0".join(call).encode("utf-8", "surrogatepass")
        unique_id = f"{call_id}~{hashlib.sha256(text).hexdigest()[:8]}"
        self._calls[unique_id] = call
        return unique_id


def original(call_id: str) -> str:
    """Return the provider's own call id."""
    return _OURS.sub("", call_id)
