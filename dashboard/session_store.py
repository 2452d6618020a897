"""Sessions in the database, written under the lock that all write transactions of a process take (§6)."""

from typing import Any

from django.contrib.sessions.backends import db

from conversations.core.write_transaction import write_transaction


class SessionStore(db.SessionStore):
    """Django's session rows; SQLite's own busy handler would starve them beside a hot writer."""

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
