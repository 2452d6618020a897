"""One field of a tool call, such as `args.phone`, taken out of all events of the call; the rest of them stays."""

import itertools
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from conversations.core import json_values, letter_case
from conversations.core.errors import Invalid
from conversations.events.types.redaction import LEFT

ROOTS = ("args", "output", "error")
SUMMARY = "result_summary"  # the beginning of an output
MAX_CASES = 8  # of a word: each costs a comparison of every event
SHORTEST = 3  # characters of a text that is looked for elsewhere in the call


class FieldPath(NamedTuple):
    """The names and places that lead to a value: `output.people.0.name`."""

    steps: Sequence[str]

    @classmethod
    def parse(cls, text: str) -> "FieldPath":
        """Read a path. Raises Invalid."""
        steps = text.split(".")
        if steps[0] not in ROOTS or not all(steps) or len(text) > 200:
            raise Invalid(f"must start with {', '.join(ROOTS[:-1])} or {ROOTS[-1]}, such as args.phone", field="field")
        return cls(steps)

    def value(self, body: Any) -> Any:  # any JSON
        """Return what stands there; None for nothing."""
        for step in self.steps:
            if isinstance(body, list) and step.isdecimal() and int(step) < len(body):
                body = body[int(step)]
            elif isinstance(body, dict):
                body = body.get(step)
            else:
                return None
        return body


def without(bodies: Mapping[int, str], field: str) -> dict[int, str]:
    """Return those bodies that say what stands in the field of any of them, without it."""
    path = FieldPath.parse(field)
    parsed = {seq: json_values.parse(body) for seq, body in bodies.items()}
    texts: set[str] = set()
    for body in parsed.values():
        texts |= set(_texts(path.value(body)))
    ordered = sorted(texts, key=len, reverse=True)
    changed = {}
    for seq, body in parsed.items():
        left = _cleaned(body, path, ordered)
        if left != body:
            changed[seq] = json_values.compact(left)
    return changed


def in_json(text: str) -> tuple[str, str]:
    """Return a text as JSON writes it within quotes, with signs of all alphabets as they are, and in ASCII."""
    return json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]


def spellings(text: str) -> set[str]:
    """Return how a stored body may write a text: with letters composed or decomposed, plain or in ASCII, once more
    escaped in a text that is JSON itself."""
    forms = {text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))}
    once = {escaped for form in forms for escaped in in_json(form)}
    return forms | once | {escaped for form in once for escaped in in_json(form)}


def spellings_of_word(word: str) -> set[str]:
    """Return the `spellings` of a word in any case that SQL does not fold, which is that of letters beyond ASCII: each
    of a few such letters by itself; of more, the word in small and large letters, and with large initials."""
    composed = unicodedata.normalize("NFC", word)
    cases = [(letter, *letter_case.other_cases(letter)) for letter in letter_case.fold_letters(composed)]
    if math.prod(map(len, cases)) > MAX_CASES:
        forms = {composed, composed.lower(), composed.upper(), composed.title()}
    else:
        forms = {"".join(letters) for letters in itertools.product(*cases)}
    return {spelling for form in (word, *forms) for spelling in spellings(form)}


def _cleaned(body: Any, path: FieldPath, texts: Sequence[str]) -> Any:
    left = _replaced(_emptied(body, path.steps), texts)
    if not isinstance(left, dict) or left == body:
        return left
    if path.steps[0] == "args" and "args_raw" in left and isinstance(left.get("args"), dict):
        left["args_raw"] = json.dumps(left["args"], ensure_ascii=False)
    if path.steps[0] == "output" and left.get(SUMMARY) is not None:
        left[SUMMARY] = LEFT
    return left


def _emptied(body: Any, steps: Sequence[str]) -> Any:
    """Return a body with the mark where the steps lead."""
    if not steps:
        return LEFT if body is not None else None
    step, rest = steps[0], steps[1:]
    if isinstance(body, list) and step.isdecimal() and int(step) < len(body):
        return [_emptied(item, rest) if at == int(step) else item for at, item in enumerate(body)]
    if isinstance(body, dict) and step in body:
        return body | {step: _emptied(body[step], rest)}
    return body


def _replaced(value: Any, texts: Sequence[str]) -> Any:
    """Return a value without these texts, wherever a text has them: also as JSON within a text writes them."""
    if isinstance(value, str):
        for text in texts:
            for form in (text, *in_json(text)):
                value = value.replace(form, LEFT)
        return value
    if isinstance(value, list):
        return [_replaced(item, texts) for item in value]
    if isinstance(value, dict):
        return {name: _replaced(item, texts) if name not in _NAMES else item for name, item in value.items()}
    return value


_NAMES = frozenset(("event", "type", "name", "agent", "status", "run_id", "tool_call", "tool_call_id", "approval_id"))


def _texts(value: Any) -> Sequence[str]:
    """Return the texts and numbers of a value that are long enough to be looked for elsewhere."""
    if isinstance(value, str):
        return [value] if len(value) >= SHORTEST else []
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, bool) or value is None:
        return []
    return [text] if len(text := json.dumps(value)) > SHORTEST else []
