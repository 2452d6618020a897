"""The console script: Django's command line under our settings."""

import os
import sys


def main() -> None:
    """Run one command; `serve` when none is named."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    from django.core.management import execute_from_command_line

    arguments = sys.argv if len(sys.argv) > 1 else [sys.argv[0], "serve"]
    execute_from_command_line(arguments)
