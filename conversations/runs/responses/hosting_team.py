"""The team whose workers a plain model's run waits for: the one that hosts the tools that its request names."""

from django.db.models import QuerySet

from conversations.events.response_ids import PLAIN_MODEL
from conversations.models import Run


def keep_host(run: str, earlier: QuerySet[Run]) -> None:
    """Have a plain model's run wait for the same workers as the earlier run that was given the same tools."""
    team = earlier.filter(agent=PLAIN_MODEL).values_list("team", flat=True).first()
    if team:
        Run.objects.filter(id=run, agent=PLAIN_MODEL).update(team=team)
