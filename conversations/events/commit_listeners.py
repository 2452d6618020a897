"""Says after a commit what is new: within the process by a call, to other processes by the channel layer.

Listeners must not block: they run in whatever thread committed or heard. They come and go in other threads, so each
time those are told who were there when it began.
What other processes are told is heads only (which conversation is at which seq), "revoked", and who looks at what. All
of it is a hint: a lost one is healed by the hub's query and the watch's look (law A), and presence by being told again.
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
_revocations: list[Callable[[], None]] = []
_presences: list[PresenceListener] = []


def on_committed(listener: Listener) -> Callable[[], None]:
    """Be told of every batch this process committed, in commit order of each thread; answer a function that ends it."""
    _commits.append(listener)
    return lambda: _commits.remove(listener)


def on_remote_heads(listener: HeadListener) -> Callable[[], None]:
    """Be told of heads whose events do not come along: committed elsewhere, or come to be seen; answer what ends it."""
    _heads.append(listener)
    return lambda: _heads.remove(listener)


def on_posted(listener: Callable[[Collection[str]], None]) -> Callable[[], None]:
    """Be told on which topics other than streams something was posted; answer a function that ends it."""
    _posts.append(listener)
    return lambda: _posts.remove(listener)


def on_revoked(listener: Callable[[], None]) -> Callable[[], None]:
    """Be told that somebody's rights or sessions changed, here or elsewhere; answer a function that ends it."""
    _revocations.append(listener)
    return lambda: _revocations.remove(listener)


def on_presence(listener: PresenceListener) -> Callable[[], None]:
    """Be told what processes say of who looks at what: which process, and its words (`presence`); "" is this one."""
    _presences.append(listener)
    return lambda: _presences.remove(listener)


def notify_committed(stored: Sequence[Stored]) -> None:
    """Tell of events that are committed now."""
    for listener in tuple(_commits):
        listener(stored)
    if (sender := broadcast_sender.sender()) is not None:
        sender.say({event.conversation: event.seq for event in stored})


def notify_imported(heads: Mapping[str, int]) -> None:
    """Tell of conversations that came to be seen with all their events, after the commit."""
    for listener in tuple(_heads):
        listener(heads)
    if (sender := broadcast_sender.sender()) is not None:
        sender.say(heads)


def notify_posted(topics: Collection[str]) -> None:
    """Tell of topics with new messages, after the commit. Within the process: elsewhere Redis tells its readers."""
    for listener in tuple(_posts):
        listener(topics)


def notify_revoked() -> None:
    """Tell that rights or sessions changed, after the commit."""
    for listener in tuple(_revocations):
        listener()
    if (sender := broadcast_sender.sender()) is not None:
        sender.say({}, is_revoked=True)


def notify_remote_heads(heads: Mapping[str, int], *, is_revoked: bool) -> None:
    """Pass on what another process told. Called by the broadcast listener, in the server's loop."""
    if heads:
        for listener in tuple(_heads):
            listener(heads)
    if is_revoked:
        for revocation in tuple(_revocations):
            revocation()


def notify_presence(process: str, updates: Sequence[Any]) -> None:
    """Pass on what a process said of people; of this one, what a page said. Words of others are not checked yet."""
    for listener in tuple(_presences):
        listener(process, updates)
