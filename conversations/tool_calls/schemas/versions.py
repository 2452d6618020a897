"""The versions of a tool: which schemas a team offered under its name, since when, and what each changed."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conversations.core.json_diff import JsonDiff, schema_diff
from conversations.core.json_values import parse_object
from conversations.core.micros import to_datetime
from conversations.models import Agent, ToolSchema, ToolVersion
from conversations.tool_calls.schemas import schema_table

MAX_VERSIONS = 50
PARTS = {  # of a schema, in the order for reading, and as they are called on a page
    "description": "description",
    "strict": "strict",
    "params_json_schema": "parameters",
    "output_json_schema": "output",
    "name": "name",
}


@dataclass(frozen=True, slots=True)
class Version:
    """One version, numbered in the order in which they were first offered."""

    number: int
    hash: str
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class OfferedSchema:
    """What a model saw of a tool. `parameters` is JSON text; texts are not escaped."""

    description: str
    is_strict: bool | None
    parameters: str
    fields: list[schema_table.Field]
    is_cut: bool
    output: str | None


def versions_of(team: str, name: str) -> list[Version]:
    """Return the newest versions of a team's tool (by qualified name), newest first."""
    rows = ToolVersion.objects.filter(team=team, name=name)
    number, newest = rows.count(), list(rows.order_by("-first_at", "-id")[:MAX_VERSIONS])
    return [
        Version(number - n, row.hash, to_datetime(row.first_at), to_datetime(row.last_at))
        for n, row in enumerate(newest)
    ]


def body_of(hash: str) -> dict[str, Any]:
    """Return a stored schema by hash; empty if unknown."""
    text = ToolSchema.objects.filter(hash=hash).values_list("body", flat=True).first()
    return parse_object(text or "") or {}


def read_schema(body: dict[str, Any]) -> OfferedSchema:
    """Parse a schema for drawing."""
    parameters, output, strict = body.get("params_json_schema"), body.get("output_json_schema"), body.get("strict")
    rows, is_cut = schema_table.fields_of(parameters)
    return OfferedSchema(
        description=str(body.get("description") or ""),
        is_strict=strict if isinstance(strict, bool) else None,
        parameters=json.dumps(parameters if parameters is not None else {}, ensure_ascii=False),
        fields=rows,
        is_cut=is_cut,
        output=json.dumps(output, ensure_ascii=False) if output is not None else None,
    )


def compared(before: dict[str, Any], after: dict[str, Any]) -> JsonDiff:
    """Return the differences between two schemas, in reading order."""
    old, new = ({word: body[part] for part, word in PARTS.items() if part in body} for body in (before, after))
    return schema_diff(old, new)


def home_of(hash: str, agent: str = "") -> tuple[str, str] | None:
    """Return the team and tool name that offered a schema last, preferring a team of this agent; None if nobody did."""
    homes = list(
        ToolVersion.objects.filter(hash=hash).order_by("-last_at", "-id").values_list("team", "name")[:MAX_VERSIONS]
    )
    teams = set(Agent.objects.filter(name=agent).values_list("team", flat=True)) if len(homes) > 1 else set()
    return next((home for home in homes if home[0] in teams), homes[0] if homes else None)
