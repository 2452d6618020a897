"""The open calls of one conversation, each found in constant time: a fold looks one up for every result."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

NO_RESULT = "no_result"  # the status of an imported call whose result the import does not have

_Kind = tuple[str | None, str | None, str | None]  # run, call id, and the name where there is no call id
_Key = TypeVar("_Key")
_Group = OrderedDict[str, "FoldedCall"]  # a plain dict walks past all that were taken from its beginning


class FoldedCall(msgspec.Struct, gc=False):
    """A tool call's row, as far as the fold writes it."""

    id: str
    conversation_id: int
    run: str | None
    call_id: str | None
    nth: int
    agent: str
    name: str
    namespace: str | None
    lookup_key: str | None
    origin: str | None
    schema: str | None
    called_seq: int
    finished_seq: int | None
    status: str
    arguments_digest: str
    started_at: int
    duration_ms: float | None
    replay_of: str | None
    qualified_name: str = ""
    mcp_server: str | None = None
    output_bytes: int | None = None
    approver: str | None = None


class OpenCalls:
    """Calls without an end, in the order in which they began. A result ends the oldest of its kind."""

    def __init__(self, rows: Iterable[FoldedCall] = ()) -> None:
        self._by_id: dict[str, FoldedCall] = {}
        self._by_kind: dict[_Kind, _Group] = {}
        self._by_run: dict[str, _Group] = {}
        for row in rows:
            self.add(row)

    def __iter__(self) -> Iterator[FoldedCall]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, row: FoldedCall) -> None:
        """Add a call that began after all that are here."""
        self._by_id[row.id] = row
        _add(self._by_kind, _kind(row), row)
        if row.run is not None:
            _add(self._by_run, row.run, row)

    def remove(self, row: FoldedCall) -> None:
        """Take out a call that has ended."""
        self._by_id.pop(row.id, None)
        _drop(self._by_kind, _kind(row), row.id)
        if row.run is not None:
            _drop(self._by_run, row.run, row.id)

    def find(self, id_: str) -> FoldedCall | None:
        """Return the call with this id of ours."""
        return self._by_id.get(id_)

    def oldest(self, run: str | None, call_id: str | None, name: str) -> FoldedCall | None:
        """Return the oldest call of this run (None: of an external agent) with this call id or, if None, this name."""
        group = self._by_kind.get(kind_of(run, call_id, name))
        return next(iter(group.values())) if group else None

    def of_run(self, run: str | None) -> list[FoldedCall]:
        """Return all calls of a run."""
        return list(self._by_run.get(run, {}).values()) if run is not None else []


def kind_of(run: str | None, call_id: str | None, name: str) -> _Kind:
    """Return what a result has in common with the calls that it may end."""
    return run, call_id, None if call_id is not None else name


def _kind(row: FoldedCall) -> _Kind:
    return kind_of(row.run, row.call_id, row.name)


def _add(groups: dict[_Key, _Group], key: _Key, row: FoldedCall) -> None:
    if (group := groups.get(key)) is None:
        group = groups[key] = OrderedDict()
    group[row.id] = row


def _drop(groups: dict[_Key, _Group], key: _Key, id_: str) -> None:
    if (group := groups.get(key)) is not None:
        group.pop(id_, None)
        if not group:
            del groups[key]
