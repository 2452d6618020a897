"""The recorder: reads Redis and calls the log; and the relay, which puts our posts on Redis (design 2C, 3.2).

service     lease, tasks, what it tells of itself; `Embedded` for a process that does more
lease       which recorder is the active one
reading     finds streams, reads rounds, looks for losses       wire, streams, ids   what it reads with
entries     one entry → an event, or what is wrong with it
filing      rounds → the record, positions in the same transaction
gaps        what was lost, from how Redis describes a stream
relay       posts → Redis
"""

from conversations.recorder.service import Embedded, Service

__all__ = ["Embedded", "Service"]
