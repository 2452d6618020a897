"""`list`: the first 50 of 10,000 conversations with one person's unread counts, against the aggregate over the events.

Target: p99 at most 5 ms.
"""

import time

from tests.benchmarks import common

common.set_up()

from django.db import connection

from conversations import fleet
from conversations.models import User
from tests.benchmarks.seed import fill, message

CONVERSATIONS = 10_000
AGGREGATE = """SELECT c.key, MAX(e.seq), SUM(e.kind='message') FROM conversations_conversation c
JOIN conversations_event e ON e.conversation_id=c.id GROUP BY c.id ORDER BY MAX(e.at) DESC LIMIT 50"""


def main() -> None:
    """Read the list as the page does, and the aggregate a few times."""
    fill(message(f"c{i % CONVERSATIONS}", i) for i in range(CONVERSATIONS * 10))
    person = User.objects.create(username="maria")
    ours, raw = [], []
    for round_ in range(300):
        start = time.perf_counter()
        page = fleet.newest(reader=person, limit=50)
        ours.append((time.perf_counter() - start) * 1000)
        assert len(page.rows) == 50
        if round_ % 100 == 0:
            start = time.perf_counter()
            with connection.cursor() as cursor:
                cursor.execute(AGGREGATE)
                cursor.fetchall()
            raw.append((time.perf_counter() - start) * 1000)
    p99 = common.percentile(ours, 0.99)
    common.report(
        "list", ratio=common.median(raw) / common.median(ours), target="p99 <= 5 ms", met=p99 <= 5,
        p50_ms=round(common.median(ours), 2), p99_ms=round(p99, 2), aggregate_ms=round(common.median(raw), 1),
        conversations=CONVERSATIONS,
    )  # fmt: skip


if __name__ == "__main__":
    main()
    common.tear_down()
