"""Named lines at which a test kills the process: `SWITCHBOARD_FAILPOINT=NAME:N` sends SIGKILL at the N-th passing.

`NAME:drop` makes `should_drop(NAME)` true for good: a lost doorbell. Unset (always, outside tests) it costs one check.
"""

import os
import signal
from itertools import count

_NAME, _, _ARGUMENT = os.environ.get("SWITCHBOARD_FAILPOINT", "").partition(":")
_passings = count(1)


def failpoint(name: str) -> None:
    """Die here, if the environment says so."""
    if name == _NAME and _ARGUMENT.isdigit() and next(_passings) == int(_ARGUMENT):
        os.kill(os.getpid(), signal.SIGKILL)


def should_drop(name: str) -> bool:
    """Tell whether the environment asks to lose what passes here."""
    return name == _NAME and _ARGUMENT == "drop"
