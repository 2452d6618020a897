"""Keys and tokens in text: found and covered. Called for errors that reach the record, for what teams remember and for
what clients ask (the responses door)."""

import re
from typing import Any

MASK = "•••"

_FORMS = re.compile(
    r"""(?ix)
    \b(?:sk|pk|rk|ghp|gho|ghs|github_pat|xox[abprs]|glpat|hf)[-_][A-Za-z0-9_\-]{8,}  # keys with a known beginning
    | \bAKIA[0-9A-Z]{16}\b                                                           # an AWS key's id
    | \bAIza[0-9A-Za-z_\-]{30,}                                                      # a Google key
    | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*                   # a JSON web token
    | (?<=bearer\s)\s*[A-Za-z0-9._~+/\-]{8,}=*
    | (?<=basic\s)\s*[A-Za-z0-9+/]{16,}=*
    | (?<=://)[^\s/:@]*:[^\s/@]+(?=@)                                                # a password in an address
    | -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    """,
    re.DOTALL,
)
_NAMED = re.compile(
    r"""(?ix)((?:api[_-]?key|secret|passwd|password|access[_-]?token|auth[_-]?token|client[_-]?secret)\\?["']?\s*[:=]\s*\\?["']?)
    ([^\s"'\\,;&}]{4,})"""
)
_OPAQUE = frozenset({"image_url", "video_url", "file_data", "encrypted_content", "logprobs"})  # data, not words
_JSON_TEXTS = frozenset({"arguments"})
_FIELD = re.compile(r"(?i)(^|_)(api_?key|secret|password|passwd|token|credentials?|authorization|private_?key)($|_)")


def mask(text: str) -> str:
    """Cover what looks like a key, a token or a password; the rest stays as it is."""
    return _NAMED.sub(rf"\1{MASK}", _FORMS.sub(MASK, text))


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
            return mask(value) if field in _JSON_TEXTS else _FORMS.sub(MASK, value)
        case dict():
            return {
                _FORMS.sub(MASK, name): inner if name in _OPAQUE else covered(inner, name)
                for name, inner in value.items()
            }
        case list():
            return [covered(inner, field) for inner in value]
    return value
