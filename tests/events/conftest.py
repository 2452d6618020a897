"""What several tests of events have."""

from collections.abc import Iterator

import pytest

from conversations.events import log


@pytest.fixture
def writer() -> Iterator[log.WriterThreads]:
    """A writer of the log of the test's own, at work."""
    made = log.WriterThreads()
    made.start()
    yield made
    made.close()
