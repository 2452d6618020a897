"""Map a provider's call ids to our own, in one attempt of a run. Used by its hooks and approvals.

Providers repeat call ids, so the n-th use has its own id. The SDK lets no runner use an id twice for different
invocations, but each run inside a call is a separate runner (`RunnerId`). A call is therefore identified by its
runner (in the record, by its parent call), its id, its tool and its arguments. A call whose approval was requested
keeps the id of its request; one that an earlier attempt entered keeps its id too, so that entering it again is refused
(law F).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from agents_app.model_providers.unique_call_ids import original
from agents_app.run_scope import RunnerId
from conversations.runs.claims import Body, our_call_id

Key = tuple[str | None, str]  # the call that it is inside, and the provider's id
MAX_NAME = 200  # characters of a tool's name in the tables


APPROVAL_STATUSES = ("waiting", "approved", "rejected")  # statuses of a call that a person is or was asked about


class EarlierCall(NamedTuple):
    """A call that the record has before an attempt begins: of an earlier attempt, or the one that a replay requests."""

    id: str
    call_id: str | None
    status: str
    digest: str
    name: str
    parent: str | None = None

    def is_of(self, name: str, digests: Collection[str]) -> bool:
        """Return whether it is of this tool, with arguments that have one of these digests."""
        return self.name == name[:MAX_NAME] and self.digest in digests

    @property
    def key(self) -> Key:
        """The parent call, and the provider's id."""
        return self.parent, original(self.call_id or "")


class CallIdMap:
    """The calls of one attempt."""

    def __init__(self, run: str, earlier_calls: Iterable[EarlierCall] = ()) -> None:
        self._run = run
        self._earlier_calls = list(earlier_calls)
        self._uses = Counter(original(call.call_id or "") for call in self._earlier_calls)
        self._running: dict[tuple[RunnerId, str], str] = {}
        self._new_ids: set[str] = set()
        self._spare: dict[str, str] = {}  # by the provider's ids
        self._expected: defaultdict[tuple[str, str], deque[str | None]] = defaultdict(deque)

    def expect_call(self, parent: str | None, call_id: str, sent: str) -> None:
        """Record the parent call of a call that a model requests: the SDK's approval item does not say it."""
        self._expected[call_id, sent].append(parent)

    def take_parent_call(self, call_id: str, sent: str) -> str | None:
        """Return the recorded parent call of a requested call, and remove it: equal calls are taken in order."""
        waiting = self._expected[call_id, sent]
        return waiting.popleft() if waiting else None

    def begin(self, runner: RunnerId, call_id: str, name: str, digests: Collection[str]) -> str:
        """Return our id of a call of a tool that starts now; `digests`: see `recorded_values.recorded_digests`."""
        key = runner.parent_call, call_id
        our_id = self._find_open(key, name, digests) or self._entered(key, name, digests) or self.new(call_id)
        self._running[runner, call_id] = our_id
        return our_id

    def end(self, runner: RunnerId, call_id: str) -> str | None:
        """Return our id of a call that ends now; None if it did not start in this attempt."""
        return self._running.pop((runner, call_id), None)

    def end_earlier(self, runner: RunnerId, call_id: str) -> str | None:
        """Return our id of a call of an earlier attempt that ends now, whatever its tool and arguments are; None if
        there is none."""
        same = (call for call in self._earlier_calls if call.key == _own((runner.parent_call, call_id)))
        return self._take(call for call in same if call.status == "executing")

    def executing_earlier(self, runner: RunnerId, call_id: str, name: str, digests: Collection[str]) -> str | None:
        """Return our id of a tool's call that an earlier attempt started and that has not ended; None if there is
        none."""
        same = (
            c for c in self._earlier_calls if c.key == _own((runner.parent_call, call_id)) and c.is_of(name, digests)
        )
        return next((call.id for call in same if call.status == "executing"), None)

    def end_recorded(self, our_id: str) -> None:
        """Record that a call has ended and that its end is stored."""
        self._running = {key: running for key, running in self._running.items() if running != our_id}
        self._take(call for call in self._earlier_calls if call.id == our_id and call.status == "executing")

    def new(self, call_id: str) -> str:
        """Return the id of a further use."""
        if spare := self._spare.pop(call_id, None):
            self._new_ids.add(spare)
            return spare
        own = original(call_id)
        self._uses[own] += 1
        new_id = our_call_id(self._run, own, self._uses[own])
        self._new_ids.add(new_id)
        return new_id

    def give_back(self, call_id: str, our_id: str) -> None:
        """Make an unused id available to the next use."""
        self._new_ids.discard(our_id)
        self._spare[call_id] = our_id

    def approve(self, call: EarlierCall, sent: str) -> None:
        """Record that a call of this attempt was approved, so that it starts under the id of its request."""
        self._new_ids.discard(call.id)
        self._earlier_calls.append(call)
        parents = self._expected[call.call_id or "", sent]
        if call.parent in parents:
            parents.remove(call.parent)

    def is_new(self, our_id: str) -> bool:
        """Return whether this attempt created the call's id."""
        return our_id in self._new_ids

    def running(self, runner: RunnerId, call_id: str) -> str | None:
        """Return our id of a call that is running; None if it did not start in this attempt."""
        return self._running.get((runner, call_id))

    def running_earlier(self, runner: RunnerId, call_id: str, name: str, digests: Collection[str]) -> str:
        """Return our id of a call of a tool that an earlier attempt started, as one around a call that waited."""
        own = original(call_id)
        earlier = self.executing_earlier(runner, call_id, name, digests)
        return earlier or our_call_id(self._run, own, max(1, self._uses[own]))

    @property
    def unfinished(self) -> list[str]:
        """List the calls that were entered and have not ended, including those of earlier attempts."""
        return [*self._running.values(), *(call.id for call in self._earlier_calls if call.status == "executing")]

    def in_doubt(self) -> Body:
        """Return these calls as the end of a run lists them: their effect is unknown."""
        return {"calls": self.unfinished} if self.unfinished else {}

    def find_requested(
        self,
        call_id: str,
        name: str,
        digests: Collection[str],
        *,
        besides: Collection[str] = (),
        statuses: Collection[str] = APPROVAL_STATUSES,
        newest: bool = False,
    ) -> str | None:
        """Return the id of the first (or `newest`) call of a tool with these arguments whose approval was requested,
        decided or not."""
        own, calls = original(call_id), self._earlier_calls[:: -1 if newest else 1]
        matches = (c for c in calls if c.key[1] == own and c.is_of(name, digests))
        return next((c.id for c in matches if c.status in statuses and c.id not in besides), None)

    def forget_refused(self) -> None:
        """Forget the calls that were not approved, once the SDK's state knows that: the same call again is another
        one."""
        self._earlier_calls = [call for call in self._earlier_calls if call.status not in ("rejected", "blocked")]

    def _find_open(self, key: Key, name: str, digests: Collection[str]) -> str | None:
        matches = (call for call in self._earlier_calls if call.key == _own(key) and call.is_of(name, digests))
        return self._take(call for call in matches if call.status in ("waiting", "approved", "called"))

    def _entered(self, key: Key, name: str, digests: Collection[str]) -> str | None:
        """Return the same call of an earlier attempt, which must not be entered again."""
        return next((c.id for c in self._earlier_calls if c.key == _own(key) and c.is_of(name, digests)), None)

    def _take(self, matches: Iterator[EarlierCall]) -> str | None:
        call = next(matches, None)
        if call is not None:
            self._earlier_calls.remove(call)
        return call.id if call else None


def _own(key: Key) -> Key:
    """Return a key with the provider's own call id."""
    return key[0], original(key[1])
