"""Which files one process of a run takes together: those that start the same for a session, so it is started once."""

from xdist.scheduler import LoadFileScheduling

# A nursery on each database, with a PostgreSQL cluster: ten seconds of a processor.
RECORDERS = (
    "tests/runs/approvals/test_decision_processes.py",
    "tests/transport/test_recorder",
    "tests/transport/test_relay.py",
)

# Most of an hour of a processor, in parts that share nothing: each goes to the process that is free.
PARTS = (
    "tests/asgi/test_endpoint_fuzz.py::test_thousands_of_requests",
    "tests/evidence/test_honest_histories.py::test_none_of_10_000",
)


class ByFile(LoadFileScheduling):
    """Give a file to one process as a whole, and all recorders' files to the same; `PARTS` one by one."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(PARTS):
            return nodeid
        return "recorders" if nodeid.startswith(RECORDERS) else super()._split_scope(nodeid)
