"""Public clients use a server in the first second after its start, start after start: every check passes every time."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.cold_starts import Stage, cold_server, stage
from tests.support.public_clients import CHECKS, Public
from tests.support.shares import amount_of
from tests.support.tiers import rounds


def failures(served: Stage, *, is_newcomer: bool) -> list[str]:
    """Start a server, make all checks at once, return what failed."""
    with cold_server(served, is_newcomer=is_newcomer) as server, ThreadPoolExecutor(len(CHECKS)) as clients:
        public = Public(server, served.token)
        running = {check.__name__: clients.submit(check, public) for check in CHECKS}
        errors = {name: future.exception() for name, future in running.items()}
    return [f"{name}: {error!r}" for name, error in errors.items() if error is not None]


@pytest.mark.slow
@pytest.mark.crash
def test_public_clients_are_served_in_the_first_second() -> None:
    served, times = stage(), rounds(1, 2)

    assert [failures(served, is_newcomer=False) for _ in range(times)] == [[]] * times


@pytest.mark.crash
@pytest.mark.faults
@pytest.mark.alone
@pytest.mark.timeout(3600)
def test_public_clients_are_served_in_the_first_second_of_fifty_starts() -> None:
    served, times = stage(), amount_of(50)

    assert [failures(served, is_newcomer=True) for _ in range(times)] == [[]] * times
