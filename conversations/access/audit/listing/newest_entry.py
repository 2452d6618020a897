"""The newest entry's number as the one row of the topic `audit`: pages that show the log then ask for what is new."""

from collections.abc import Mapping, Sequence
from typing import Any

from conversations.models import AuditHead

KEY = "audit"  # of the row


class _Source:
    """The row of the topic `audit`: nothing of what an entry says."""

    def newest_rows(self, limit: int) -> list[dict[str, Any]]:
        """Return it."""
        return [{"key": KEY, "version": newest()}]

    def changed_rows(self, conversations: Sequence[str], versions: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return it if it changed."""
        return [row for row in self.newest_rows(1) if versions.get(KEY) != row["version"]]

    def versions(self, limit: int) -> dict[str, tuple[str, int]]:
        """Return its version."""
        return {KEY: (KEY, newest())}

    def waiting_counts(self) -> dict[str, Any]:
        """Return nothing: who follows this topic follows `approvals`, too."""
        return {}


SOURCE = _Source()


def newest() -> int:
    """Return the newest entry's number; 0 without one."""
    return AuditHead.objects.filter(id=1).values_list("seq", flat=True).first() or 0
