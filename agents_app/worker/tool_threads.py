"""Threads for what a worker's loop runs in its default executor: synchronous tools, and looking up host names."""

from conversations.core.db_threads import DatabaseThreads

THREADS = 32  # a tool that never returns keeps its thread; on PostgreSQL those that ask the database share connections


class ToolThreads(DatabaseThreads):
    """Many threads, of which a loop that ends does not wait for those that are still in a tool."""

    def __init__(self, runs: int) -> None:
        """Create a pool with a thread for each of `runs` concurrent runs, but at least `THREADS`."""
        super().__init__("tools", threads=max(THREADS, runs))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle threads. A busy one ends with its tool: nobody waits for its result anymore."""
        super().shutdown(wait=False, cancel_futures=True)
