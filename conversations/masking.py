"""Keys, tokens and passwords in text: found and covered. The one place that knows how they look.

Log lines go through it (`logs`), and what agents bring into the record: errors, arguments, outputs, what teams
remember. A secret of fewer than four characters is none. Every pattern takes time in proportion to the text.
"""

import re
from typing import Any

MASK = "•••"

_SECRETS = (
    (
        re.compile(
            r"""(?x)
            \b(?:sk|pk|rk|ghp|gho|ghs|github_pat|xox[abprs]|glpat|hf)[-_][A-Za-z0-9_\-]{6,}  # known beginnings
            | \bAKIA[0-9A-Z]{16}\b # an AWS key's id
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
    (re.compile(r"([?&]t=)[\w%.~-]+"), rf"\1{MASK}"),  # a sign-in link of ours
    (re.compile(r"\b(switchboard_(?:session|csrf)=)[^\s;'\"]+"), rf"\1{MASK}"),  # our cookies
    (
        re.compile(
            r"""(?ix)((?:api[_-]?key|secret(?:[_-]?key)?|private[_-]?key|passwd|password|token|authorization)
            \\?["']?\s*[:=]\s*\\?["']?(?:bearer\s+|basic\s+)?)(?!(?:bearer|basic)\s)[^\s"'\\,;&)}]{4,}"""
        ),
        rf"\1{MASK}",
    ),
)
_HINT = re.compile(
    r"""(?ix) (?:sk|pk|rk|ghp|gho|ghs|pat|xox[abprs]|hf)[-_] | akia | aiza | eyj | -----begin | bearer | basic | ://
    | [?&]t= | switchboard_ | api[_-]?key | secret | private[_-]?key | passwd | password | token | authorization"""
)
"""What every one of these has somewhere, with no character in it that JSON escapes: most texts have none of it."""
_FORMS = _SECRETS[:-1]  # without what only a name before it says
_OPAQUE = frozenset({"image_url", "video_url", "file_data", "encrypted_content", "logprobs"})  # data, not words
_JSON_TEXTS = frozenset({"arguments"})
_FIELD = re.compile(r"(?i)(^|_)(api_?key|secret|password|passwd|token|credentials?|authorization|private_?key)($|_)")


def mask(text: str) -> str:
    """Cover what looks like a key, a token or a password; the rest stays as it is."""
    return _forms_covered(text, _SECRETS)


def may_hold(text: str) -> bool:
    """Tell whether a text, or any text inside it where it is JSON, could hold what `mask` covers."""
    return _HINT.search(text) is not None


def has_secret(text: str) -> bool:
    """Tell whether the text holds something that looks like a key, a token or a password."""
    return mask(text) != text


def names_secret(field: str) -> bool:
    """Tell whether a field of this name is meant to hold a secret."""
    return bool(_FIELD.search(field.replace("-", "_")))


def covered(value: Any, field: str = "") -> Any:  # any JSON
    """Cover the secrets of a JSON value: texts under a field that names one, and keys of known forms in any text.

    What people say stays as it is otherwise; the arguments of a call, JSON within a text, lose named secrets too.
    """
    match value:
        case str() if field in _OPAQUE:
            return value
        case str() if names_secret(field):
            return MASK
        case str():
            return mask(value) if field in _JSON_TEXTS else _bare(value)
        case dict():
            return {_bare(name): inner if name in _OPAQUE else covered(inner, name) for name, inner in value.items()}
        case list():
            return [covered(inner, field) for inner in value]
    return value


def _bare(text: str) -> str:
    """Cover the forms that need no name before them; the shortest has nine characters."""
    return text if len(text) < 9 else _forms_covered(text, _FORMS)


def _forms_covered(text: str, forms: tuple[tuple[re.Pattern[str], str], ...]) -> str:
    if _HINT.search(text) is None:
        return text
    for pattern, kept in forms:
        text = pattern.sub(kept, text)
    return text
