"""The saved state of a paused run: the SDK's state, unchanged and signed, with what it has to match (§8). Never
accepted from a client."""

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agents import FunctionTool, ToolApprovalItem, version
from agents.run_state import CURRENT_SCHEMA_VERSION, SUPPORTED_SCHEMA_VERSIONS
from django.conf import settings

from agents_app.memory.interjections import Interjection
from agents_app.tools import identity
from conversations.core.ids import text_digest
from conversations.runs.claims import Claim


class Incompatible(Exception):
    """A saved state does not match the current team, or was altered. The text is for people."""


class SavedState(NamedTuple):
    """A state and its metadata: the number of turns, whose run it is, and the messages delivered before it
    continues."""

    state: str
    turns: int
    team: str = ""
    interjections: Sequence[Interjection] = ()


class SignedRunState(NamedTuple):
    """A saved state as the columns of its run: the text, its signature, and the versions and tools that it fits."""

    state: str
    state_mac: str
    sdk: str


def sign(run: str, saved: SavedState, tools: str) -> SignedRunState:
    """Return the columns of a run that is suspended with this state."""
    fields = {"v": 1, "turns": saved.turns, "team": saved.team, "state": saved.state, "heard": saved.interjections}
    text = json.dumps(fields)
    sdk = f"{version.__version__}/{CURRENT_SCHEMA_VERSION}/{tools}"
    return SignedRunState(text, _mac(run, sdk, text), sdk)


def verify(claim: Claim) -> tuple[SavedState, str]:
    """Return the saved state of a run, and the hash of its tools at that time. Raises Incompatible."""
    text, sdk = claim.state or "", claim.sdk or ""
    if not hmac.compare_digest(_mac(claim.run, sdk, text), claim.state_mac or ""):
        raise Incompatible("the saved state does not match its signature: the state or the secret key was changed")
    _, form, tools = sdk.split("/")
    if form not in SUPPORTED_SCHEMA_VERSIONS:
        raise Incompatible(
            f"the state was saved by another release of the Agents SDK: schema {form}, now {CURRENT_SCHEMA_VERSION}"
        )
    return _parse_state(text), tools


def acting_agent(claim: Claim) -> str:
    """Return the name of the agent that acts next: that of the saved state, or the one with which the run began, also
    where the state cannot be read, which is reported when the run goes on. Raises Incompatible."""
    if claim.state is None:
        return claim.agent
    saved, _ = verify(claim)
    try:
        return str(json.loads(saved.state)["current_agent"]["name"])
    except (ValueError, TypeError, KeyError):
        return claim.agent


def tools_hash(items: Iterable[ToolApprovalItem]) -> str:
    """Return the hash of the tools for which calls wait, as their agents have them now. Raises Incompatible if one is
    missing."""
    tool_keys = sorted({f"{item.agent.name}\0{_tool_key(item)}" for item in items})
    return text_digest("\n".join(tool_keys))[:32]


def tool_of(item: ToolApprovalItem) -> FunctionTool | None:
    """Return the tool for which a call waits, from its agent."""
    return identity.find(item.agent.tools, item)


def _parse_state(text: str) -> SavedState:
    fields: dict[str, Any] = json.loads(text)
    interjections = [Interjection(at, item) for at, item in fields.get("heard", ())]
    return SavedState(fields["state"], fields["turns"], fields.get("team", ""), interjections)


def _tool_key(item: ToolApprovalItem) -> str:
    """Return a tool's schema; of an MCP server's tool also the server and the name there."""
    tool = tool_of(item)
    if tool is None:
        raise Incompatible(f"{item.agent.name} no longer has the tool {item.qualified_name or item.name}")
    layers = identity.identity_of(tool)
    key = identity.schema_of(tool).hash
    return "\0".join([key, layers.mcp_server, layers.name_there or ""]) if layers.mcp_server else key


def _mac(run: str, sdk: str, state: str) -> str:
    key = hashlib.sha256(f"run state\0{settings.SECRET_KEY}".encode()).digest()
    return hmac.new(key, f"{run}\0{sdk}\0{state}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
