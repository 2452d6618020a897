"""Where the error of what was entered stands: beside its field, else over the form."""

from collections.abc import Sequence

from conversations.core import hidden_characters
from conversations.core.errors import SwitchboardError


def placed(error: SwitchboardError | None, fields: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the sentence over the form, and the one beside each field; all but one of them are empty."""
    beside = dict.fromkeys(fields, "")
    if error is None:
        return "", beside
    if error.field in beside:
        return "", beside | {error.field: hidden_characters.spelled_out(error.sentence_beside)}
    return hidden_characters.spelled_out(error.sentence), beside
