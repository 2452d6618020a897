"""Which pages may open a socket with a person's cookie: those served from this very address, and those allowed."""

import pytest

from conversations.access import origin_check

HOSTS, ORIGINS = ["desk.example", "[::1]"], ["https://allowed.example"]


@pytest.mark.parametrize(
    ("origin", "scheme", "host", "is_ours"),
    [
        ("http://desk.example:8000", "ws", "desk.example:8000", True),
        ("https://desk.example", "wss", "desk.example", True),
        ("http://[::1]:8000", "ws", "[::1]:8000", True),
        ("https://allowed.example", "ws", "desk.example", True),
        ("http://desk.example", "wss", "desk.example", False),  # what anybody on the way may write
        ("https://desk.example", "ws", "desk.example", False),
        ("http://desk.example:81", "ws", "desk.example", False),
        ("http://other.example", "ws", "desk.example", False),
        ("http://other.example", "ws", "other.example", False),  # a name that was made to lead here
        ("http://allowed.example", "ws", "desk.example", False),
        ("null", "ws", "desk.example", False),
        ("", "ws", "desk.example", False),
        ("http://", "ws", "", False),
    ],
)
def test_scheme_host_and_port_are_those_of_the_page(origin, scheme, host, is_ours):
    headers = [(b"host", host.encode()), *([(b"origin", origin.encode())] if origin else [])]

    assert origin_check.is_ours({"scheme": scheme, "headers": headers}, HOSTS, ORIGINS) is is_ours
