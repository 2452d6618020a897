"""What the town hall offers to programs over the responses API: `TEAM.hosted_tools`. It reads the record alone."""

import json
import re
from datetime import date
from typing import Literal

from agents import function_tool

from agents_app.town_hall.forms import Form
from conversations.core.micros import to_datetime
from conversations.models import Event, ToolCall
from conversations.models.tool_call import NEWEST_FIRST

LOOKED_AT = 500  # of the newest filings


class IncidentStatus(Form):
    """What the city's register says of a reference."""

    reference: str
    status: Literal["filed with the city", "unknown reference"]
    filed_on: date | None = None


@function_tool
def incident_status(reference: str) -> IncidentStatus:
    """Look up what became of an incident by its reference number.

    Args:
        reference: The city's reference, like TH-0A1B2C3D.
    """
    reference_code = reference.strip().upper()
    if not re.fullmatch(r"TH-[0-9A-F]{8}", reference_code):
        return IncidentStatus(reference=reference[:100], status="unknown reference")
    at = _filed_at(reference_code)
    if at is None:
        return IncidentStatus(reference=reference_code, status="unknown reference")
    return IncidentStatus(reference=reference_code, status="filed with the city", filed_on=to_datetime(at).date())


def _filed_at(reference: str) -> int | None:
    """Find the call of ours that filed it; when, in µs UTC. Claims from outside file nothing (law I)."""
    calls = ToolCall.objects.filter(name="file_incident", status="done", run__isnull=False).order_by(*NEWEST_FIRST)[
        :LOOKED_AT
    ]
    for conversation, seq in calls.values_list("conversation_id", "finished_seq"):
        event = Event.objects.filter(conversation_id=conversation, seq=seq or 0, body__contains=reference).first()
        if event is not None and _reference_in(event.body) == reference:
            return int(event.at)
    return None


def _reference_in(body: str) -> str:
    output = json.loads(body).get("output")
    return str(output.get("reference")) if isinstance(output, dict) else ""
