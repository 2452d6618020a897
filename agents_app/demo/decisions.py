"""What the demo model does next: speak, call a tool or hand over, depending on the messages and what it is offered.

It has no memory and no randomness: the same conversation gives the same step. A citizen's request (report an incident,
give feedback, see figures) is a short plan of tools; the agent that is offered the next tool calls it, any other hands
over towards it, and in the end to the agent that speaks. For other teams, tools and agents are chosen by their names.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from agents import FunctionTool, Handoff, Tool

from agents_app.approval_gate.output_after_edit import parted
from agents_app.demo import json_filling, sentences, text_rules
from agents_app.demo.text_rules import Reading, Wish

MAX_STEPS = 12  # calls and handovers for one message; then it answers, whatever happened

PLANS: dict[Wish, tuple[str, ...]] = {
    "incident": ("incident_formatter", "file_incident"),
    "feedback": ("feedback_formatter",),
    "statistics": ("insight",),
}
DESKS: dict[Wish, tuple[str, ...]] = {
    "incident": ("format", "triage"),
    "feedback": ("format", "triage"),
    "statistics": ("insight", "triage"),
}
SPEAKER = "dialogue"


class Say(NamedTuple):
    """Answer with a text (JSON for an agent with an output type)."""

    text: str


class DemoCall(NamedTuple):
    """A tool call, or a handover by a handoff's tool."""

    name: str
    arguments: dict[str, Any]


class DemoOffer(NamedTuple):
    """What a model call offers. `schema` is the JSON schema of a structured answer, `choice` the `tool_choice`."""

    items: Sequence[Any]
    tools: Sequence[Tool]
    handoffs: Sequence[Handoff[Any, Any]]
    schema: dict[str, Any] | None = None
    choice: str = "auto"

    def tool(self, part: str) -> FunctionTool | None:
        """Return a function tool by a part of its name; None without one."""
        return next((t for t in self.tools if isinstance(t, FunctionTool) and part in t.name.lower()), None)

    def handoff(self, part: str) -> Handoff[Any, Any] | None:
        """Return a handoff by a part of its agent's name; None without one."""
        phrase = part.replace("_", " ")
        return next((h for h in self.handoffs if phrase in h.agent_name.lower()), None)


class DemoTurn(NamedTuple):
    """The state of a conversation: the message to answer, what was done for it, and what came before."""

    words: str
    before: str
    said_before: str
    outputs: dict[str, Any]
    steps: int
    earlier: list[Any]

    @property
    def results(self) -> dict[str, Any]:
        """Return the tools' results; `outputs` also has the SDK's outputs of handovers."""
        return {name: output for name, output in self.outputs.items() if not name.startswith("transfer_to_")}


def decide(offer: DemoOffer) -> Say | DemoCall:
    """Return the next step."""
    turn = turn_of(offer.items)
    reading = reading_of(turn)
    if offer.choice == "none":
        offer = offer._replace(tools=[], handoffs=[])
    step = _step(offer, turn, reading) if turn.steps < MAX_STEPS else None
    if step := _forced(offer, turn, reading, step) or step:
        return step
    if offer.schema is not None:
        return Say(json.dumps(json_filling.fill(offer.schema, reading, _result_fields(turn)), ensure_ascii=False))
    return Say(_answer(offer, turn, reading))


def _forced(offer: DemoOffer, turn: DemoTurn, reading: Reading, step: DemoCall | None) -> DemoCall | None:
    """Return the call that `tool_choice` requires; None if none is required, or if the next step meets it."""
    if offer.choice in ("auto", "none") or (offer.choice == "required" and step is not None):
        return None
    tools = [tool for tool in offer.tools if isinstance(tool, FunctionTool)]
    candidates = tools if offer.choice == "required" else [tool for tool in tools if tool.name == offer.choice]
    return _call(candidates[-1], turn, reading) if candidates else None


def turn_of(items: Sequence[Any]) -> DemoTurn:
    """Parse the conversation's items."""
    user_indexes = [n for n, item in enumerate(items) if item.get("role") == "user"]
    last = user_indexes[-1] if user_indexes else 0
    names, done, steps = {}, {}, 0
    for item in items[last:]:
        if item.get("type") == "function_call":
            names[item.get("call_id")] = item["name"]
            steps += 1
        elif item.get("type") == "function_call_output":
            done[names.get(item.get("call_id"), "")] = _output(item.get("output"))
    assistant_texts = [_text(item) for item in items[:last] if item.get("role") == "assistant"]
    before = [item.get("output") for item in items[:last] if item.get("type") == "function_call_output"]
    earlier = [parted(_output(output))[0] for output in before]
    words_before = _text(items[user_indexes[-2]]) if len(user_indexes) > 1 else ""
    return DemoTurn(
        _text(items[last]) if user_indexes else "",
        words_before,
        assistant_texts[-1] if assistant_texts else "",
        done,
        steps,
        earlier,
    )


def reading_of(turn: DemoTurn) -> Reading:
    """Parse the message; an answer to the question for the place completes the message before."""
    reading = text_rules.read(turn.words)
    if not sentences.asked_where(turn.said_before) or reading.wish in ("cancel", "statistics", "status"):
        return reading
    location = reading.place or json_filling.cut(reading.text, 120)
    if reading.wish in ("blank", "unreadable", "injection") or (reading.wish == "question" and not reading.place):
        return reading._replace(wish="question")
    whole = text_rules.read(f"{turn.before[: text_rules.READ - 300]} Place: {location}")
    return whole._replace(wish="incident", kind=whole.kind or "incident", place=location)


def _step(offer: DemoOffer, turn: DemoTurn, reading: Reading) -> DemoCall | None:
    """Return a call or a handover; None if it is time to speak."""
    plan = PLANS.get(reading.wish, ())
    is_speaker = offer.handoff(SPEAKER) is None
    if is_speaker and _needs_place(offer, turn, reading):
        return None
    for part in plan if not _failed(turn) else ():
        if any(part in name for name in turn.results):
            continue
        if tool := offer.tool(part):
            return _call(tool, turn, reading)
        return _handover(offer, turn, DESKS[reading.wish]) or _handover(offer, turn, (SPEAKER,))
    if not is_speaker:
        return _handover(offer, turn, (SPEAKER,))
    return None if plan else _by_name(offer, turn, reading)


def _needs_place(offer: DemoOffer, turn: DemoTurn, reading: Reading) -> bool:
    return reading.wish == "incident" and not reading.place and not turn.outputs and _is_town(offer)


def _failed(turn: DemoTurn) -> bool:
    """Return whether a tool of the plan returned something other than a result, so that nothing can build on it."""
    return any("formatter" in name and not isinstance(parted(output)[0], dict) for name, output in turn.results.items())


def _call(tool: FunctionTool, turn: DemoTurn, reading: Reading) -> DemoCall:
    return DemoCall(tool.name, json_filling.fill(tool.params_json_schema, reading, _result_fields(turn)))


def _result_fields(turn: DemoTurn) -> dict[str, Any]:
    """Return the fields of this turn's results, which later calls use."""
    fields: dict[str, Any] = {}
    for output in turn.results.values():
        own, _ = parted(output)
        fields |= own if isinstance(own, dict) else {}
    return fields


def _handover(offer: DemoOffer, turn: DemoTurn, parts: tuple[str, ...]) -> DemoCall | None:
    for part in parts:
        handoff = offer.handoff(part)
        if handoff is not None and (handoff.tool_name not in turn.outputs or part == SPEAKER):
            return DemoCall(handoff.tool_name, {})
    return None


def _by_name(offer: DemoOffer, turn: DemoTurn, reading: Reading) -> DemoCall | None:
    """For an unknown team, return a call of a tool, then a handover to an agent, whose name is in the message, each
    once."""
    if message := _message_to(offer, turn):
        return message
    message_words = set(re.findall(r"\w{3,}", reading.text.lower()))
    for tool in offer.tools:
        if (
            isinstance(tool, FunctionTool)
            and tool.name != "chat_send"
            and tool.name not in turn.outputs
            and _named(tool.name, message_words)
        ):
            return _call(tool, turn, reading)
    for handoff in offer.handoffs:
        if handoff.tool_name not in turn.outputs and _named(handoff.agent_name, message_words):
            return DemoCall(handoff.tool_name, {})
    return None


def _message_to(offer: DemoOffer, turn: DemoTurn) -> DemoCall | None:
    """Parse `tell agent:Name something`: a message to another agent, by `chat_send`."""
    match = re.match(r"(?is)(?:please\s+)?(?:tell|ask|message)\s+(agent:[\w-]+)\s+(?:that\s+|to\s+)?(\S.*)", turn.words)
    if match is None or offer.tool("chat_send") is None or "chat_send" in turn.outputs:
        return None
    return DemoCall("chat_send", {"recipient": match[1], "content": match[2].strip(), "conversation_id": None})


def _named(name: str, message_words: set[str]) -> bool:
    parts = [
        part for part in re.findall(r"[a-z]{3,}", name.lower()) if part not in ("get", "tool", "agent", "the", "and")
    ]
    return any(
        word.startswith(part) or (part.startswith(word) and len(word) > 3) for part in parts for word in message_words
    )


def _answer(offer: DemoOffer, turn: DemoTurn, reading: Reading) -> str:
    if not _is_town(offer) and not turn.results.keys() & {"file_incident", "feedback_formatter_tool", "give_insights"}:
        return sentences.plain(turn.results, [t.name for t in offer.tools], reading)
    if _needs_place(offer, turn, reading):
        return sentences.where(reading)
    return sentences.answer(reading, turn.results, turn.earlier, was_asked=sentences.asked_where(turn.said_before))


def _is_town(offer: DemoOffer) -> bool:
    return offer.handoff("triage") is not None or offer.tool("file_incident") is not None


def _text(item: Any) -> str:
    content = item.get("content")
    if not isinstance(content, str):
        content = " ".join(str(part["text"]) for part in content or () if isinstance(part, dict) and "text" in part)
    return content.encode("utf-8", "replace").decode()  # a lone surrogate fits into no JSON


def _output(output: Any) -> Any:
    """Parse a tool's output: JSON objects as such, anything else as text."""
    if isinstance(output, list):
        output = " ".join(str(part.get("text", "")) for part in output if isinstance(part, dict))
    try:
        value = json.loads(output)
    except (TypeError, ValueError, RecursionError):
        return output
    return value if isinstance(value, dict) else output
