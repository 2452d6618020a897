"""Print what breaks the rules; exit with 1 where something does."""

import sys
from pathlib import Path

from tests.checks import RULES, problems

if __name__ == "__main__":
    broken = list(problems(Path(__file__).resolve().parents[2]))
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{len(RULES)} rules about our own files: {len(broken)} problems")
    sys.exit(bool(broken))
