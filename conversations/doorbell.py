"""Says after a commit what is new: within the process by a call, to other processes by the channel layer.

Listeners must not block: they run in whatever thread committed or heard.
What other processes are told is heads only (which conversation is at which seq), "revoked", and who looks at what. All
of it is a hint: a lost one is healed by the hub's query and the watch's look (law A), and presence by being told again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from conversations import telling
from conversations.log.events import Stored

Listener = Callable[[Sequence[Stored]], None]
HeadListener = Callable[[Mapping[str, int]], None]
PresenceListener = Callable[[str, Sequence[Any]], None]

_rings: list[Listener] = []
_heads: list[HeadListener] = []
_posts: list[Callable[[Collection[str]], None]] = []
_revocations: list[Callable[[], None]] = []
_presences: list[PresenceListener] = []


def on_ring(listener: Listener) -> Callable[[], None]:
    """Be told of every batch this process committed, in commit order of each thread; answer a function that ends it."""
    _rings.append(listener)
    return lambda: _rings.remove(listener)


def on_heard(listener: HeadListener) -> Callable[[], None]:
    """Be told of heads whose events do not come along: rung for elsewhere, or come to be seen; answer what ends it."""
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


def ring(stored: Sequence[Stored]) -> None:
    """Tell of events that are committed now."""
    for listener in _rings:
        listener(stored)
    if (teller := telling.teller()) is not None:
        teller.say({event.conversation: event.seq for event in stored})


def appeared(heads: Mapping[str, int]) -> None:
    """Tell of conversations that came to be seen with all their events, after the commit."""
    for listener in _heads:
        listener(heads)
    if (teller := telling.teller()) is not None:
        teller.say(heads)


def posted(topics: Collection[str]) -> None:
    """Tell of topics with new messages, after the commit. Within the process: elsewhere Redis tells its readers."""
    for listener in _posts:
        listener(topics)


def revoked() -> None:
    """Tell that rights or sessions changed, after the commit."""
    for listener in _revocations:
        listener()
    if (teller := telling.teller()) is not None:
        teller.say({}, is_revoked=True)


def heard(heads: Mapping[str, int], *, is_revoked: bool) -> None:
    """Pass on what another process told. Called by the ear, in the server's loop."""
    if heads:
        for listener in _heads:
            listener(heads)
    if is_revoked:
        for revocation in _revocations:
            revocation()


def heard_presence(process: str, words: Sequence[Any]) -> None:
    """Pass on what a process said of people; of this one, what a page said. Words of others are not checked yet."""
    for listener in _presences:
        listener(process, words)
