"""Limits of what an MCP server may send: results, which models read and pay for, lists of tools, which the record
keeps, and lines on its standard output that are not messages. Used by `connections`."""

import logging
import time
from collections.abc import Sequence
from contextvars import ContextVar

from mcp.types import ContentBlock, TextContent
from mcp.types import Tool as McpTool

MAX_TOOLS = 500  # of one server
MAX_LIST = 1 << 20  # characters of JSON of a server's list
MAX_TEXT = 1 << 20  # characters of a result: what is neither text nor an image is read as JSON
MAX_IMAGES = 8 << 20  # characters of its images, in base64
MAX_PARTS = 1000  # of a result
CUT = "(The result was longer: Switchboard cut it here.)"
NOISE_EVERY = 60.0  # seconds between two lines in our log about a server's lines that are not messages

serving_name: ContextVar[str] = ContextVar("mcp_server", default="")  # the server whose connection this task holds


def within_list(tools: Sequence[McpTool]) -> list[McpTool]:
    """Return the tools of a list up to its limits."""
    offered, left = list[McpTool](), MAX_LIST
    for tool in tools[:MAX_TOOLS]:
        left -= len(tool.model_dump_json())
        if left < 0:
            break
        offered.append(tool)
    return offered


def within_result(content: Sequence[ContentBlock]) -> list[ContentBlock]:
    """Return a result up to its limits; if something was cut off, its last part says so."""
    parts, left = list[ContentBlock](), {"text": MAX_TEXT, "image": MAX_IMAGES}
    for part in content[:MAX_PARTS]:
        kind = "image" if part.type == "image" else "text"
        size = len(part.text if part.type == "text" else part.data if part.type == "image" else part.model_dump_json())
        if size > left[kind]:
            if part.type == "text":
                parts.append(TextContent(type="text", text=part.text[: left[kind]]))
            break
        left[kind] -= size
        parts.append(part)
    else:
        if len(content) <= MAX_PARTS:
            return parts
    return [*parts, TextContent(type="text", text=CUT)]


class StdoutNoise(logging.Filter):
    """Of lines on a server's standard output that are not messages, report the first of each minute, without a stack
    trace. Many servers print there while they debug, and each line would hold up the worker's loop."""

    def __init__(self) -> None:
        super().__init__()
        self._reported: dict[str, float] = {}  # by server, monotonic

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to report it."""
        if record.funcName != "_parse_line":
            return True
        name, now = serving_name.get(), time.monotonic()
        if now - self._reported.get(name, float("-inf")) < NOISE_EVERY:
            return False
        self._reported[name] = now
        record.levelno, record.levelname, record.exc_info, record.args = logging.WARNING, "WARNING", None, (name,)
        record.msg = "the MCP server %s writes lines to its standard output that are not messages: they are ignored"
        return True
