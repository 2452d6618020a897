"""Sessions in the database, written under the lock that all write transactions of a process take (§6)."""

import re
from typing import Any

from django.contrib.sessions.backends import db

from conversations.core.write_transaction import write_transaction

_KEY = re.compile(r"[0-9A-Za-z]{8,40}")


class SessionStore(db.SessionStore):
    """Django's session rows; SQLite's own busy handler would starve them beside a hot writer. A key that Django would
    not make is none: PostgreSQL looks up no text with NUL."""

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and _KEY.fullmatch(key) is not None

    def save(self, must_create: bool = False) -> None:
        """Write the row."""
        with write_transaction():
            super().save(must_create=must_create)

    def delete(self, session_key: str | None = None) -> None:
        """Remove the row."""
        with write_transaction():
            super().delete(session_key)

    @classmethod
    def get_model_class(cls) -> Any:  # Any: Django's own type is a runtime class
        """Return Django's session table."""
        return db.SessionStore.get_model_class()
