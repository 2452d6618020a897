"""`timeline`: the timeline of 10,000 events and 200 participants: first paint, and frames while scrolling."""

from tests.benchmarks import common
from tests.benchmarks.large_view import measure

if __name__ == "__main__":
    measure("timeline")
    common.tear_down()
