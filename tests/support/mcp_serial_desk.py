"""An MCP server over stdio that answers one request after the other, as a plain loop does: `python FILE EFFECTS`.

`weigh` takes a second and a half; `wait` never ends. What it begins it appends to EFFECTS.
"""

import json
import sys
import time
from pathlib import Path

EFFECTS = Path(sys.argv[1])
SECONDS = {"weigh": 1.5, "wait": 3600.0}


def _answer(method: str, params: dict[str, object]) -> dict[str, object]:
    if method == "initialize":
        about = {"serverInfo": {"name": "serial", "version": "1"}, "capabilities": {"tools": {}}}
        return {"protocolVersion": params["protocolVersion"], **about}
    if method == "tools/list":
        return {"tools": [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in SECONDS]}
    name = str(params["name"])
    with EFFECTS.open("a") as file:
        file.write(f"{name}\n")
    time.sleep(SECONDS[name])
    return {"content": [{"type": "text", "text": f"{name} done"}], "isError": False}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        known = request["method"] in ("initialize", "tools/list", "tools/call")
        outcome = (
            {"result": _answer(request["method"], request.get("params") or {})}
            if known
            else {"error": {"code": -32601, "message": "there is no such method"}}
        )
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}) + "\n")
        sys.stdout.flush()
