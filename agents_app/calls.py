"""Which of our call ids a provider's call id stands for, in one attempt of a run. Used by its hooks and approvals.

Providers repeat call ids: the n-th use has an id of its own. The SDK lets no runner use one twice for different
invocations, but each run inside a call is a runner of its own; so a call is known by the call that it is inside, its id
and its arguments. One that was asked about keeps the id it was asked under; one that an earlier attempt entered keeps
its id too, so that entering it again is refused (law F).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable
from typing import NamedTuple

from conversations.actions.calls import call_of

Key = tuple[str | None, str]  # the call that it is inside, and the provider's id


ASKED = ("waiting", "approved", "rejected")  # statuses of a call that a person is or was asked about


class Known(NamedTuple):
    """A call of an earlier attempt."""

    id: str
    call_id: str | None
    status: str
    digest: str
    parent: str | None = None


class Calls:
    """The calls of one attempt."""

    def __init__(self, run: str, known: Iterable[Known] = ()) -> None:
        self._run = run
        self._known = list(known)
        self._uses = Counter(call.call_id for call in self._known)
        self._running: dict[Key, str] = {}
        self._made: set[str] = set()
        self._spare: dict[str, str] = {}  # by the provider's ids
        self._wanted: defaultdict[tuple[str, str], deque[str | None]] = defaultdict(deque)

    def want(self, parent: str | None, call_id: str, sent: str) -> None:
        """Note inside which call a model wants a call: when it is asked about, nothing else tells it."""
        self._wanted[call_id, sent].append(parent)

    def lane(self, call_id: str, sent: str) -> str | None:
        """Answer the call that a wanted one is inside; of equal ones each once, in order."""
        waiting = self._wanted[call_id, sent]
        return waiting.popleft() if waiting else None

    def begin(self, parent: str | None, call_id: str, digest: str) -> str:
        """Answer our id of a call that begins now."""
        key = parent, call_id
        ours = self._asked(key, digest) or self._entered(key, digest) or self.new(call_id)
        self._running[parent, call_id] = ours
        return ours

    def end(self, parent: str | None, call_id: str) -> str | None:
        """Answer our id of a call that ends now; None when it did not begin."""
        ours = self._running.pop((parent, call_id), None)
        return ours or self._take((parent, call_id), ("executing",))

    def new(self, call_id: str) -> str:
        """Answer the id of one more use."""
        if spare := self._spare.pop(call_id, None):
            self._made.add(spare)
            return spare
        self._uses[call_id] += 1
        made = call_of(self._run, call_id, self._uses[call_id])
        self._made.add(made)
        return made

    def give_back(self, call_id: str, ours: str) -> None:
        """Let the next use have an id that was made for nothing."""
        self._made.discard(ours)
        self._spare[call_id] = ours

    def approve(self, call: Known, sent: str) -> None:
        """Note that a call of this attempt has been asked about and approved, so that it begins under its id."""
        self._made.discard(call.id)
        self._known.append(call)
        lanes = self._wanted[call.call_id or "", sent]
        if call.parent in lanes:
            lanes.remove(call.parent)

    def is_new(self, ours: str) -> bool:
        """Tell whether this attempt made the call's id."""
        return ours in self._made

    def running(self, parent: str | None, call_id: str) -> str:
        """Answer our id of a call that runs now."""
        found = self._running.get((parent, call_id))
        key = (parent, call_id, "executing")
        executing = (call.id for call in self._known if (call.parent, call.call_id, call.status) == key)
        return found or next(executing, call_of(self._run, call_id, max(1, self._uses[call_id])))

    @property
    def unfinished(self) -> list[str]:
        """List the calls that were entered and have not ended, those of earlier attempts too."""
        return [*self._running.values(), *(call.id for call in self._known if call.status == "executing")]

    def decided(
        self, call_id: str, digest: str = "", *, besides: Collection[str] = (), asked: Collection[str] = ASKED
    ) -> str | None:
        """Answer the id of a call that waits for its decision or has it; with a digest, of these arguments."""
        known = (c for c in self._known if c.call_id == call_id and c.status in asked and c.id not in besides)
        return next((c.id for c in known if digest in ("", c.digest)), None)

    def _asked(self, key: Key, digest: str) -> str | None:
        return self._take(key, ("waiting", "approved", "called"), digest)

    def _entered(self, key: Key, digest: str) -> str | None:
        """Find the same call in an earlier attempt: it must not be entered again."""
        return next((c.id for c in self._known if (c.parent, c.call_id) == key and c.digest == digest), None)

    def _take(self, key: Key, statuses: tuple[str, ...], digest: str = "") -> str | None:
        known = (c for c in self._known if (c.parent, c.call_id) == key and c.status in statuses)
        found = next((c for c in known if digest in ("", c.digest)), None)
        if found is not None:
            self._known.remove(found)
        return found.id if found else None
