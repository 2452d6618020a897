"""Says after a commit what is new, within the process by a call. Whoever listens must not block.

Listeners run in the thread that committed. Between processes the channel layer will say the same (issue 2).
"""

from collections.abc import Callable, Collection, Sequence

from conversations.log.events import Stored

Listener = Callable[[Sequence[Stored]], None]

_rings: list[Listener] = []
_posts: list[Callable[[Collection[str]], None]] = []
_revocations: list[Callable[[], None]] = []


def on_ring(listener: Listener) -> Callable[[], None]:
    """Be told of every committed batch, in commit order of each thread; answer a function that ends it."""
    _rings.append(listener)
    return lambda: _rings.remove(listener)


def on_posted(listener: Callable[[Collection[str]], None]) -> Callable[[], None]:
    """Be told on which topics other than streams something was posted; answer a function that ends it."""
    _posts.append(listener)
    return lambda: _posts.remove(listener)


def on_revoked(listener: Callable[[], None]) -> Callable[[], None]:
    """Be told that somebody's rights or sessions changed; answer a function that ends it."""
    _revocations.append(listener)
    return lambda: _revocations.remove(listener)


def ring(stored: Sequence[Stored]) -> None:
    """Tell of events that are committed now. A hint only: a lost one is healed by the hub's poll."""
    for listener in _rings:
        listener(stored)


def posted(topics: Collection[str]) -> None:
    """Tell of topics with new messages, after the commit. Within the process: elsewhere Redis tells its readers."""
    for listener in _posts:
        listener(topics)


def revoked() -> None:
    """Tell that rights or sessions changed, after the commit. A hint only, like `ring`."""
    for listener in _revocations:
        listener()
