"""What a client of the Open Responses API asks of a run, parsed from its `response.received`. Created in
`run_input`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents_app.run_scope import Restriction

KIND = "response.received"
Item = dict[str, Any]


class Unfit(Exception):
    """A request that cannot be answered. `code` is the response's error code, the text is for its client."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Limited(Exception):
    """A limit of the request was reached: the response is incomplete, `code` says which limit."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request. Its texts are the client's: text, never authority (law G)."""

    response_id: str
    by: str
    """the principal that asked"""
    model: str
    items: list[Item]
    instructions: str
    tools: list[Item]
    tool_choice: str | Mapping[str, Any]
    allowed: list[str]
    """names; empty restricts nothing"""
    params: Mapping[str, Any]
    store: bool = True
    hosted: frozenset[str] = frozenset()
    """names of its tools that run here and not in the client, by the rows when it came"""

    @property
    def restriction(self) -> Restriction:
        """Return what the run may call."""
        return Restriction(frozenset(self.allowed) or None, none=self.tool_choice == "none")

    @property
    def forced(self) -> str:
        """Return what the model must call first: a tool's name, `*` for any, empty for nothing."""
        if isinstance(self.tool_choice, Mapping):
            return str(self.tool_choice.get("name") or "")
        return "*" if self.tool_choice == "required" else ""

    @property
    def most_tokens(self) -> int | None:
        """Return the maximum number of output tokens; None without a limit."""
        return _whole(self.params.get("max_output_tokens"))

    @property
    def most_calls(self) -> int | None:
        """Return the maximum number of tool calls here; None without a limit."""
        return _whole(self.params.get("max_tool_calls"))

    @property
    def format(self) -> Mapping[str, Any]:
        """Return the output format; `{"type": "text"}` by default."""
        text = self.params.get("text")
        form = text.get("format") if isinstance(text, dict) else None
        return form if isinstance(form, dict) else {"type": "text"}


def read(body: str, principal: str) -> RunRequest:
    """Parse a `response.received`. Missing fields are empty: the endpoint has validated it, and redaction may empty
    it."""
    fields: dict[str, Any] = json.loads(body)
    return RunRequest(
        response_id=str(fields.get("response_id") or ""),
        by=principal,
        model=str(fields.get("model") or ""),
        items=objects(fields.get("input")),
        instructions=str(fields.get("instructions") or ""),
        tools=objects(fields.get("tools")),
        tool_choice=fields.get("tool_choice") or "auto",
        allowed=[name for name in fields.get("allowed_tools") or () if isinstance(name, str)],
        params=fields.get("params") or {},
        store=fields.get("store") is not False,
        hosted=frozenset(name for name in fields.get("hosted") or () if isinstance(name, str)),
    )


def objects(value: object) -> list[Item]:
    """Return the objects of a JSON list, without other items."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
