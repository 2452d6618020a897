"""The Open Responses document of 2026-04-24, where the samples have it: validates answers and events against it."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from jsonschema import Draft202012Validator

DOCUMENT = Path(settings.SAMPLES_DIR).parent / "openresponses" / "openapi-2026-04-24.json"
needs_document = pytest.mark.skipif(
    not DOCUMENT.exists(), reason="SWITCHBOARD_SAMPLES_DIR has no openresponses folder beside it"
)


@cache
def _components() -> dict[str, Any]:
    components: dict[str, Any] = json.loads(DOCUMENT.read_text())["components"]
    # The document allows nothing but null where a schema is echoed; the official clients read the schema there.
    components["schemas"]["JsonSchemaResponseFormat"]["properties"]["schema"] = {"type": "object"}
    return components


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", "components": _components()})


@cache
def _events() -> dict[str, str]:
    """Return the schema of each event by its type."""
    names = [name for name in _components()["schemas"] if name.endswith("StreamingEvent")]
    return {_components()["schemas"][name]["properties"]["type"]["enum"][0]: name for name in names}


def check(name: str, value: Any) -> None:
    """Fail saying what is wrong with a value of a schema."""
    wrong = [f"{error.json_path}: {error.message[:300]}" for error in _validator(name).iter_errors(value)]
    assert not wrong, (name, wrong[:5], value)


def check_response(value: Any) -> None:
    """Fail unless it is a response with every field there."""
    check("ResponseResource", value)


def check_event(value: Any) -> None:
    """Fail unless it is an event of a stream."""
    check(_events()[value["type"]], value)


def check_error(value: Any) -> None:
    """Fail unless it is the body of an error."""
    check("ErrorPayload", value["error"])
    assert isinstance(value["error"]["code"], str)
