"""The colors that agents registered with, applied to drawings. Called before drawing."""

import time

from conversations.models import Agent
from conversations.rendering import event_renderer

EVERY = 10.0  # seconds between looks
AT_FIRST = 1.0  # until there are any: the first agents register seconds after the first page

_looked_at = -EVERY
_has_found = False


def refresh_colors() -> None:
    """Reload the colors now and then; if one changed, everything is drawn again."""
    global _looked_at, _has_found
    now = time.monotonic()
    if now - _looked_at < (EVERY if _has_found else AT_FIRST):
        return
    _looked_at = now
    rows = Agent.objects.filter(hue__range=(1, 10)).order_by("-is_entry", "-id").values_list("name", "hue")
    _has_found = bool(rows)
    event_renderer.remember_hues(dict(reversed(rows)))
