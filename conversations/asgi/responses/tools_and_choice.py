"""Normalize tools and the tool choice: every form that clients send becomes the stored one.

`tool_choice` is `auto`, `none`, `required` or `{"type": "function", "name"}`; a restriction is a list of names. The
nested forms of Chat Completions are accepted too. A run applies them in `agents_app/open_responses/request_team.py`.
"""

from typing import Any

import msgspec

from conversations.asgi.responses.input_items import EXTENSION, check
from conversations.asgi.responses.request_schema import Json, Name, name_shape
from conversations.core.errors import Invalid
from conversations.core.json_values import Converter

MODES = ("auto", "none", "required")
MAX_TOOLS = 128  # tools of one request, and names allowed

Choice = str | Json


class Function(msgspec.Struct):
    """A function that a model may call."""

    name: Name
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


_function: Converter[Function] = Converter(Function)


def read_tools(raw_tools: list[Any] | None) -> list[Json]:
    """Return the tools, with functions in flat form. Raises Invalid for an invalid tool, and for a repeated name."""
    if raw_tools and len(raw_tools) > MAX_TOOLS:
        raise Invalid(f"must have at most {MAX_TOOLS} tools; got {len(raw_tools):,}", field="tools")
    tools = [_tool(tool, f"tools[{at}]") for at, tool in enumerate(raw_tools or ())]
    names: set[str] = set()
    for at, tool in enumerate(tools):
        name = tool["name"] if tool["type"] == "function" else ""
        if name in names:
            raise Invalid(f"must be unique; {name} is repeated", field=f"tools[{at}].name")
        names |= {name} if name else set()
    return tools


def _tool(tool: object, field_path: str) -> Json:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(tool, dict) and isinstance(kind, str) and EXTENSION.fullmatch(kind):
        return tool
    if not isinstance(tool, dict) or kind != "function":
        raise Invalid("must be function, or slug:type for a tool hosted here", field=f"{field_path}.type")
    inner = tool.get("function")
    if isinstance(inner, dict):
        tool, field_path = inner, f"{field_path}.function"
    function = check(tool, _function, field_path)
    return {"type": "function", **{name: getattr(function, name) for name in Function.__struct_fields__}}


def read_choice(raw_choice: object, allowed: object) -> tuple[Choice, list[str] | None]:
    """Return the stored choice and the allowed names; None allows all. An empty list restricts nothing.

    Raises Invalid for an invalid form, for both forms at once, and for a choice that is not allowed.
    """
    chosen, names = _choice(raw_choice)
    if allowed is not None:
        more, mode = _allowed(allowed)
        if names is not None and more is not None:
            raise Invalid("must be given once: as a field or in tool_choice", field="allowed_tools")
        names = names if more is None else more
        chosen = mode if mode and raw_choice is None else chosen
    if isinstance(chosen, dict) and names is not None and chosen["name"] not in names:
        raise Invalid(f"must be among allowed_tools; got {chosen['name']}", field="tool_choice")
    return chosen, names


def _choice(raw_choice: object) -> tuple[Choice, list[str] | None]:
    if raw_choice is None:
        return "auto", None
    if isinstance(raw_choice, str) and raw_choice in MODES:
        return raw_choice, None
    if isinstance(raw_choice, dict) and raw_choice.get("type") == "function":
        return {"type": "function", "name": _name(raw_choice, "tool_choice")}, None
    if isinstance(raw_choice, dict) and raw_choice.get("type") == "allowed_tools":
        names, mode = _allowed(raw_choice, "tool_choice")
        return mode or "auto", names
    raise Invalid(f"must be {', '.join(MODES)}, a function or allowed_tools", field="tool_choice")


def _allowed(value: object, field_path: str = "allowed_tools") -> tuple[list[str] | None, str]:
    """Parse a list of names or of functions, or an object with a mode beside it."""
    mode: object = ""
    if isinstance(value, dict):
        inner = value.get("allowed_tools")
        source = inner if isinstance(inner, dict) else value
        mode, value, field_path = source.get("mode") or "", source.get("tools"), f"{field_path}.tools"
        if mode not in ("", *MODES):
            raise Invalid(f"must be one of {', '.join(MODES)}", field=field_path.replace(".tools", ".mode"))
    if not isinstance(value, list) or len(value) > MAX_TOOLS:
        raise Invalid(f"must be a list of at most {MAX_TOOLS} functions", field=field_path)
    names = [_name(entry, f"{field_path}[{at}]") for at, entry in enumerate(value)]
    return list(dict.fromkeys(names)) or None, str(mode)


def _name(value: object, field_path: str) -> str:
    if isinstance(value, dict):
        inner = value.get("function")
        value = inner.get("name") if isinstance(inner, dict) else value.get("name")
        field_path = f"{field_path}.name"
    return check(value, name_shape, field_path)
