"""Switchboard's client library, for agents that run elsewhere. Nothing but the standard library (Redis is an extra).

    from switchboard import chat_send, get_bus, watch

    chat_send("agent:Dialogue", "Somebody is at the desk.", conversation_id="hello")
    for message in watch("chat:Triage"):
        print(message.payload["content"])

`watch_agents()` shows what a program of the OpenAI Agents SDK does. `get_bus()` finds the bus by the environment;
`HttpBus`, `RedisBus` and `InMemoryBus` are made by hand as well.
"""

from switchboard.agent_watch import AgentWatch, watch_agents
from switchboard.bus import Bus, BusMessage
from switchboard.chat import chat_send, send_message
from switchboard.current import get_bus, set_bus, set_bus_for_testing
from switchboard.errors import (
    BusError,
    Closed,
    IdReused,
    NotConfigured,
    Refused,
    SpoolFull,
    UnknownPosition,
    Unreachable,
)
from switchboard.http_bus import HttpBus
from switchboard.ids import new_id
from switchboard.memory import InMemoryBus
from switchboard.redis_bus import RedisBus
from switchboard.watching import watch

__all__ = [
    "AgentWatch",
    "Bus",
    "BusError",
    "BusMessage",
    "Closed",
    "HttpBus",
    "IdReused",
    "InMemoryBus",
    "NotConfigured",
    "RedisBus",
    "Refused",
    "SpoolFull",
    "UnknownPosition",
    "Unreachable",
    "chat_send",
    "get_bus",
    "new_id",
    "send_message",
    "set_bus",
    "set_bus_for_testing",
    "watch",
    "watch_agents",
]
