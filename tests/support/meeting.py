"""Work in several threads that meet at one place of the code. For tests of what holds two writers apart."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection

from conversations.core.db_threads import DatabaseThreads


def run_meeting(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, works: list[Callable[[], object]]) -> None:
    """Do each of these works in a thread, together, so that all are at a module's function `name` before one goes on.
    Where they take turns, the others never come, and nobody waits for them for long."""
    function, all_there = getattr(module, name), threading.Barrier(len(works))

    def meet(*arguments: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            all_there.wait(0.5)
        return function(*arguments)

    monkeypatch.setattr(module, name, meet)
    with DatabaseThreads("runs") as threads:
        for done in [threads.submit(work) for work in works]:
            done.result(60)
        threads.submit(connection.close)
