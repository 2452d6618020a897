"""What a run paused with: the SDK's state as it is, sealed, with what it fits (design 8). Never taken from a client."""

import hashlib
import hmac
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agents import FunctionTool, ToolApprovalItem, version
from agents.run_state import CURRENT_SCHEMA_VERSION
from django.conf import settings

from agents_app import identity
from agents_app.heard import Interjection
from conversations.actions.runs import Claim


class Incompatible(Exception):
    """A kept state does not fit today's team, or is not what was sealed. The text is for people."""


class Kept(NamedTuple):
    """A state and what goes with it: how many turns there were, whose run it is, and what it heard when it went on."""

    state: str
    turns: int
    team: str = ""
    heard: Sequence[Interjection] = ()


def seal(run: str, kept: Kept, tools: str) -> tuple[str, str, str]:
    """Answer the row's `state`, `state_mac` and `sdk`."""
    told = {"v": 1, "turns": kept.turns, "team": kept.team, "state": kept.state, "heard": kept.heard}
    text = json.dumps(told)
    sdk = f"{version.__version__}/{CURRENT_SCHEMA_VERSION}/{tools}"
    return text, _mac(run, sdk, text), sdk


def open_sealed(claim: Claim) -> tuple[Kept, str]:
    """Answer what a run paused with, and the hash of its tools then. Raises Incompatible."""
    text, sdk = claim.state or "", claim.sdk or ""
    if not hmac.compare_digest(_mac(claim.run, sdk, text), claim.state_mac or ""):
        raise Incompatible("the kept state is not what was sealed: it was changed, or the secret key was")
    _, form, tools = sdk.split("/")
    if form != CURRENT_SCHEMA_VERSION:
        raise Incompatible(
            f"another release of the agents' SDK kept it: its form is {form}, and today's is {CURRENT_SCHEMA_VERSION}"
        )
    return _kept(text), tools


def team_of(state: str) -> str:
    """Answer whose run a kept state is of, as far as that can be read: it is not checked here."""
    try:
        return _kept(state).team
    except (ValueError, KeyError, TypeError):
        return ""


def tools_hash(asked: Iterable[ToolApprovalItem]) -> str:
    """Hash the tools that calls wait for, as their agents have them now. Raises Incompatible when one is missing."""
    found = sorted({f"{item.agent.name}\0{_schema(item)}" for item in asked})
    return hashlib.sha256("\n".join(found).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def tool_of(item: ToolApprovalItem) -> FunctionTool | None:
    """Find the tool a call waits for on its agent."""
    return identity.find(item.agent.tools, item)


def _kept(text: str) -> Kept:
    told: dict[str, Any] = json.loads(text)
    heard = [Interjection(at, item) for at, item in told.get("heard", ())]
    return Kept(told["state"], told["turns"], told.get("team", ""), heard)


def _schema(item: ToolApprovalItem) -> str:
    tool = tool_of(item)
    if tool is None:
        raise Incompatible(f"{item.agent.name} has no tool {item.qualified_name or item.name} any more")
    return identity.schema_of(tool).hash


def _mac(run: str, sdk: str, state: str) -> str:
    key = hashlib.sha256(f"run state\0{settings.SECRET_KEY}".encode()).digest()
    return hmac.new(key, f"{run}\0{sdk}\0{state}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
