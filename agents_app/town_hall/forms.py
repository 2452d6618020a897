"""What the town hall writes down: an incident, feedback, figures. Results of tools and structured answers."""

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Form(BaseModel):
    """A result. As text it is JSON, since that is how the SDK hands a tool's result to a model."""

    model_config = ConfigDict(extra="forbid")

    def __str__(self) -> str:
        return self.model_dump_json()


class Incident(Form):
    """Something that happened in town."""

    incident_type: str
    description: str
    date_of_occurrence: date | None = None
    location: str
    person_involved: str | None = None
    reporter_name: str | None = None
    severity_level: int = Field(ge=1, le=5, description="1 = a blemish, 5 = danger to life")


class Feedback(Form):
    """What somebody thinks of a service."""

    topic: str
    summary: str
    sentiment: Literal["positive", "neutral", "negative"]


class Insights(Form):
    """Figures of this conversation; other conversations are not looked at."""

    incidents: int
    incidents_filed: int
    feedback: int
    summary: str


class Filed(Form):
    """The city's answer to a filed incident."""

    reference: str
    status: Literal["filed", "already filed"]
