"""The console script: Django's command line under our settings."""

import gc
import os
import signal
import sys

COLLECT = (2_000, 5, 1_000)  # new objects until the garbage collector looks, and how often until it looks at older ones


def main() -> None:
    """Run one command, `serve` when none is named. Exit 1 with a sentence for what the disk or the database refuses.

    Ctrl-C ends the process as the signal itself does, without a traceback: what a shell expects of a command.
    """
    gc.set_threshold(*COLLECT)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    try:
        _run(sys.argv if len(sys.argv) > 1 else [sys.argv[0], "serve"])
    except KeyboardInterrupt:
        _end_by_interrupt()


def _run(arguments: list[str]) -> None:
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(arguments)
    except Exception as error:
        from dashboard.command_errors import sentence

        if not (reason := sentence(error)):
            raise
        sys.exit(reason)


def _end_by_interrupt() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
