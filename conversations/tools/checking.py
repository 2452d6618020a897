"""Values held against JSON schemas that others wrote: bounded in time, whatever a schema says. No Django.

A `pattern` that might search for ever is passed over, and so is `unevaluatedProperties`, which needs patterns: the tool
holds its arguments against its schema itself. Called by `arguments` and `fit`.
"""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from re import _constants as ops  # type: ignore[attr-defined]  # no other way to tell what a pattern is made of
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

PATIENCE = 1.0  # seconds of this thread's CPU
MOST = 100  # problems
STEPS = 10_000_000  # of one search for a pattern
LONGEST = 2_000  # characters of a pattern
FEW = 10  # times that a part of a pattern may be repeated and count as once

NOTHING: Registry[Any] = Registry()  # of a schema that refers to an address nothing is fetched
NEVER = 99  # steps as a power of the text's length: too many for any

_until: ContextVar[float] = ContextVar("checked_until", default=float("inf"))
Check = Callable[..., Any]  # a keyword of jsonschema's: validator, the keyword's value, the instance, the schema


class Unusable(Exception):
    """A schema cannot be held against a value: it is none, or that takes too long."""


def problems(value: Mapping[str, Any], schema: Mapping[str, Any], *, most: int = MOST) -> list[ValidationError]:
    """Answer what is wrong with a value, the first `most`. Raises `Unusable`."""
    token = _until.set(time.thread_time() + PATIENCE)
    try:
        return list(islice(_Validator(_ours(schema), registry=NOTHING).iter_errors(value), most))
    except Unusable:
        raise
    except Exception as error:  # a schema may be anything, and jsonschema raises whatever comes of it
        raise Unusable(f"{type(error).__name__}: {error}"[:200]) from None
    finally:
        _until.reset(token)


def is_quick(pattern: str, length: int) -> bool:
    """Tell whether a text of so many characters is searched in a moment; with what is no pattern of Python's, never."""
    return int(max(length, 2) ** _power(pattern)) <= STEPS


@lru_cache(1024)
def _power(pattern: str) -> int:
    """Answer as which power of a text's length the steps of a search may grow."""
    if len(pattern) > LONGEST:
        return NEVER
    try:
        tree = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError, TypeError):
        return NEVER
    is_anchored = len(tree) > 0 and tree[0][0] is ops.AT and tree[0][1] is ops.AT_BEGINNING
    return _repeats(tree, is_repeated=False) + (0 if is_anchored else 1)


def _repeats(tree: Any, *, is_repeated: bool) -> int:
    """Count the parts that may be repeated often; one inside another, or with a choice inside, is too many."""
    found = 0
    for op, given in tree:
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            least, most, inner = given
            if is_repeated and least != most:
                return NEVER
            found += (most > FEW) + _repeats(inner, is_repeated=is_repeated or most > 1)
        elif op in (ops.GROUPREF, ops.GROUPREF_EXISTS) or (op is ops.BRANCH and is_repeated):
            return NEVER
        else:
            found += sum(_repeats(inner, is_repeated=is_repeated) for inner in _parts(given))
    return found


def _parts(given: Any) -> Iterator[Any]:
    """Find the patterns inside a part of a pattern."""
    if isinstance(given, parser.SubPattern):
        yield given
    elif isinstance(given, list | tuple):
        for one in given:
            yield from _parts(one)


def _ours(schema: Any) -> Any:
    """Leave out by which standard a part was written: jsonschema would check that part by it, without our bounds."""
    if isinstance(schema, Mapping):
        told = {name: _ours(value) for name, value in schema.items()}
        return {name: value for name, value in told.items() if name != "$schema" or not isinstance(value, str)}
    return [_ours(one) for one in schema] if isinstance(schema, list) else schema


def _timed(check: Check) -> Check:
    def timed(*given: Any) -> Any:
        if time.thread_time() > _until.get():
            raise Unusable("it takes too long to check")
        return check(*given)

    return timed


def _pattern(validator: Any, pattern: str, text: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(text, "string") and is_quick(pattern, len(text)) and not re.search(pattern, text):
        yield ValidationError(f"{text[:100]!r} does not match {pattern!r}")


def _unique(validator: Any, is_asked: bool, items: Any, schema: Any) -> Iterator[ValidationError]:
    told = (
        [json.dumps(item, sort_keys=True) for item in items] if is_asked and validator.is_type(items, "array") else []
    )
    if len(set(told)) < len(told):
        yield ValidationError("an item is there twice")


def _quick_names(check: Check) -> Check:
    """Pass over what looks for names by patterns where that might take for ever."""

    def checked(validator: Any, given: Any, instance: Any, schema: Any) -> Any:
        longest = max(map(len, instance), default=0) if validator.is_type(instance, "object") else 0
        patterns = schema.get("patternProperties", {})
        joined = "|".join(patterns) if len(patterns) > 1 else ""  # as they are searched together
        return check(validator, given, instance, schema) if _are_quick([*patterns, joined], longest) else None

    return checked


def _are_quick(patterns: list[str], length: int) -> bool:
    return all(is_quick(pattern, length) for pattern in patterns)


def _keywords() -> dict[str, Check]:
    known: dict[str, Check] = {**Draft202012Validator.VALIDATORS, "pattern": _pattern, "uniqueItems": _unique}
    known |= {name: _quick_names(known[name]) for name in ("patternProperties", "additionalProperties")}
    del known["unevaluatedProperties"]
    return {name: _timed(check) for name, check in known.items()}


_Validator = extend(Draft202012Validator)
_Validator.VALIDATORS = _keywords()
