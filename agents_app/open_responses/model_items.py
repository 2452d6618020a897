"""Convert a chain's items for any model API. It reads nothing else.

Ids and statuses are ours and the client's and unknown to a model's server. A call without an output is left out (no
server accepts one); an output without its call is the client's mistake.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from agents_app.open_responses.request import Item, Unfit

COUNTED = 16  # characters: a call id with fewer has no chance in it

Opened = Callable[[Item], str | None]  # the words a compaction stands for; None when it is not ours


def for_model(items: Iterable[Item], opened: Opened) -> list[Item]:
    """Return the input for the model. Raises Unfit for an output without its call, or a compaction that is not ours."""
    fitted = [fit for item in _opened(items, opened) if (fit := _fit(item)) is not None]
    return _paired(fitted)


def _opened(items: Iterable[Item], opened: Opened) -> Iterable[Item]:
    for item in items:
        if item.get("type") != "compaction":
            yield item
            continue
        text = opened(item)
        if text is None:
            raise Unfit("invalid_request", "A compaction item was not created by this server, or it was changed.")
        yield {"role": "user", "content": text}  # no more authority than the words it was made of


def _fit(item: Item) -> Item | None:
    match item.get("type") or "message":
        case "message":
            return _message(item)
        case "function_call":
            return {key: str(item.get(key) or "") for key in ("type", "call_id", "name", "arguments")}
        case "function_call_output":
            return {key: item.get(key) for key in ("type", "call_id", "output")}
        case "reasoning":  # without its content only the server that made it could look it up
            keys = ("type", "id", "summary", "encrypted_content")
            return {key: item[key] for key in keys if key in item} if item.get("encrypted_content") else None
    return None  # an extension (`slug:type`), which no API of a model has


def _message(item: Item) -> Item:
    role, content = item.get("role") or "user", item.get("content")
    if role == "assistant":
        content = _content_text(content)
    message: Item = {"role": role, "content": content if content is not None else ""}
    return message | ({"phase": item["phase"]} if role == "assistant" and item.get("phase") else {})


def _content_text(content: Any) -> str:
    """Return an assistant's text or refusal as one text, which every API accepts."""
    if not isinstance(content, list):
        return str(content or "")
    parts = [part for part in content if isinstance(part, dict)]
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def _paired(items: list[Item]) -> list[Item]:
    """Leave out calls without an output, and give each pair a unique id: the SDK takes items with one call id for the
    same."""
    waiting: dict[str, list[int]] = {}
    pairs: list[tuple[int, int]] = []
    for index, item in enumerate(items):
        call_id = str(item.get("call_id"))
        if item.get("type") == "function_call":
            waiting.setdefault(call_id, []).append(index)
        elif item.get("type") == "function_call_output":
            if not waiting.get(call_id):
                raise Unfit("invalid_request", f"There is an output for the call {call_id}, but no such open call.")
            pairs.append((waiting[call_id].pop(0), index))
    open_calls = {index for places in waiting.values() for index in places}
    renamed = _renamed(items, pairs)
    renumbered = [{**item, "call_id": renamed[index]} if index in renamed else item for index, item in enumerate(items)]
    return [item for index, item in enumerate(renumbered) if index not in open_calls]


def _renamed(items: list[Item], pairs: list[tuple[int, int]]) -> dict[int, str]:
    """Return new call ids, by position: for ids used twice, and for servers that seem to count from the start in every
    answer, since they may use these again."""
    ids = [str(items[call]["call_id"]) for call, _ in pairs]
    uses = Counter(ids)
    renamed: dict[int, str] = {}
    for n, ((call, output), call_id) in enumerate(zip(pairs, ids, strict=True), 1):
        if uses[call_id] > 1 or len(call_id) < COUNTED:
            renamed[call] = renamed[output] = f"{call_id[:40]}-past{n}"
    return renamed
