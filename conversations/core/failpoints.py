"""Named places at which a test can kill the process: `SWITCHBOARD_FAILPOINT=NAME:N` sends SIGKILL at the N-th pass.

`NAME:segfault` crashes the interpreter there, in the passing thread. `NAME:drop` makes `should_drop(NAME)` true for
good: a lost notification. Unset, as always outside tests, it costs one check.
"""

import os
import signal
import threading
from itertools import count

_NAME, _, _ARGUMENT = os.environ.get("SWITCHBOARD_FAILPOINT", "").partition(":")
_passings = count(1)


def failpoint(name: str) -> None:
    """Die here if the environment says so."""
    if name != _NAME:
        return
    if _ARGUMENT.isdigit() and next(_passings) == int(_ARGUMENT):
        os.kill(os.getpid(), signal.SIGKILL)
    if _ARGUMENT == "segfault":
        signal.pthread_kill(threading.get_ident(), signal.SIGSEGV)


def should_drop(name: str) -> bool:
    """Return whether the environment asks to lose what passes here."""
    return name == _NAME and _ARGUMENT == "drop"
