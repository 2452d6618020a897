"""The form a client wants an answer in (`text.format`), as the SDK has it. The answer goes through as it is."""

import json
from collections.abc import Mapping
from typing import Any

from agents import ModelBehaviorError
from agents.agent_output import AgentOutputSchemaBase


class OutputFormat(AgentOutputSchemaBase):
    """`{"type": "json_schema", "name", "schema", "strict"}`, or `json_object`: any object."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        schema = spec.get("schema")
        self._schema: dict[str, Any] = schema if isinstance(schema, dict) else {"type": "object"}
        self._name = str(spec.get("name") or "answer")
        self._is_strict = spec.get("strict") is True

    def is_plain_text(self) -> bool:
        """It is JSON."""
        return False

    def name(self) -> str:
        """As the client called it."""
        return self._name

    def json_schema(self) -> dict[str, Any]:
        """As the client gave it."""
        return self._schema

    def is_strict_json_schema(self) -> bool:
        """As the client said; nothing without it."""
        return self._is_strict

    def validate_json(self, json_str: str) -> Any:
        """Read an answer. Raises ModelBehaviorError for what is not JSON, with the place."""
        try:
            return json.loads(json_str)
        except ValueError as error:
            raise ModelBehaviorError(f"The answer does not match the requested JSON format: {error}") from None
