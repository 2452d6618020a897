"""The requests and responses of `/api/v1`, as pydantic models."""
