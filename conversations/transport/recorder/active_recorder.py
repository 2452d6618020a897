"""Which recorder is the active one. The fence of the read positions (`store`) keeps two from storing the same."""

from typing import Any

from conversations.core.single_process_lease import SingleProcessLease

NAME = "recorder"


class ActiveRecorderLease(SingleProcessLease):
    """One recorder's lease. Every method runs in the recorder's database thread."""

    def __init__(self) -> None:
        super().__init__(NAME)
        self.looked_at = 0  # µs by Redis's clock: the last complete look at what streams there are

    def learn(self, held: dict[str, Any]) -> None:
        """Continue from where the last recorder looked."""
        self.looked_at = max(self.looked_at, held["looked_at"])

    def handover(self) -> dict[str, Any]:
        """Return where this recorder looked, for the next one."""
        return {"looked_at": self.looked_at}
