"""The context that the town hall's agents share in a conversation. It is stored between messages: flags survive."""

from enum import StrEnum

from agents import Agent, AgentHookContext, AgentHooks, RunContextWrapper, Tool
from pydantic import BaseModel, ConfigDict

from agents_app.run_scope import tell
from agents_app.town_hall.forms import Feedback, Incident, Insights
from conversations.core.secret_masking import mask


class AgentStage(StrEnum):
    """The stage of a message within the town hall."""

    DIALOGUE = "dialogue"
    TRIAGE = "triage"
    INSIGHTS = "insights"
    CONVERSATION_FORMATTING = "conversation_formatting"
    INCIDENT_FORMATTING = "incident_formatting"
    FEEDBACK_FORMATTING = "feedback_formatting"


class TownHallContext(BaseModel):
    """The shared context. Every field has a default; all of it survives JSON unchanged."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    conversation_id: str = ""
    agent_stage: AgentStage = AgentStage.DIALOGUE
    incident: Incident | None = None
    feedback: Feedback | None = None
    insights: Insights | None = None
    incident_processed: bool = False
    feedback_processed: bool = False
    incident_reference: str | None = None
    incidents_written: int = 0
    incidents_filed: int = 0
    feedback_written: int = 0

    def enter(self, stage: AgentStage) -> None:
        """Set the stage, and report it if it changed: the stages of a run are a timeline in its record."""
        if stage != self.agent_stage:
            self.agent_stage = stage
            tell({"event": "town_hall.stage", "stage": stage.value})

    def write_incident(self, incident: Incident) -> Incident:
        """Store an incident with secrets masked; a different one counts as not processed yet."""
        masked = Incident.model_validate_json(mask(incident.model_dump_json()))
        if masked != self.incident:
            self.incident, self.incident_processed, self.incident_reference = masked, False, None
            self.incidents_written += 1
        return masked

    def write_feedback(self, feedback: Feedback) -> Feedback:
        """Store feedback with secrets masked; equal feedback counts once."""
        masked = Feedback.model_validate_json(mask(feedback.model_dump_json()))
        if masked != self.feedback:
            self.feedback = masked
            self.feedback_written += 1
        self.feedback_processed = True
        return masked


class EnterStage(AgentHooks[TownHallContext]):
    """Sets the stage when its agent works: the first of two ways to follow what agents do (hooks)."""

    def __init__(self, stage: AgentStage) -> None:
        self.stage = stage

    async def on_start(self, context: AgentHookContext[TownHallContext], agent: Agent[TownHallContext]) -> None:
        """Enter the stage."""
        context.context.enter(self.stage)

    async def on_tool_end(
        self, context: RunContextWrapper[TownHallContext], agent: Agent[TownHallContext], tool: Tool, result: object
    ) -> None:
        """Enter it again after a tool whose own agent entered another."""
        context.context.enter(self.stage)
