"""What the events of the union have in common. Called by `kinds` and its parts. No Django."""

from pydantic import BaseModel, ConfigDict


class BaseEvent(BaseModel):
    """What every event may say of itself."""

    model_config = ConfigDict(extra="allow")

    id: str | None = None
    conversation_id: str
    created_at: str | None = None


class OurEvent(BaseEvent):
    """What events of runs say besides."""

    run_id: str | None = None
    agent: str | None = None
    turn: int | None = None
