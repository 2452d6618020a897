"""The reason for which PostgreSQL cannot be reached, in the text of its driver."""

import pytest

from dashboard.postgresql import base


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("connection failed: refused\n\tIs the server running?", "connection failed: refused"),
        (
            "Several attempts failed. All failures were:\n- host: 'a': refused\n- host: 'b': refused",
            "host: 'a': refused",
        ),
        ("", ""),
    ],
)
def test_the_reason_is_the_first_line_that_has_one(text: str, reason: str) -> None:
    assert base.reason_of(text) == reason
