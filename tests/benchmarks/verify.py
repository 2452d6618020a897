"""`verify`: a record of a million events, signed, as the command checks it in a process of its own: all of it, the
chains alone, and what is new since a checkpoint.

Target: all of it in at most 60 s and 200 MB. `EVENTS=100000` makes it smaller; `KEEP=FOLDER` fills the database once.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks import common

common.on_postgresql()
common.set_up()

from django.db import connection

from conversations.evidence import checkpoints, state
from conversations.evidence.checkpoints import Signer
from tests.benchmarks.seed import fill, message
from tests.support.live import ROOT

EVENTS = int(os.environ.get("EVENTS", "1000000"))
EACH = 500  # events of a conversation
KEYS = common.HOME / "keys" / "checkpoint-key.json"
SEEN = common.HOME / "seen"


def store() -> None:
    """Fill and sign."""
    fill(message(f"c{n // EACH}", n % EACH) for n in range(EVENTS))
    checkpoints.make(Signer(KEYS, "example.com/bench"))
    SEEN.write_text(state.note())


def verified(*arguments: str) -> dict[str, float]:
    """Run the command; return its seconds, its CPU and the most memory it had."""
    start = time.perf_counter()
    command = [sys.executable, str(Path(ROOT) / "manage.py"), "verify", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    words = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, words
    cpu = used.ru_utime + used.ru_stime
    return {"s": round(time.perf_counter() - start, 1), "cpu_s": round(cpu, 1), "mb": round(used.ru_maxrss / 1000)}


def main() -> None:
    """Fill, then check in three ways."""
    common.fill_once(f"{EVENTS} events", store)
    connection.close()
    whole, chains = verified(), verified("--chains")
    new = verified("--chains", "--since", str(SEEN), "--new")
    common.report(
        "verify", ratio=whole["cpu_s"] / max(chains["cpu_s"], 0.1), target="<= 60 s, <= 200 MB",
        met=whole["s"] <= 60 and whole["mb"] <= 200, database=connection.vendor, events=EVENTS, whole=whole,
        chains=chains, new=new, share_of_a_core=common.share_of_a_core(),
    )  # fmt: skip


if __name__ == "__main__":
    common.on_both("verify", main)
