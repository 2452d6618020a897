"""Check arguments against a tool's schema: those that a person wrote against the schema as it was offered, those of a
replay against the current one."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from conversations.core import secret_masking
from conversations.core.errors import Invalid
from conversations.core.json_values import refuse_constant
from conversations.events.payload import check_depth
from conversations.models import ToolSchema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_TEXT = 256 * 1024  # characters
FUNCTION = "function"  # the origin of tools whose arguments the SDK reads: it drops those that it does not know


class InvalidArguments(Invalid):
    """Arguments that do not match the schema. `problems`: what is wrong, by argument name."""

    def __init__(self, message: str, *, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        super().__init__(message, field="arguments")


def read(
    arguments: dict[str, Any] | str, schema_hash: str, *, drops_unknown: bool = False
) -> tuple[dict[str, Any], str]:
    """Return arguments as an object and as the JSON text that will run.

    `drops_unknown`: the tool ignores names that its schema does not have. Raises Invalid that says where and what was
    expected.
    """
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MAX_TEXT:
        raise Invalid(f"must be at most {MAX_TEXT:,} characters", field="arguments")
    value = _object(text)
    if secret_masking.MASK in text:
        raise Invalid(
            f"{secret_masking.MASK} masks a secret that is not in the record: enter it in full", field="arguments"
        )
    stored = ToolSchema.objects.filter(hash=schema_hash).values_list("body", flat=True).first()
    if stored is None:
        raise Invalid("the tool's schema is unknown, so its arguments cannot be edited", field="arguments")
    check(value, json.loads(stored).get("params_json_schema") or {}, drops_unknown=drops_unknown)
    return value, text


def check(value: dict[str, Any], schema: dict[str, Any], *, drops_unknown: bool = False) -> None:
    """Validate an object against a JSON schema; with `drops_unknown`, names that it does not have are problems, too.
    Raises InvalidArguments with the first problem in its message."""
    from conversations.tool_calls.schemas import validation  # late: few commands check arguments

    try:
        problems = sorted(validation.problems(value, schema, is_closed=drops_unknown), key=_place)
    except validation.UncheckableSchema as error:
        raise Invalid(f"the tool's schema cannot be used: {error}", field="arguments") from None
    if problems:
        path = ".".join(map(str, problems[0].absolute_path))
        where = f"argument {path}" if path else "the arguments"
        raise InvalidArguments(f"{where}: {problems[0].message[:300]}", problems=_by_argument(value, problems))


def _by_argument(value: dict[str, Any], problems: Sequence[ValidationError]) -> dict[str, str]:
    """Return the problems by argument, the nearest first; a missing argument is reported as required."""
    by_name: dict[str, str] = {}
    for problem in problems:
        path = [str(part) for part in problem.absolute_path]
        if path:
            inner = f"{'.'.join(path[1:])}: " if path[1:] else ""
            by_name.setdefault(path[0], f"{inner}{problem.message[:300]}")
        elif problem.validator == "required" and isinstance(problem.validator_value, list):
            by_name |= {str(name): "is required" for name in problem.validator_value if name not in value}
    return by_name


def _object(text: str) -> dict[str, Any]:
    try:
        check_depth(text.encode())
        value = json.loads(text, parse_constant=refuse_constant, parse_float=_number)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Invalid("must not contain lone surrogates", field="arguments") from None
    except (ValueError, RecursionError) as error:
        raise Invalid(f"must be a JSON object: {error}", field="arguments") from None
    if not isinstance(value, dict):
        raise Invalid("must be a JSON object", field="arguments")
    return value


def _number(text: str) -> float:
    """Parse a number. Raises for one that would become infinite: the record could not store it."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"number {text[:20]} is too large")
    return number


def _place(error: ValidationError) -> tuple[int, str]:
    return len(error.absolute_path), error.message
