"""Start tool calls of our runs (law F): before a tool's function is entered, `executing` is committed, once."""

import hashlib

from conversations.core.errors import Fenced
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.models import Conversation, ToolCall
from conversations.runs.claims import Body, Claim

ENTERABLE = ("called", "approved")


def our_call_id(run: str, call_id: str | None, nth: int) -> str:
    """Return our id of a call: the same in every attempt of the run, so that no call is entered twice."""
    noise = hashlib.sha256(f"{run}\0{call_id}\0{nth}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{run[:18]}-{noise[:4]}-{noise[4:16]}" if len(run) >= 18 else noise[:36]


def begin_execution(claimed: Claim, payload: Body) -> None:
    """Commit that the call is executing. Raises `Fenced`: do not call the tool, end the attempt.

    `payload` is the tool step with `status: start` and `tool_call`. A call that was entered before, in any attempt, is
    never entered again; the log checks the run's own fence.
    """
    call = str(payload["tool_call"])
    with write_transaction():
        Conversation.objects.locked(key=claimed.conversation)
        status = ToolCall.objects.filter(id=call).values_list("status", flat=True).first()
        # The conditional update only guards against a race; the fold of the tool step sets the same status.
        if status is not None and not ToolCall.objects.filter(id=call, status__in=ENTERABLE).update(status="executing"):
            raise Fenced(f"call {call} is {status} and will not run again")
        log.append([claimed.event(payload)])
