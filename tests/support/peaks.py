"""How much memory this process needs at most while something is done: the kernel's own figure, C libraries included."""

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Peak:
    """Filled in at the end of `peak`."""

    mib = 0.0


def memory(name: str, process: int | str = "self") -> float:
    """Return a figure of a process in MiB: `VmRSS` now, `VmHWM` the highest since the start or the last `forget`."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(f"{name}:"))) / 1024


def forget(process: int | str = "self") -> None:
    """Have the highest figure begin again (Linux: `clear_refs` of proc(5))."""
    Path(f"/proc/{process}/clear_refs").write_text("5")


@contextmanager
def peak() -> Iterator[Peak]:
    """Measure how far the resident memory rises above where it was. Freed memory goes back first: it would hide it."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    peak, before = Peak(), memory("VmRSS")
    forget()
    yield peak
    peak.mib = memory("VmHWM") - before
