"""A view of a large conversation in a real Chromium: 10,000 events of 200 participants. Used by `lanes` and `timeline`.

Targets: its newest entry is on the screen in at most 300 ms, and scrolling up keeps p95 of frames at 20 ms or less.
"""

import os

from tests.benchmarks import common, render

EVENTS = 10_000


def measure(view: str) -> None:
    """Open the view again and again, then scroll up from its end; report both."""
    address = f"/conversations/large/?view={view}"
    server = render.Stage()
    try:
        server.ask(key="large", talk=EVENTS)
        with render.chromium() as browser:
            context = render.signed_in(browser, server)
            opened = [render.opening(context, address) for _ in range(render.OPENINGS + 1)][1:]
            scrolled = render.scrolling(context, address)
    finally:
        server.stop()
    ms, p95 = common.median([opening["painted"] for opening in opened]), common.percentile(scrolled["frames"], 0.95)
    quiet = {"share_of_a_core": common.share_of_a_core(), "load": round(os.getloadavg()[0], 1)}
    common.report(
        view, ratio=ms / 300, target="newest entry of 10,000 events, 200 participants, on the screen <= 300 ms",
        met=ms <= 300, newest_painted_ms=[round(opening["painted"]) for opening in opened],
        answered_ms=[round(opening["answered"]) for opening in opened], events=EVENTS, **quiet,
    )  # fmt: skip
    common.report(
        f"{view}-scroll", ratio=p95 / render.SMOOTH, target="p95 of frames <= 20 ms scrolling up",
        met=p95 <= render.SMOOTH, p95_ms=round(p95, 1), p50_ms=round(common.median(scrolled["frames"]), 1),
        worst_ms=round(max(scrolled["frames"]), 1), over_25_ms=round(render.slow(scrolled["frames"]), 4),
        frames=len(scrolled["frames"]), frames_waiting_for_a_page=scrolled["stuck"],
        main_thread_cpu_s=round(scrolled["thread"], 1), **quiet,
    )  # fmt: skip
