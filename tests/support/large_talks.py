"""A large conversation for views and benchmarks: 200 participants, messages, tool calls, runs with turns and handoffs.

`write` stores it where Django is set up, in a few transactions; every name follows from the block's number.
"""

from typing import Any

from conversations.core.principals import run_principal, token_principal
from conversations.events import log
from conversations.events.log import NewEvent
from tests.support.unchecked import unchecked

VOICES = 200
BLOCK = 10  # events: a question, a run of two agents with a turn, a handoff and a call, and the answer
Body = dict[str, Any]


def write(key: str, events: int = 10_000, voices: int = VOICES, batch: int = 500) -> int:
    """Store a conversation of so many events (a multiple of 10); return its newest."""
    blocks = [_block(key, n, voices // 2) for n in range(events // BLOCK)]
    for start in range(0, len(blocks), batch // BLOCK):
        log.append([event for block in blocks[start : start + batch // BLOCK] for event in block])
    return log.head(key)


def _block(key: str, n: int, half: int) -> list[NewEvent]:
    asker, agent, other = f"user:citizen-{n % half}", f"Agent {n % half}", f"Agent {(n * 7 + 1) % half}"
    call: Body = {"event": "tool_step", "name": f"tool_{n % 12}", "tool_call_id": f"c{n}", "agent": other, "turn": 2}
    call |= {"tool_call": f"{key}-call-{n}"}
    came = (
        {"status": "error", "error": "503"} if n % 9 == 0 else {"status": "success", "output": f"open until {n % 24}"}
    )
    end: Body = {"event": "run.failed", "reason": "error", "error": "503"} if n % 50 == 25 else {"event": "run.done"}
    turn = {"event": "model.turn", "turn": 1, "model": "demo model", "demo": True, "tools": [], "duration_ms": 1.5}
    ours: list[Body] = [
        {"event": "run.queued", "agent": agent, "run_kind": "agent", "input_seq": n * BLOCK + 1},
        {"event": "run.started", "agent": agent, "worker": "w:1", "attempt": 1},
        {**turn, "agent": agent},
        {"event": "agent.handoff", "turn": 1, "from_agent": agent, "to_agent": other},
        {**call, "status": "start", "args": {"street": f"Elm {n}"}},
        {**call, **came, "duration_ms": 2.5},
        {"event": "output", "agent": other, "text": f"Answer {n}: it is open.", "turn": 2, "final": True},
        end,
    ]
    question = {
        "type": "message",
        "sender": asker,
        "recipient": f"agent:{agent}",
        "content": f"Question {n}: is it open?",
    }
    reply = {"type": "message", "sender": f"agent:{other}", "recipient": asker, "content": f"Answer {n}: it is open."}
    run = run_principal(agent)
    within = [_new(key, {**body, "run_id": f"{key}-run-{n}"}, run, is_ours=True) for body in ours]
    robot = token_principal("robot")
    return [_new(key, question, robot), *within[:-1], _new(key, reply, robot), within[-1]]


def _new(key: str, body: Body, principal: Any, *, is_ours: bool = False) -> NewEvent:
    return unchecked(key, body, principal)._replace(starts_no_run=not is_ours)
