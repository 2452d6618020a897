"""How many events this process has stored since its start, in how many transactions: counted where events are inserted,
whoever does it (the writer, an action, an import, a fork), once the transaction has committed."""

import threading
from collections.abc import Sequence
from functools import partial

from django.db import connection

from conversations.core.write_transaction import transaction_number


class StoredTotals:
    """Totals of all threads."""

    def __init__(self) -> None:
        self.commits = self.events = self.body_bytes = 0
        self._guard = threading.Lock()
        self._counted = _CountedTransaction()

    def count(self, bodies: Sequence[str]) -> None:
        """Count these events once the current transaction has committed."""
        if bodies:
            size = sum(len(body) if body.isascii() else len(body.encode()) for body in bodies)
            connection.on_commit(partial(self._add, transaction_number(), len(bodies), size))

    def _add(self, number: int, events: int, size: int) -> None:
        is_other, self._counted.number = number != self._counted.number, number
        with self._guard:
            self.commits, self.events, self.body_bytes = (
                self.commits + is_other,
                self.events + events,
                self.body_bytes + size,
            )


class _CountedTransaction(threading.local):
    """The transaction that a thread has counted last."""

    number = 0


TOTALS = StoredTotals()
