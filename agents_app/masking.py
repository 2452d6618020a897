"""Keys and tokens in text: found and covered. Called for errors that reach the record and for what teams remember."""

import re

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
_FIELD = re.compile(r"(?i)(^|_)(api_?key|secret|password|passwd|token|credentials?|authorization|private_?key)($|_)")


def mask(text: str) -> str:
    """Cover what looks like a key, a token or a password; the rest stays as it is."""
    return _NAMED.sub(rf"\1{MASK}", _FORMS.sub(MASK, text))


def has_secret(text: str) -> bool:
    """Tell whether the text holds something that looks like a key, a token or a password."""
    return mask(text) != text


def names_secret(field: str) -> bool:
    """Tell whether a field of this name is meant to hold a secret."""
    return bool(_FIELD.search(field))
