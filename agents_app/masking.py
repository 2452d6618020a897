"""Keys and tokens in text, found and covered: the record's own `conversations.masking`, by the name agents know."""

from conversations.masking import MASK, has_secret, mask, names_secret

__all__ = ["MASK", "has_secret", "mask", "names_secret"]
