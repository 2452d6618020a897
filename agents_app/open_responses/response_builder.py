"""Build the client's response while its run goes on: the `response.completed` before the run's end."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agents import ModelResponse, ToolApprovalItem, Usage
from openai.types.responses import Response, ResponseReasoningItem

from agents_app.open_responses.request import Item, RunRequest
from agents_app.worker.model_turns import StreamedMessage
from agents_app.worker.run_hooks import total_of, usage_of
from conversations.events.response_ids import call_item_id, message_item_id, reasoning_item_id
from conversations.runs.claims import Body

MAX_OUTPUT_BYTES = 900_000  # of all items: an event has 1 MiB
MAX_SHORTENED_TEXT = 20_000  # characters of a text in an output that has more, fewer where that is still too much
TEXTS = ("text", "refusal", "arguments")
LIMITS = (
    "max_turns",
    "max_tool_calls",
    "max_output_tokens",
    "max_output_size",
)  # reasons of run.failed that make it incomplete
OWN_CODES = (
    "tool_choice_unmet",
    "invalid_request",
    "unknown_tool",
    "output_limit",
)  # reasons of run.failed that are passed on as they are
CODES = {"error": "model_error"} | {name: name for name in OWN_CODES}


class Called(NamedTuple):
    """A call for the client to answer."""

    turn: int
    call_id: str
    name: str
    arguments: str


class Spoken(NamedTuple):
    """A message of an earlier attempt."""

    text: str
    phase: str = ""
    thoughts: int = 0  # reasoning items right before it, which the record does not have


class ResponseBuilder:
    """One response. `spoken` are the messages by turn and `output_tokens` the tokens of the run's earlier attempts."""

    def __init__(
        self, request: RunRequest, *, is_own: bool, spoken: Mapping[int, Spoken], output_tokens: int, label: str
    ) -> None:
        self.request = request
        self.cut = ""  # why the model could not say all of it
        self.calls: list[Called] = []
        self._output_tokens = output_tokens
        self._is_own, self._label = is_own, label
        self._texts_by_turn = {turn: message.text for turn, message in spoken.items()}
        self._phase = {turn: message.phase for turn, message in spoken.items() if message.phase}
        self._refused: dict[int, str] = {}
        self._announced = {turn: message.thoughts for turn, message in spoken.items()}
        self._thought: dict[int, list[Item]] = {}  # before the message of a turn
        self._last_thought: dict[int, list[Item]] = {}  # after the messages of the last answer
        self._has_unknown_usage = False
        self._lost = Usage()  # spent on an answer that the SDK did not take

    def hear(self, turn: int, spoken: Sequence[StreamedMessage], response: ModelResponse) -> None:
        """Add a model's answer: messages, refusals and reasoning."""
        for message in spoken:
            if message.text:
                self._texts_by_turn[message.number] = message.text
            if message.refusal:
                self._refused[message.number] = message.refusal
            if message.phase:
                self._phase[message.number] = message.phase
        self._has_unknown_usage = self._has_unknown_usage or usage_of(response.usage) is None
        self._think(turn, spoken, response.output)
        self._output_tokens += response.usage.output_tokens
        if self.tokens_left is not None and self.tokens_left <= 0:
            self.cut = "max_output_tokens"

    @property
    def tokens_left(self) -> int | None:
        """Return how many output tokens the response may still have; None without a limit."""
        most = self.request.most_tokens
        return None if most is None else most - self._output_tokens

    def hear_cut(self, response: Response | None) -> None:
        """Add an answer that the model's server cut off, for which the SDK ends the run."""
        details = response.incomplete_details if response else None
        self.cut = (details and details.reason) or "max_output_tokens"
        if response and (spent := response.usage):
            self._lost.add(Usage(1, spent.input_tokens, spent.input_tokens_details, spent.output_tokens,
                                 spent.output_tokens_details, spent.total_tokens))  # fmt: skip

    def call(self, turn: int, items: Iterable[ToolApprovalItem]) -> None:
        """Add the calls for the client."""
        self.calls += [Called(turn, item.call_id or "", item.name or "", item.arguments or "") for item in items]

    def refusals(self) -> list[Body]:
        """Return the events for a refusal, which belongs to the last turn and is not model text of ours."""
        return [
            {"event": "output", "turn": turn, "text": text, "final": True, "refusal": True}
            | ({"thoughts": self._announced[turn]} if self._announced.get(turn) else {})
            for turn, text in self._refused.items()
            if turn not in self._texts_by_turn
        ]

    def completed(self, end: Body, bodies: Sequence[Body], spent: Usage | None) -> list[Body]:
        """Return the `response.completed` for the run's end and the events beside it; empty for a run done once
        more."""
        if not self._is_own:
            return []
        for body in bodies:
            if body["event"] == "output" and not (body.get("parent_call") or body.get("refusal")):
                turn = int(str(body["turn"]))
                self._texts_by_turn[turn] = str(body["text"])
                self._announced[turn] = int(str(body.get("thoughts") or self._announced.get(turn, 0)))
                if phase := body.get("phase"):
                    self._phase[turn] = str(phase)
        partial = {body["turn"] for body in bodies if body.get("is_partial")}
        event: Body = {"event": "response.completed", "response_id": self.request.response_id, "model": self._label}
        event |= _status(end, self.cut)
        items = self._output(partial, is_whole=event["status"] == "completed")
        if _size(items) > MAX_OUTPUT_BYTES:
            items = _fitting(items)
            event |= _status({"event": "run.failed", "reason": "max_output_size"}, "")
        return [event | {"output": items, "usage": self._usage(spent)}]

    def _think(self, turn: int, spoken: Sequence[StreamedMessage], items: Sequence[Any]) -> None:
        """Add reasoning: as many items before each message as its stream announced, and the rest after the answer."""
        thoughts = [item for item in items if isinstance(item, ResponseReasoningItem)]
        for message in spoken:
            self._announced[message.number] = message.thoughts
            self._thought[message.number] = self._thoughts(message.number, thoughts[: message.thoughts])
            thoughts = thoughts[message.thoughts :]
        self._last_thought = {turn: self._thoughts(turn, thoughts, after=self._announced.get(turn, 0))}

    def _thoughts(self, turn: int, items: Iterable[ResponseReasoningItem], *, after: int = 0) -> list[Item]:
        return [_thought(item, self._thought_id(turn, nth)) for nth, item in enumerate(items, after + 1)]

    def _thought_id(self, turn: int, nth: int) -> str:
        return reasoning_item_id(self.request.response_id, turn, nth)

    def _announced_thoughts(self, turn: int) -> list[Item]:
        """Return the reasoning before a turn's message; an item that was announced and did not arrive is empty."""
        thoughts = self._thought.get(turn, [])
        missing = range(len(thoughts), self._announced.get(turn, 0))
        return thoughts + [{"type": "reasoning", "id": self._thought_id(turn, n + 1), "summary": []} for n in missing]

    def _output(self, partial: set[Any], *, is_whole: bool) -> list[Item]:
        output: list[Item] = []
        turns = sorted({*self._texts_by_turn, *self._refused, *(call.turn for call in self.calls)})
        for turn in turns:
            output += self._announced_thoughts(turn)
            is_cut = turn in partial or (not is_whole and bool(self.cut) and turn == turns[-1])
            output += self._message(turn, "incomplete" if is_cut else "completed")
            output += self._last_thought.get(turn, [])
        uses: Counter[str] = Counter()
        for call in self.calls:
            uses[call.call_id] += 1
            output.append(
                {
                    "type": "function_call",
                    "id": call_item_id(self.request.response_id, call.call_id, uses[call.call_id]),
                    "call_id": call.call_id,
                    "name": call.name,
                    "arguments": call.arguments,
                    "status": "completed",
                }
            )
        return output

    def _message(self, turn: int, status: str) -> list[Item]:
        content: list[Item] = []
        if text := self._texts_by_turn.get(turn):
            content.append({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
        if refused := self._refused.get(turn):
            content.append({"type": "refusal", "refusal": refused})
        id_ = message_item_id(self.request.response_id, turn)
        message: Item = {"type": "message", "id": id_, "status": status, "role": "assistant", "content": content}
        message |= {"phase": self._phase[turn]} if turn in self._phase else {}
        return [message] if content else []

    def _usage(self, spent: Usage | None) -> Item | None:
        total = Usage()
        for usage in (spent, self._lost):
            if usage is not None:
                total.add(usage)
        if not total.requests or self._has_unknown_usage or total_of(total) is None:
            return None
        return {
            "input_tokens": total.input_tokens,
            "input_tokens_details": {"cached_tokens": total.input_tokens_details.cached_tokens},
            "output_tokens": total.output_tokens,
            "output_tokens_details": {"reasoning_tokens": total.output_tokens_details.reasoning_tokens},
            "total_tokens": total.total_tokens,
        }


def _status(end: Body, cut: str) -> Body:
    """Return the response's status for a run's end."""
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


def _fitting(items: Sequence[Item]) -> list[Item]:
    """Return the items of a too large response, which then is incomplete, with texts so short that all fit into the
    event; of items without end the newest."""
    most = MAX_SHORTENED_TEXT
    shortened = [_shortened(item, most) for item in items]
    while most > 0 and _size(shortened) > MAX_OUTPUT_BYTES:
        most //= 2
        shortened = [_shortened(item, most) for item in items]
    while _size(shortened) > MAX_OUTPUT_BYTES:
        shortened = shortened[(len(shortened) + 1) // 2 :]
    return shortened


def _shortened(item: Item, most: int) -> Item:
    """Shorten the texts of an item, those of its parts too; what is encrypted is left out, since a part of it is
    useless."""
    left = {name: value for name, value in _cut(item, most).items() if name != "encrypted_content"}
    for name in ("content", "summary"):
        if parts := item.get(name):
            left[name] = [_cut(part, most) for part in parts]
    return left | ({"status": "incomplete"} if "status" in item else {})


def _cut(fields: Item, most: int) -> Item:
    return {name: value[:most] if name in TEXTS else value for name, value in fields.items()}


def _size(items: Sequence[Item]) -> int:
    return len(json.dumps(items, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _thought(item: ResponseReasoningItem, id_: str) -> Item:
    reasoning: Item = {"type": "reasoning", "id": id_}
    reasoning["summary"] = [{"type": "summary_text", "text": part.text} for part in item.summary]
    if item.content:
        reasoning["content"] = [{"type": "reasoning_text", "text": part.text} for part in item.content]
    return reasoning | ({"encrypted_content": item.encrypted_content} if item.encrypted_content else {})
