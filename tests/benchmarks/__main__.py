"""Run benchmarks by name, each in a process of its own."""

import subprocess
import sys

NAMES = (
    *("append", "ingest", "bus", "history", "list", "live_list", "growth", "toolcalls", "search"),
    "audit",
    *("fanout", "latency", "latency_nodes", "resume", "render", "lanes", "timeline", "start", "runs", "responses"),
    *("waiting_runs", "streaming_runs", "cluster"),
    *("watch_agents", "otlp", "verify", "rebuild"),
)


def main() -> int:
    """Run the named benchmarks, or all; return how many missed or broke."""
    wanted = sys.argv[1:] or NAMES
    if unknown := [name for name in wanted if name not in NAMES]:
        sys.exit(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return sum(
        subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}"], check=False).returncode != 0
        for name in wanted
    )


if __name__ == "__main__":
    sys.exit(main())
