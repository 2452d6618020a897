"""The Town Hall, whose package takes until a file is there to be imported: `LATE_TEAM_GATE`."""

import os
from pathlib import Path

from agents_app.town_hall import TEAM
from tests.support.live import until

until(Path(os.environ["LATE_TEAM_GATE"]).exists, what="the gate")

__all__ = ["TEAM"]
