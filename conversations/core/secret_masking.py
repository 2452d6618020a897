"""Find and mask keys, tokens and passwords in text. The only place that knows how they look.

Used for log lines (`log_format`) and for what agents bring into the record: errors, arguments, outputs, what teams
remember. A secret has at least four characters. Every pattern takes linear time.
"""

import json
import re
from collections.abc import Callable
from typing import Any

MASK = "•••"
_ADDRESS = re.compile(
    r"""\('[^']*', \d+\)|"[^"]*"|(?<!\w)'[^']*'|(?:[\w.-]+|\[[\da-f:]+\]):\d{2,5}\b|\b\d+(?:\.\d+){3}\b|://\S+""",
    re.IGNORECASE,
)

_SECRETS = (
    (
        re.compile(
            r"""(?x)
            \b(?:sk|pk|rk|ghp|gho|ghs|ghu|ghr|github_pat|xox[abeoprs]|xapp|glpat|hf|whsec)[-_][A-Za-z0-9_\-]{6,} # known
            | \bsb_[\w\-]{20,} # a token of ours
            | \b(?:npm_|do[opr]_v1_|hv[bs]\.|shp(?:at|ss|ca)_|lin_api_|sbp_|dckr_pat_|GOCSPX-|ya29\.)[\w\-]{16,}
            | \bpyp[i]-AgE[\w\-]{13,}
            | \bSG\.[\w\-]{16,}\.[\w\-]{16,} # SendGrid
            | \b[0-9]{6,12}:AA[\w\-]{30,} # a Telegram bot
            | \bhooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{12,}
            | \bAGE-SECRET-KEY-1[0-9A-Z]{20,}
            | \b(?:AKIA|(?-i:ASIA))[0-9A-Z]{16}\b # an AWS key's id
            | \bAIza[0-9A-Za-z_\-]{30,} # a Google key
            | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]* # a JSON web token
            | -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
            """,
            re.DOTALL | re.IGNORECASE,
        ),
        MASK,
    ),
    # "the bearer of this letter" stays: a token has a digit or a sign in it, or is long
    (re.compile(r"(?i)\b(bearer\s+)(?=[\w.~+/=-]*[\d_~+/=]|\S{20})[\w.~+/=-]{8,}"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(basic\s+)[A-Za-z0-9+/]{16,}=*"), rf"\1{MASK}"),
    (re.compile(r"(?<=://)([^\s/:@'\"]*):[^\s/@'\"]+@"), rf"\1:{MASK}@"),  # a password in an address
    # a sign-in link of ours, and signed addresses
    (re.compile(r"(?i)([?&](?:t|sig|x-amz-signature)=)[\w%.~+/-]+"), rf"\1{MASK}"),
    (re.compile(r"\b(switchboard_(?:session|csrf)=)[^\s;'\"]+"), rf"\1{MASK}"),  # our cookies
    (
        re.compile(r"(?i)\b((?:set-)?cookie\\?[\"']?\s*:\s*\\?[\"']?)(?=[^\s=;\"']{1,100}=)[^\r\n\"'\\]{4,}"),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            r"""(?ix)((?:(?:api|access|account|shared|private)[_-]?(?:access[_-]?)?key|secret(?:[_-]?(?:access[_-]?)?key)?
            |passwd|password|\bpwd(?!\\?["']?\s*[:=]\s*\\?["']?[/~.$])|token|authorization)  # PWD=/home is none
            \\?["']?\s*[:=]\s*\\?["']?(?:bearer\s+|basic\s+)?)(?!(?:bearer|basic)\s)[^\s"'\\,;&)}]{4,}"""
        ),
        rf"\1{MASK}",
    ),
)
_PREFIXES = "sk pk rk ghp gho ghs ghu ghr pat xapp hf whsec"
_KEYS = "api access account shared private"
_BEGINNINGS = """
xox sb_ npm_ -age dop_v1_ doo_v1_ dor_v1_ hvs. hvb. shpat_ shpss_ shpca_ lin_api_ sbp_ gocspx- ya29. sg. :aa
hooks.slack age-secret akia asia aiza eyj -----begin bearer basic :// ?t= &t= sig= signature= switchboard_ cookie
secret passwd password pwd token authorization
"""
# What each form has somewhere, case folded, with no character in it that JSON escapes: most texts have none of them.
_HINTS = (
    *(f"{prefix}{mark}" for prefix in _PREFIXES.split() for mark in "-_"),
    *(f"{name}{mark}key" for name in _KEYS.split() for mark in ("", "-", "_")),
    *_BEGINNINGS.split(),
)
_FORMS = _SECRETS[:-1]  # without what only a name before it says
_OPAQUE = frozenset({"image_url", "video_url", "file_data", "encrypted_content", "logprobs"})  # data, not words
_JSON_TEXTS = frozenset({"arguments", "args_raw"})
_NOUNS = (
    "(?:api|access|account|shared|private)_?key|secret|password|passwd|passphrase|pwd|token|credential|authorization"
)
_FIELD = re.compile(f"(?i)(^|_)({_NOUNS}|credentials)($|_)")
_SECRET_VALUE = re.compile(f"(?i)(?:^|_)(?:{_NOUNS})s?$")  # all of the value is secret: of one, or of several
_NAMED = re.compile(f"(?i){_NOUNS.replace('_?', '[_-]?')}")  # what each such name has, in any spelling
# What each such name has, case folded: most texts have none, and looking for that is quicker than a search in any case.
# Without an i: the expression takes two other letters for it (U+0130, U+0131), case folding does not.
_NAME_HINTS = ("key", "secret", "passw", "passphrase", "pwd", "token", "credent", "author")
_COUNTED = re.compile(r"(?i)tokens$")  # a number there is a count
_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions"})  # fields of a JSON schema, by name
_SCHEMA_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_SCHEMA_FIELDS = frozenset({"$ref", "anyOf", "oneOf", "allOf", "enum", "description", "title"})
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # where a name in camelCase begins a word


def mask(text: str) -> str:
    """Mask what looks like a key, a token or a password; the rest stays as it is."""
    return _forms_covered(text, _SECRETS)


def may_hold(text: str) -> bool:
    """Return whether a text, or any text inside it if it is JSON, could contain what `mask` masks."""
    folded = text.casefold()  # as `re.IGNORECASE` reads it: the Kelvin sign is a k, the long s an s
    return _holds_any(folded, _HINTS)


def may_name_secret(text: str) -> bool:
    """Return whether a text, if it is JSON, could have a field that names a secret."""
    return _holds_any(text.casefold(), _NAME_HINTS) and bool(_NAMED.search(text))


def _holds_any(folded: str, hints: tuple[str, ...]) -> bool:
    return any(hint in folded for hint in hints)


def has_secret(text: str) -> bool:
    """Return whether the text holds something that looks like a key, a token or a password."""
    return mask(text) != text


def names_secret(field: str) -> bool:
    """Return whether a field of this name is meant to hold a secret."""
    return bool(_FIELD.search(_in_snake_case(field)))


def mask_json(value: Any, field: str = "") -> Any:  # any JSON
    """Mask the secrets in a JSON value: texts and numbers in fields that name a secret and below them, and keys of
    known forms in any text.

    Other text stays as it is; the arguments of a call, which are JSON within a text, are masked as `mask_json_text`
    does. Counts of tokens and JSON schemas of secrets are none.
    """
    return _by_field(value, field, _text_masked)


def mask_json_text(text: str) -> str:
    """Mask a text as `mask` does; if it is JSON, also numbers, objects and lists in fields that name a secret."""
    if may_name_secret(text):
        try:
            value = json.loads(text)
            covered = _by_field(value, "", lambda inner, field: inner)
        except (ValueError, RecursionError):  # no JSON, or none that an event holds
            return mask(text)
        if covered != value:
            text = json.dumps(covered, ensure_ascii="\\u" in text)  # half of a surrogate pair stays an escape
    return mask(text)


def _by_field(value: Any, field: str, mask_text: Callable[[str, str], str]) -> Any:  # any JSON
    """Mask what is in or below a field that names a secret; texts elsewhere, and such a field's own, by `mask_text`."""
    if field and not isinstance(value, str) and _SECRET_VALUE.search(name := _in_snake_case(field)):
        return _covered(value, keeps_numbers=bool(_COUNTED.search(name)))
    match value:
        case str():
            return mask_text(value, field)
        case dict() if field in _SCHEMAS and all(map(_is_schema, value.values())):
            return {_bare(name): _by_field(inner, "", mask_text) for name, inner in value.items()}
        case dict():
            return {
                _bare(name): inner if name in _OPAQUE else _by_field(inner, name, mask_text)
                for name, inner in value.items()
            }
        case list():
            return [_by_field(inner, field, mask_text) for inner in value]
    return value


def _text_masked(text: str, field: str) -> str:
    name = _in_snake_case(field)
    if _SECRET_VALUE.search(name):
        return str(_covered(text, keeps_numbers=bool(_COUNTED.search(name))))
    if field in _OPAQUE:
        return text
    if _FIELD.search(name):
        return MASK
    return mask_json_text(text) if field in _JSON_TEXTS else _bare(text)


def _in_snake_case(field: str) -> str:
    return _HUMP.sub("_", field.replace("-", "_"))


def _covered(value: Any, *, keeps_numbers: bool) -> Any:  # any JSON
    """Mask every text and number of a value; `keeps_numbers`: those that are counts stay."""
    match value:
        case dict():
            return {_bare(name): _covered(inner, keeps_numbers=keeps_numbers) for name, inner in value.items()}
        case list():
            return [_covered(inner, keeps_numbers=keeps_numbers) for inner in value]
        case bool() | None:
            return value
    is_number = not isinstance(value, str) or value.isdecimal()
    return value if is_number and keeps_numbers else MASK


def _is_schema(value: Any) -> bool:  # any JSON
    if not isinstance(value, dict):
        return isinstance(value, bool)
    kinds = value.get("type")
    is_typed = isinstance(kinds, list) or (isinstance(kinds, str) and kinds in _SCHEMA_TYPES)
    return is_typed or not value or not _SCHEMA_FIELDS.isdisjoint(value)


def _bare(text: str) -> str:
    """Mask the forms that need no name in front; the shortest has nine characters."""
    return text if len(text) < 9 else _forms_covered(text, _FORMS)


def _forms_covered(text: str, forms: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    if not may_hold(text):
        return text
    for pattern, replacement in forms:
        text = pattern.sub(replacement, text)
    return text


def unaddressed(text: str) -> str:
    """Remove addresses and quoted names: callers who are not signed in need not know them; the log contains them."""
    return _ADDRESS.sub("…", text)
