"""Number what a conversation has several times, by the traces that it comes from. Called by `span_events`.

A span numbers its answer by its history: the second "Yes." of a history is the second of the conversation. Where spans
have no history, each trace begins with the first again; here it gets the next number that no other trace has.
"""

from bisect import bisect_left, insort

MAX_NUMBERS = 50_000  # remembered; then all are forgotten, and the first is the first again
Content = tuple[str, str]  # a conversation, and a digest of what it has several times


class Occurrences:
    """The numbers of each content, and whose they are."""

    def __init__(self) -> None:
        self._owners: dict[tuple[Content, int], str] = {}
        self._next: dict[tuple[Content, int], int] = {}  # after a number that is taken: one that may be free
        self._own: dict[tuple[Content, str], list[int]] = {}  # a trace's numbers, sorted

    def number_of(self, content: Content, nth: int, trace_id: str) -> int:
        """Return the number of a trace's `nth`: itself, if no other trace has it; else the next that is free or that
        this trace has, so that what two of its spans report is the same."""
        if len(self._owners) >= MAX_NUMBERS:
            self._owners, self._next, self._own = {}, {}, {}
        if self._owners.get((content, nth), trace_id) == trace_id:
            return self._take(content, nth, trace_id)
        own = self._own.get((content, trace_id), [])
        at = bisect_left(own, nth)
        return own[at] if at < len(own) else self._take(content, self._free(content, nth), trace_id)

    def _take(self, content: Content, number: int, trace_id: str) -> int:
        if (content, number) not in self._owners:
            self._owners[content, number] = trace_id
            self._next[content, number] = number + 1
            insort(self._own.setdefault((content, trace_id), []), number)
        return number

    def _free(self, content: Content, number: int) -> int:
        """Return the first free number from this one on; those passed then lead there directly."""
        passed = list[int]()
        while (following := self._next.get((content, number))) is not None:
            passed.append(number)
            number = following
        for taken in passed:
            self._next[content, taken] = number
        return number
