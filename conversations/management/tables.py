"""The tables, for commands that may come before the first `serve`."""

from django.core.management import call_command
from django.db import connection


def ensure() -> None:
    """Make the tables when there are none; existing ones are `serve`'s to bring up to date."""
    if "conversations_user" not in connection.introspection.table_names():
        call_command("migrate", verbosity=0, interactive=False)
