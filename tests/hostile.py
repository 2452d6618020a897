"""Hostile content of the sample data, for tests of everything that draws foreign text. Data only; nobody runs it."""

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

_LINES = (".txt", ".md")


def payloads(sample: int | None = None) -> list[str]:
    """Answer every payload of the `hostile-*` folders, or a fixed sample of them. Skips the test without any."""
    found = _all(Path(settings.SAMPLES_DIR))
    if not found:
        pytest.skip(f"no hostile samples in {settings.SAMPLES_DIR}; set SWITCHBOARD_SAMPLES_DIR")
    if sample is None or sample >= len(found):
        return list(found)
    return random.Random(7).sample(found, sample)


@cache
def _all(folder: Path) -> tuple[str, ...]:
    files = sorted(path for path in folder.glob("hostile-*/*") if not path.name.startswith(("LICENSE", "PROVENANCE")))
    return tuple(dict.fromkeys(text for path in files for text in _read(path) if text.strip()))


def _read(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".json":
        yield from _strings(json.loads(text))
    else:
        yield text
        if path.suffix in _LINES:
            yield from text.split("\n")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
