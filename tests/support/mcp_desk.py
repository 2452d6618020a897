"""A small MCP server for tests: `python -m tests.support.mcp_desk FILE [PORT]`, over stdio or, with a port, over HTTP.

What it does it appends to FILE. The file `FILE.more` adds a tool; `FILE.hang` makes `slow` wait.
"""

import asyncio
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, ToolAnnotations

EFFECTS = Path(sys.argv[1])
desk = MCPServer("desk")


def _did(what: str) -> str:
    with EFFECTS.open("a") as file:
        file.write(f"{what}\n")
    return f"{what} done"


@desk.tool(annotations=ToolAnnotations(readOnlyHint=True, destructiveHint=False))
def stamp(words: str = "") -> str:
    """Stamp a form. One that is torn is stamped, and answered with an error of the protocol instead of a result."""
    text = _did(f"stamp:{words}" if words else "stamp")
    if words == "torn":
        raise MCPError(INTERNAL_ERROR, "the form is torn")
    return text


@desk.tool()
async def slow() -> str:
    """Wait for ever."""
    _did("slow")
    await asyncio.sleep(3600)
    return "never"


@desk.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("no ink")


@desk.tool()
def shred(words: str) -> str:
    """Shred a form."""
    return _did("shred")


if EFFECTS.with_suffix(".more").exists():
    desk.tool(name="more")(lambda: _did("more"))

if len(sys.argv) > 2:
    desk.run("streamable-http", port=int(sys.argv[2]))
else:
    desk.run()
