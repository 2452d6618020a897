"""The database's clock, which leases and beats are measured by: the processes of a deployment share no other."""

import time

from django.db import connection


def database_now() -> int:
    """Return the database's time, µs UTC. SQLite's is this machine's own."""
    if connection.vendor == "sqlite":
        return time.time_ns() // 1000
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
        return int(cursor.fetchone()[0])
