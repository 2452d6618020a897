"""Tools and the choice among them: every shape that clients send becomes the one that is stored.

`tool_choice` is `auto`, `none`, `required` or `{"type": "function", "name"}`; what restricts is a list of names. The
nested forms of Chat Completions are taken too.
"""

from typing import Any

import msgspec

from conversations.doors.responses.fields import Json, Name
from conversations.doors.responses.items import EXTENSION, check
from conversations.errors import Invalid

MODES = ("auto", "none", "required")
MOST = 128  # tools of one request, and names allowed

Choice = str | Json


class Function(msgspec.Struct):
    """A function that a model may call."""

    name: Name
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


def read(given: list[Any] | None) -> list[Json]:
    """Answer the tools, functions flat. Raises Invalid for what is none, and for two of one name."""
    if given and len(given) > MOST:
        raise Invalid(f"expected at most {MOST} tools; got {len(given):,}", field="tools")
    tools = [_tool(tool, f"tools[{at}]") for at, tool in enumerate(given or ())]
    names: set[str] = set()
    for at, tool in enumerate(tools):
        name = tool["name"] if tool["type"] == "function" else ""
        if name in names:
            raise Invalid(f"expected each name once; {name} comes again", field=f"tools[{at}].name")
        names |= {name} if name else set()
    return tools


def _tool(tool: object, place: str) -> Json:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(tool, dict) and isinstance(kind, str) and EXTENSION.fullmatch(kind):
        return tool
    if not isinstance(tool, dict) or kind != "function":
        raise Invalid("expected a tool of type function, or slug:type for one hosted here", field=f"{place}.type")
    inner = tool.get("function")
    if isinstance(inner, dict):
        tool, place = inner, f"{place}.function"
    function = check(tool, Function, place)
    return {"type": "function", **{name: getattr(function, name) for name in Function.__struct_fields__}}


def choice(given: object, allowed: object) -> tuple[Choice, list[str] | None]:
    """Answer the stored choice and the names that are allowed; None allows all. An empty list restricts nothing.

    Raises Invalid for a shape that is none, for both forms at once, and for a choice that is not allowed.
    """
    chosen, names = _choice(given)
    if allowed is not None:
        more, mode = _allowed(allowed)
        if names is not None and more is not None:
            raise Invalid("expected allowed_tools once: beside tool_choice, or as it", field="allowed_tools")
        names = names if more is None else more
        chosen = mode if mode and given is None else chosen
    if isinstance(chosen, dict) and names is not None and chosen["name"] not in names:
        raise Invalid(f"{chosen['name']} is chosen, but not among allowed_tools", field="tool_choice")
    return chosen, names


def _choice(given: object) -> tuple[Choice, list[str] | None]:
    if given is None:
        return "auto", None
    if isinstance(given, str) and given in MODES:
        return given, None
    if isinstance(given, dict) and given.get("type") == "function":
        return {"type": "function", "name": _name(given, "tool_choice")}, None
    if isinstance(given, dict) and given.get("type") == "allowed_tools":
        names, mode = _allowed(given, "tool_choice")
        return mode or "auto", names
    raise Invalid(f"expected {', '.join(MODES)}, a function or allowed_tools", field="tool_choice")


def _allowed(given: object, place: str = "allowed_tools") -> tuple[list[str] | None, str]:
    """Read a list of names or of functions, or the object that has a mode beside it."""
    mode: object = ""
    if isinstance(given, dict):
        inner = given.get("allowed_tools")
        told = inner if isinstance(inner, dict) else given
        mode, given, place = told.get("mode") or "", told.get("tools"), f"{place}.tools"
        if mode not in ("", *MODES):
            raise Invalid(f"expected one of {', '.join(MODES)}", field=place.replace(".tools", ".mode"))
    if not isinstance(given, list) or len(given) > MOST:
        raise Invalid(f"expected a list of at most {MOST} functions", field=place)
    names = [_name(one, f"{place}[{at}]") for at, one in enumerate(given)]
    return list(dict.fromkeys(names)) or None, str(mode)


def _name(given: object, place: str) -> str:
    if isinstance(given, dict):
        inner = given.get("function")
        given = inner.get("name") if isinstance(inner, dict) else given.get("name")
        place = f"{place}.name"
    name: str = check(given, Name, place)
    return name
