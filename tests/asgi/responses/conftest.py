"""What the tests of `/v1/responses` share."""

from collections.abc import Iterator

import pytest

from tests.support.response_desk import Desk, desk_open


@pytest.fixture
def desk() -> Iterator[Desk]:
    """Open the endpoint; the test answers in place of the models."""
    with desk_open() as opened:
        yield opened
