"""Which files one process of a run takes together: those that start the same for a session, so it is started once."""

from xdist.scheduler import LoadFileScheduling

# A nursery on each database, with a PostgreSQL cluster: ten seconds of a processor.
RECORDERS = (
    "tests/runs/approvals/test_decision_processes.py",
    "tests/transport/test_recorder",
    "tests/transport/test_relay.py",
)


class ByFile(LoadFileScheduling):
    """Give a file to one process as a whole, and all recorders' files to the same."""

    def _split_scope(self, nodeid: str) -> str:
        return "recorders" if nodeid.startswith(RECORDERS) else super()._split_scope(nodeid)
