#!/usr/bin/env python
"""Run a command of the project from its checkout; the installed console script is `switchboard`."""

from dashboard.cli import main

if __name__ == "__main__":
    main()
