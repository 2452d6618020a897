"""What a client is answered: collected while its run goes on, told as `response.completed` before the run's end."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agents import ModelResponse, ToolApprovalItem, Usage
from openai.types.responses import Response, ResponseOutputMessage, ResponseReasoningItem

from agents_app.responding.asked import Asked, Item
from conversations.actions.runs import Body
from conversations.responses import call_item_id, message_item_id

LARGEST, LONGEST = 900_000, 20_000  # bytes of an output, characters of a text in one that has more: an event has 1 MiB
LIMITS = (
    "max_turns",
    "max_tool_calls",
    "max_output_tokens",
    "max_output_size",
)  # reasons of run.failed that make it incomplete
CODES = {"error": "model_error", "tool_choice_unmet": "tool_choice_unmet", "invalid_request": "invalid_request"}


class Called(NamedTuple):
    """A call that is the client's to answer."""

    turn: int
    call_id: str
    name: str
    arguments: str


class Answer:
    """One answer. `said` are texts by turn, those of the run's earlier attempts too."""

    def __init__(self, asked: Asked, *, is_own: bool, said: Mapping[int, str], label: str) -> None:
        self.asked = asked
        self.cut = ""  # why the model could not say all of it
        self.calls: list[Called] = []
        self._is_own, self._label = is_own, label
        self._said = dict(said)
        self._refused: dict[int, str] = {}
        self._thought: dict[int, list[Item]] = {}
        self._lost = Usage()  # spent on an answer that the SDK did not take

    def hear(self, turn: int, said: str, response: ModelResponse) -> None:
        """Take a model's answer: what it said, what it would not say, and what it thought."""
        if said:
            self._said[turn] = said
        self._take(turn, response.output)
        most = self.asked.most_tokens
        if most is not None and response.usage.output_tokens >= most:
            self.cut = "max_output_tokens"

    def hear_cut(self, response: Response | None) -> None:
        """Take an answer that the model's server ended itself, before the model had: the SDK ends the run for it."""
        details = response.incomplete_details if response else None
        self.cut = (details and details.reason) or "max_output_tokens"
        if response and (spent := response.usage):
            self._lost.add(Usage(1, spent.input_tokens, spent.input_tokens_details, spent.output_tokens,
                                 spent.output_tokens_details, spent.total_tokens))  # fmt: skip

    def call(self, turn: int, asked: Iterable[ToolApprovalItem]) -> None:
        """Take the calls that are the client's."""
        self.calls += [Called(turn, one.call_id or "", one.name or "", one.arguments or "") for one in asked]

    def refusals(self) -> list[Body]:
        """Answer what the record is told of a refusal: it is said with the last turn, and no model text of ours."""
        return [
            {"event": "output", "turn": turn, "text": text, "final": True, "refusal": True}
            for turn, text in self._refused.items()
            if turn not in self._said
        ]

    def completed(self, end: Body, told: Sequence[Body], spent: Usage | None) -> list[Body]:
        """Answer the response's end, by the run's end and what is told beside it; none for a run done once more."""
        if not self._is_own:
            return []
        for one in told:
            if one["event"] == "output" and not (one.get("parent_call") or one.get("refusal")):
                self._said[int(str(one["turn"]))] = str(one["text"])
        partial = {one["turn"] for one in told if one.get("is_partial")}
        facts: Body = {"event": "response.completed", "response_id": self.asked.response_id, "model": self._label}
        facts |= _status(end, self.cut)
        items = self._output(partial, is_whole=facts["status"] == "completed")
        if len(json.dumps(items, ensure_ascii=False).encode("utf-8", "surrogatepass")) > LARGEST:
            items = [_shortened(item) for item in items]
            facts |= _status({"event": "run.failed", "reason": "max_output_size"}, "")
        return [facts | {"output": items, "usage": self._usage(spent)}]

    def _take(self, turn: int, items: Iterable[Any]) -> None:
        thoughts = self._thought.setdefault(turn, [])
        for item in items:
            if isinstance(item, ResponseReasoningItem):
                thoughts.append(_thought(item, f"{self.asked.response_id}:{turn}:{len(thoughts) + 1}"))
            elif isinstance(item, ResponseOutputMessage):
                refused = "".join(part.refusal for part in item.content if part.type == "refusal")
                if refused:
                    self._refused[turn] = refused

    def _output(self, partial: set[Any], *, is_whole: bool) -> list[Item]:
        made: list[Item] = []
        turns = sorted({*self._said, *self._refused, *(call.turn for call in self.calls)})
        for turn in turns:
            made += self._thought.get(turn, [])
            is_cut = turn in partial or (not is_whole and bool(self.cut) and turn == turns[-1])
            made += self._message(turn, "incomplete" if is_cut else "completed")
        uses: Counter[str] = Counter()
        for call in self.calls:
            uses[call.call_id] += 1
            made.append(
                {
                    "type": "function_call",
                    "id": call_item_id(self.asked.response_id, call.call_id, uses[call.call_id]),
                    "call_id": call.call_id,
                    "name": call.name,
                    "arguments": call.arguments,
                    "status": "completed",
                }
            )
        return made

    def _message(self, turn: int, status: str) -> list[Item]:
        content: list[Item] = []
        if text := self._said.get(turn):
            content.append({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
        if refused := self._refused.get(turn):
            content.append({"type": "refusal", "refusal": refused})
        id_ = message_item_id(self.asked.response_id, turn)
        message: Item = {"type": "message", "id": id_, "status": status, "role": "assistant", "content": content}
        return [message] if content else []

    def _usage(self, spent: Usage | None) -> Item | None:
        total = Usage()
        for usage in (spent, self._lost):
            if usage is not None:
                total.add(usage)
        if not total.requests:
            return None
        return {
            "input_tokens": total.input_tokens,
            "input_tokens_details": {"cached_tokens": total.input_tokens_details.cached_tokens},
            "output_tokens": total.output_tokens,
            "output_tokens_details": {"reasoning_tokens": total.output_tokens_details.reasoning_tokens},
            "total_tokens": total.total_tokens,
        }


def _status(end: Body, cut: str) -> Body:
    """Tell what a run's end means for its client."""
    reason, error, incomplete = str(end.get("reason") or ""), None, None
    match end["event"]:
        case "run.done":
            status, incomplete = ("incomplete", cut) if cut else ("completed", None)
        case "run.cancelled":
            status = "cancelled"
        case "run.failed" if reason in LIMITS:
            status, incomplete = "incomplete", reason
        case _:
            status = "failed"
            error = {"code": CODES.get(reason, "server_error"), "message": str(end.get("error") or reason)}
    return {
        "status": status, "error": error, "incomplete_details": {"reason": incomplete} if incomplete else None,
    }  # fmt: skip


def _shortened(item: Item) -> Item:
    """Cut the texts of an item that is part of too large an answer; it is said to be incomplete."""
    parts = [{key: _cut(value) for key, value in part.items()} for part in item.get("content") or ()]
    made = {key: _cut(value) for key, value in item.items()} | ({"content": parts} if parts else {})
    return made | ({"status": "incomplete"} if "status" in item else {})


def _cut(value: Any) -> Any:
    return value[:LONGEST] if isinstance(value, str) else value


def _thought(item: ResponseReasoningItem, key: str) -> Item:
    made: Item = {"type": "reasoning", "id": f"rs_{hashlib.sha256(key.encode()).hexdigest()[:32]}"}
    made["summary"] = [{"type": "summary_text", "text": part.text} for part in item.summary]
    if item.content:
        made["content"] = [{"type": "reasoning_text", "text": part.text} for part in item.content]
    return made | ({"encrypted_content": item.encrypted_content} if item.encrypted_content else {})
