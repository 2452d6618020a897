"""Identify the delivery of a hook that has no id of its own, so that a hook which a client sends again counts once.

Such a hook is identified by what was posted and by its position in the session: the newest event that the same token
reported before. An equal hook right after itself, within two minutes, is the same delivery. Called by the hooks'
endpoint.
"""

import time

from conversations.coding_agents import hooks, session_events
from conversations.coding_agents.hooks import Hook
from conversations.core.principals import Principal
from conversations.models import Event

MAX_EVENTS = 3  # events that one hook is in its conversation
AGAIN_S = 120.0  # seconds in which a client gives up and sends again


def identified(hook: Hook, digest: str, by: Principal) -> Hook:
    """Return the hook with its `delivery`. `digest` is of the body as posted."""
    if _ids(hook._replace(delivery="a")) == _ids(hook._replace(delivery="b")):
        return hook
    own_events = Event.objects.filter(conversation__key=hook.speaker.conversation, principal=str(by))
    newest = list(own_events.order_by("-seq").values_list("event_id", "at")[: MAX_EVENTS + 1])
    before = [event_id or "" for event_id, _ in newest]
    lately = sum(at > (time.time() - AGAIN_S) * 1e6 for _, at in newest[:MAX_EVENTS])
    for count in range(lately, 0, -1):
        again = _after(hook, digest, before, count)
        if _ids(again).issuperset(before[:count]):
            return again
    return _after(hook, digest, before, 0)


def _after(hook: Hook, digest: str, before: list[str], count: int) -> Hook:
    """Return the hook as it was posted when the newest `count` events were not there."""
    place = before[count] if count < len(before) else ""
    return hook._replace(delivery=session_events.derived_id(digest, place))


def _ids(hook: Hook) -> set[str]:
    events = [event.payload for event in [*hooks.events_of(hook), *_call_events(hook)]]
    return {str(payload["id"]) for payload in events if payload["conversation_id"] == hook.speaker.conversation}


def _call_events(hook: Hook) -> list[session_events.SessionEvent]:
    return [hooks.started_call(hook)] if hooks.asked_by(hook) is not None else []
