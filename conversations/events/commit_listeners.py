"""Notify listeners after a commit: within the process by a call, in other processes through the channel layer.

Listeners must not block: they run in the thread that committed or received the notification; on SQLite, a committing
thread still holds the process's write turn meanwhile. They are added and removed by other threads, so each notification
goes to those registered when it started. Other processes receive only heads (which conversation is at which seq), that
the audit log has grown, revocations, and presence. All of this is a hint: a lost one is made up for by the hub's query,
the state topics' and the socket registry's check (law A), and presence is repeated.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from conversations.core import broadcast_sender
from conversations.events.log.records import Stored

Listener = Callable[[Sequence[Stored]], None]
HeadListener = Callable[[Mapping[str, int]], None]
PresenceListener = Callable[[str, Sequence[Any]], None]

_commits: list[Listener] = []
_heads: list[HeadListener] = []
_posts: list[Callable[[Collection[str]], None]] = []
_audits: list[Callable[[], None]] = []
_revocations: list[Callable[[], None]] = []
_presences: list[PresenceListener] = []


def on_committed(listener: Listener) -> Callable[[], None]:
    """Register a listener for every batch that this process commits, in commit order of each thread; return a function
    that removes it."""
    _commits.append(listener)
    return lambda: _commits.remove(listener)


def on_remote_heads(listener: HeadListener) -> Callable[[], None]:
    """Register a listener for heads without their events (committed elsewhere, or just made visible); return a function
    that removes it."""
    _heads.append(listener)
    return lambda: _heads.remove(listener)


def on_posted(listener: Callable[[Collection[str]], None]) -> Callable[[], None]:
    """Register a listener for topics other than streams to which something was posted; return a function that removes
    it."""
    _posts.append(listener)
    return lambda: _posts.remove(listener)


def on_audited(listener: Callable[[], None]) -> Callable[[], None]:
    """Register a listener for new entries of the audit log, here or elsewhere; return a function that removes it."""
    _audits.append(listener)
    return lambda: _audits.remove(listener)


def on_revoked(listener: Callable[[], None]) -> Callable[[], None]:
    """Register a listener for changes of permissions or sessions, here or elsewhere; return a function that removes
    it."""
    _revocations.append(listener)
    return lambda: _revocations.remove(listener)


def on_presence(listener: PresenceListener) -> Callable[[], None]:
    """Register a listener for presence updates: the process they come from ("" is this one) and the updates (see
    `presence`)."""
    _presences.append(listener)
    return lambda: _presences.remove(listener)


def notify_committed(stored: Sequence[Stored]) -> None:
    """Notify listeners and other processes of committed events."""
    for listener in tuple(_commits):
        listener(stored)
    if (sender := broadcast_sender.sender()) is not None:
        sender.say({event.conversation: event.seq for event in stored})


def notify_imported(heads: Mapping[str, int]) -> None:
    """Notify of conversations that became visible with all their events, after the commit."""
    for listener in tuple(_heads):
        listener(heads)
    if (sender := broadcast_sender.sender()) is not None:
        sender.say(heads)


def notify_posted(topics: Collection[str]) -> None:
    """Notify of topics with new messages, after the commit. Only within this process: elsewhere readers use Redis."""
    for listener in tuple(_posts):
        listener(topics)


def notify_audited() -> None:
    """Notify that the audit log has grown, after the commit."""
    for listener in tuple(_audits):
        listener()
    if (sender := broadcast_sender.sender()) is not None:
        sender.say({}, is_audited=True)


def notify_revoked() -> None:
    """Notify that permissions or sessions changed, after the commit."""
    for listener in tuple(_revocations):
        listener()
    if (sender := broadcast_sender.sender()) is not None:
        sender.say({}, is_revoked=True)


def notify_remote(heads: Mapping[str, int], *, is_audited: bool, is_revoked: bool) -> None:
    """Pass on a notification from another process. Called by the broadcast listener, in the server's loop."""
    if heads:
        for listener in tuple(_heads):
            listener(heads)
    if is_audited:
        for audit in tuple(_audits):
            audit()
    if is_revoked:
        for revocation in tuple(_revocations):
            revocation()


def notify_presence(process: str, updates: Sequence[Any]) -> None:
    """Pass on presence updates from another process, or from a page of this one. Updates from others are not validated
    yet."""
    for listener in tuple(_presences):
        listener(process, updates)
