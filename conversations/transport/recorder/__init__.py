"""The recorder reads Redis and calls the log; the relay puts our posts on Redis (law C, 3.2).

service         lease, tasks, its own state; `EmbeddedRecorder` for a process that does more
active_recorder which recorder is the active one
read_streams    finds streams, reads rounds, looks for losses; with redis_client and streams
parse_entry     one entry → an event, or what is wrong with it
store           rounds → the record, positions in the same transaction
held_streams    streams that wait for a locked conversation
gap_detection   what was lost, from how Redis describes a stream
relay           posts → Redis
"""

from conversations.transport.recorder.service import EmbeddedRecorder, RecorderService

__all__ = ["EmbeddedRecorder", "RecorderService"]
