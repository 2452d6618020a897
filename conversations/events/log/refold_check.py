"""Fold a conversation again and compare the result with its rows, without correcting them. Called only by `verify`."""

from collections.abc import Collection
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.write_transaction import write_transaction
from conversations.events.log import folded_rows
from conversations.events.log.folded_rows import Key
from conversations.events.log.refold import COLUMNS, LOOKS, Refold, values_of

NOUNS = {
    "calls": "tool call", "turns": "model turn at event", "annotations": "annotation at event", "runs": "run",
    "approvals": "approval", "usages": "model usage", "responses": "response", "participants": "participant",
}  # fmt: skip


class Differs(Exception):
    """A row does not match its events; the message names the row."""


class RefoldCheck(Refold):
    """Raises `Differs` at the first row that differs."""

    def run(self) -> None:
        """Fold up to the head and compare; under the lock only if events are appended in the meantime. Raises `Gone`
        and `Differs`."""
        with connection.cursor() as cursor:
            self._fold_on(cursor)
            self._note_rest(cursor)
            if any(self._is_right(cursor) for _ in range(LOOKS)):
                return
            with write_transaction():
                self._lock(cursor)
                self._fold_on(cursor)
                self._compare(cursor)

    def _correct(self, cursor: CursorWrapper, table: str, expected: dict[Key, Any], row_keys: Collection[Key]) -> None:
        wrong = folded_rows.wrong(cursor, table, self.head.id, expected, row_keys)
        if wrong and table == "participants":  # a row from before migration 0024 has no `asked_at` until a rebuild
            untimed = {key: (*row[:-1], 0) for key, row in expected.items()}
            wrong = folded_rows.wrong(cursor, table, self.head.id, untimed, wrong)
        if wrong:
            raise Differs(f"{NOUNS[table]} {wrong[0]} does not match its events")

    def _compare(self, cursor: CursorWrapper) -> None:
        for table, left in self._remaining.items():
            self._correct(cursor, table, self._wanted(table, left), left)
        if not self._is_head_right(cursor):
            stored = dict(zip(COLUMNS, self._stored(cursor)[1:], strict=True))
            folded = dict(zip(COLUMNS, values_of(self.head), strict=True))
            column = next((name for name in COLUMNS if stored[name] != folded[name]), "parent")
            raise Differs(f"its {column} does not match its events")
