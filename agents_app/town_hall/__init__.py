"""The Town Hall: the team that ships. Citizens talk to Dialogue; what they report is written down, and filed once a
person has approved it."""

from agents_app.teams.definition import Team
from agents_app.town_hall.context import TownHallContext
from agents_app.town_hall.desks import coordinator, dialogue, insights, triage
from agents_app.town_hall.hosted import incident_status

TEAM = Team(
    name="Town Hall",
    agents=[dialogue, triage, coordinator, insights],
    entry=["Dialogue"],
    context=TownHallContext,
    describe="Takes reports of incidents and feedback from citizens, and files incidents with the city once approved.",
    effects={
        "feedback_formatter_tool": "idempotent",
        "incident_formatter_tool": "idempotent",
        "file_incident": "unsafe",
        "give_insights": "read",
        "chat_send": "unsafe",
        "incident_status": "read",
    },
    hosted_tools=[incident_status],
)
