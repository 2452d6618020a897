"""Who lets an agent's token into a conversation (§3.7): whose naming of an agent counts. Called by the fold.

Nobody gives what they do not have, and nobody is made to give it:

| who says it | is let in | its naming of an agent counts |
|---|---|---|
| a person, the system, a token that is not an agent's | always | always |
| a run of this conversation | always | until somebody from outside has spoken |
| an agent's token | when it opened the conversation, or was named so that it counts | the same |
| any other: an agent's token, Redis, an import, another conversation's run, what a tool relays or answers | no | no |

The first event of the last line closes the conversation (`outside_seq`): from then on what agents say may be what that
one made them say, so only people let agents in. A step of a conversation's own run that ends a call is such an event
too, since tools bring words from elsewhere; `chat_send` alone brings none.
"""

from __future__ import annotations

from django.db import connection

from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges
from conversations.events.projections.tool_calls import is_call_start

_TOKEN = "SELECT agent FROM conversations_token WHERE name=%s"
_NAMED = "SELECT 1 FROM conversations_participant WHERE conversation_id=%s AND name IN (%s,%s) AND is_named"


def take_in(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note who opened the conversation, and from where on somebody from outside has spoken in it."""
    if head.head_seq == 1:
        head.opened_by = event.principal[:160]
    if head.outside_seq or _is_host(changes, event.principal):
        return
    if not _is_let_in(changes, head, event):
        head.outside_seq = head.head_seq


def may_let_in(changes: RowChanges, head: ConversationHead, event: EventFacts) -> bool:
    """Return whether an agent whom this event names may view the conversation from now on."""
    if _is_host(changes, event.principal):
        return True
    kind, _, name = event.principal.partition(":")
    own = (_agent_of(changes, name) or "") if kind == "token" else ""
    is_itself = bool(own) and own.removeprefix("agent:") == (event.payload.recipient or "").removeprefix("agent:")
    return not head.outside_seq and not is_itself


def _is_let_in(changes: RowChanges, head: ConversationHead, event: EventFacts) -> bool:
    kind, _, name = event.principal.partition(":")
    if kind == "agent":
        return event.run is not None and not _brings_words(event)
    agent = _agent_of(changes, name) if kind == "token" else None
    return agent is not None and (head.opened_by == event.principal or _is_named(changes, head, agent))


def _is_host(changes: RowChanges, principal: str) -> bool:
    """Return whether it is a person, the system, or a token that is not an agent's. Looked up once for a batch."""
    if (known := changes.hosts.get(principal)) is not None:
        return known
    kind, _, name = principal.partition(":")
    is_host = kind in ("user", "system") or (kind == "token" and _agent_of(changes, name) == "")
    changes.hosts[principal] = is_host
    return is_host


def _brings_words(event: EventFacts) -> bool:
    payload = event.payload
    is_answer = payload.event == "tool_step" and not is_call_start(payload)
    return is_answer and (payload.name != "chat_send" or payload.mcp_server is not None)


def _agent_of(changes: RowChanges, token: str) -> str | None:
    """Return the agent whom a token speaks for, empty for another token's; None where there is no such token. A name
    stands for one agent, or for none, for good (`accounts.tokens`): a rebuild finds what was found then."""
    if token not in changes.token_agents:
        with connection.cursor() as cursor:
            cursor.execute(_TOKEN, [token])
            row = cursor.fetchone()
        changes.token_agents[token] = row[0] if row else None
    return changes.token_agents[token]


def _is_named(changes: RowChanges, head: ConversationHead, agent: str) -> bool:
    bare = agent.removeprefix("agent:")
    names = bare, f"agent:{bare}"
    if (head.id, bare) in changes.known_named or any((head.id, name) in changes.named for name in names):
        return True
    if changes.is_whole:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, [head.id, *names])
        is_named = cursor.fetchone() is not None
    if is_named:  # and stays so; who is not may be in a moment
        changes.known_named.add((head.id, bare))
    return is_named
