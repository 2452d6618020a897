"""What tests of replays share."""

from pathlib import Path

import pytest

from tests.support.replay_desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A team whose calls are made again."""
    return Desk(tmp_path)
