"""Servers that tests of several files share. A conversation at one of them belongs to one file: whoever writes to it as
well finds other events than it expects, though only where one process happens to run both. So the run fails wherever
two files wrote to one conversation, also if each did so in a process of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import closing

from tests.support.live import Server

LAST = "SELECT COALESCE(MAX(id),0) FROM conversations_event"
# By callers: what a server does later by itself is not the work of the file that runs then. The fuzzer writes anywhere.
WRITTEN = (
    "SELECT DISTINCT c.key FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id"
    " WHERE e.id>? AND e.id<=? AND (e.principal LIKE 'token:%' OR e.principal LIKE 'user:%')"
    " AND e.principal<>'token:fuzzer'"
)

# No other file has such a key, but what a test cut off may be written only when the next file has begun.
RANDOM = re.compile(r"(?:^|[^0-9a-z])(?=[a-f]*[0-9])[0-9a-f]{8,}$")


class Writers:
    """Which files wrote to which conversations."""

    def __init__(self) -> None:
        self._files: dict[str, set[str]] = defaultdict(set)  # by conversation and server
        self._servers: dict[str, Server] = {}
        self._read: dict[str, int] = {}  # by server: its last event that was looked at

    def share(self, name: str, server: Server) -> Server:
        """Watch who writes to a server that has started; its name is the same in each process of a run."""
        self._servers[name], self._read[name] = server, 0
        return server

    def note(self, file: str) -> None:
        """Note where the tests of a file, which ends now, wrote since the last file ended."""
        for name, server in self._servers.items():
            with closing(server.database()) as database:
                ((last,),) = database.execute(LAST).fetchall()
                for (key,) in database.execute(WRITTEN, [self._read[name], last]).fetchall():
                    if not RANDOM.search(key):
                        self._files[f"{key!r} of the server of {name}"].add(file)
            self._read[name] = last

    def noted(self) -> dict[str, list[str]]:
        """Return what was noted, for another process of this run to `merge`."""
        return {conversation: sorted(files) for conversation, files in self._files.items()}

    def merge(self, noted: dict[str, list[str]]) -> None:
        """Add what another process noted."""
        for conversation, files in noted.items():
            self._files[conversation].update(files)

    def clashes(self) -> list[str]:
        """Return the conversations to which several files wrote, one line each."""
        return [
            f"conversation {conversation} is written to by {' and '.join(files)}: each file needs keys of its own"
            for conversation, files in sorted(self.noted().items())
            if len(files) > 1
        ]


writers = Writers()
