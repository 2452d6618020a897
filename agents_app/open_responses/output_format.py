"""The output format a client asks for (`text.format`), as the SDK has it. The output itself is passed through
unchanged."""

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
        """Return False: it is JSON."""
        return False

    def name(self) -> str:
        """Return the format's name as the client gave it."""
        return self._name

    def json_schema(self) -> dict[str, Any]:
        """Return the schema as the client gave it."""
        return self._schema

    def is_strict_json_schema(self) -> bool:
        """Return what the client asked for; False by default."""
        return self._is_strict

    def validate_json(self, json_str: str) -> Any:
        """Parse an output. Raises ModelBehaviorError with the reason if it is not JSON, or nests too deeply."""
        try:
            return json.loads(json_str)
        except (ValueError, RecursionError) as error:
            raise ModelBehaviorError(f"The answer does not match the requested JSON format: {error}") from None
