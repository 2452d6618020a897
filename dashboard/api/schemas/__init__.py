"""What `/api/v1` takes and answers, as pydantic models."""
