"""Validate values against JSON schemas from others: bounded in time, whatever a schema says. It knows no Django.

Patterns are searched by jsonschema-rs's engine, in linear time. Those it does not support (look-around,
back-references, too large) are skipped, and so is `unevaluatedProperties`, which needs patterns: the tool validates its
arguments itself. The rest is left to `jsonschema`, where each keyword can stop at a deadline: jsonschema-rs has none,
and takes more than a minute for 30 definitions of which each refers to the next twice. Called by `argument_check` and
`argument_report`.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

PATIENCE = 1.0  # seconds of this thread's CPU
MAX_PROBLEMS = 100  # problems
MAX_PATTERN = 2_000  # characters
MAX_SEARCHED = 32_768  # characters of a text; with a pattern of the largest size a search takes 0.2 s
LINEAR = jsonschema_rs.RegexOptions(size_limit=1 << 16, dfa_size_limit=1 << 18)  # bytes, compiled and while searching

NOTHING: Registry[Any] = Registry()  # of a schema that refers to an address nothing is fetched

_until: ContextVar[float] = ContextVar("checked_until", default=float("inf"))
_is_closed: ContextVar[bool] = ContextVar("checked_closed", default=False)
_ON_OTHER_NAMES = {"additionalProperties", "patternProperties", "unevaluatedProperties"}
_SPREAD = {"allOf", "if", "not", "dependentSchemas", "$dynamicRef"}  # describe an object in several places
Check = Callable[..., Any]  # a keyword of jsonschema's: validator, the keyword's value, the instance, the schema


class UncheckableSchema(Exception):
    """A schema that cannot be used: it is invalid, or validation takes too long."""


def problems(
    value: Mapping[str, Any], schema: Mapping[str, Any], *, most: int = MAX_PROBLEMS, is_closed: bool = False
) -> list[ValidationError]:
    """Return the first `most` problems of a value. Raises UncheckableSchema.

    With `is_closed`, a name that a schema neither has nor leaves open is a problem, too, unless the schema may describe
    an object in several places.
    """
    token = _until.set(time.thread_time() + PATIENCE)
    closed = _is_closed.set(is_closed)
    try:
        _is_closed.set(is_closed and not _is_spread(schema))
        return list(islice(_Validator(_ours(schema), registry=NOTHING).iter_errors(value), most))
    except UncheckableSchema:
        raise
    except Exception as error:  # a schema may be anything, and jsonschema raises whatever comes of it
        raise UncheckableSchema(f"{type(error).__name__}: {error}"[:200]) from None
    finally:
        _until.reset(token)
        _is_closed.reset(closed)


@lru_cache(256)
def searcher(pattern: str) -> Callable[[str], bool] | None:
    """Return a function that searches a text for an ECMA 262 pattern in linear time; None if that is not possible."""
    if len(pattern) > MAX_PATTERN:
        return None
    try:
        return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=LINEAR).is_valid
    except jsonschema_rs.ValidationError:
        return None


def _ours(schema: Any) -> Any:
    """Return a schema without `$schema`: jsonschema would validate such a part by that standard, without our limits."""
    if isinstance(schema, Mapping):
        fields = {name: _ours(value) for name, value in schema.items()}
        return {name: value for name, value in fields.items() if name != "$schema" or not isinstance(value, str)}
    return [_ours(part) for part in schema] if isinstance(schema, list) else schema


def _is_spread(schema: Any) -> bool:
    """Return whether a schema may describe one object in several places; pydantic's, for functions, do not."""
    if isinstance(schema, Mapping):
        is_here = schema.keys() & _SPREAD or ("properties" in schema and schema.keys() & {"anyOf", "oneOf", "$ref"})
        return bool(is_here) or any(map(_is_spread, schema.values()))
    return isinstance(schema, list) and any(map(_is_spread, schema))


def _timed(check: Check) -> Check:
    def timed(*arguments: Any) -> Any:
        if time.thread_time() > _until.get():
            raise UncheckableSchema("validation takes too long")
        return check(*arguments)

    return timed


def _pattern(validator: Any, pattern: str, text: Any, schema: Any) -> Iterator[ValidationError]:
    is_searched = validator.is_type(text, "string") and len(text) <= MAX_SEARCHED
    if is_searched and (matches := searcher(pattern)) is not None and not matches(text):
        yield ValidationError(f"{text[:100]!r} does not match {pattern!r}")


def _unique(validator: Any, is_asked: bool, items: Any, schema: Any) -> Iterator[ValidationError]:
    texts = (
        [json.dumps(item, sort_keys=True) for item in items] if is_asked and validator.is_type(items, "array") else []
    )
    if len(set(texts)) < len(texts):
        yield ValidationError("items must be unique")


def _properties(validator: Any, properties: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    yield from _STANDARD["properties"](validator, properties, instance, schema) or ()
    if _is_closed.get() and validator.is_type(instance, "object") and not schema.keys() & _ON_OTHER_NAMES:
        for name in instance.keys() - properties.keys():
            yield ValidationError("is unknown to the tool", path=[name])


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object"):
        for pattern, matches in _name_searchers(patterns, instance).items():
            for name in filter(matches, instance):
                yield from validator.descend(instance[name], patterns[pattern], path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
    patterns = schema.get("patternProperties")
    if not patterns or not validator.is_type(instance, "object"):
        yield from _STANDARD["additionalProperties"](validator, allowed, instance, schema) or ()
        return
    searchers = _name_searchers(patterns, instance).values()
    if len(searchers) < len(patterns):
        return
    unknown = instance.keys() - schema.get("properties", {}).keys()
    extra = {name: instance[name] for name in unknown if not any(matches(name) for matches in searchers)}
    if extra and allowed is False:
        names, regexes = (", ".join(map(repr, sorted(texts))) for texts in (extra, patterns))
        yield ValidationError(f"{names} {'does' if len(extra) == 1 else 'do'} not match any of the regexes: {regexes}")
    else:
        yield from _STANDARD["additionalProperties"](validator, allowed, extra, {}) or ()


def _name_searchers(patterns: Iterable[str], names: Iterable[str]) -> dict[str, Callable[[str], bool]]:
    """Return a search function per pattern, without unsupported patterns."""
    if max(map(len, names), default=0) > MAX_SEARCHED:
        return {}
    return {pattern: matches for pattern in patterns if (matches := searcher(pattern)) is not None}


def _keywords() -> dict[str, Check]:
    checks: dict[str, Check] = {
        **_STANDARD,
        "pattern": _pattern,
        "properties": _properties,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique,
    }
    del checks["unevaluatedProperties"]
    return {name: _timed(check) for name, check in checks.items()}


_STANDARD: Mapping[str, Check] = Draft202012Validator.VALIDATORS
_Validator = extend(Draft202012Validator)
_Validator.VALIDATORS = _keywords()
