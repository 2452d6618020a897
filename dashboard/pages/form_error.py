"""Pages with a form that are shown again after an error: beside the field that it is about, else over the form."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse

from conversations.core import hidden_characters
from conversations.core.errors import NotAllowed, SwitchboardError
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of


def draw(
    request: HttpRequest, template: str, error: SwitchboardError | None, *, entered: dict[str, str],
    fields: Sequence[str], beside: Sequence[str] | None = None, **context: Any,
) -> HttpResponse:  # fmt: skip
    """Render the page with what was entered in its `fields`; `beside`: those that show their error, by default all.
    Raises NotAllowed."""
    if isinstance(error, NotAllowed):
        raise error
    sentence, fault = placed(error, fields if beside is None else beside)
    return render_page(
        request, template, status=status_of(error), error=sentence, fault=fault,
        entered=dict.fromkeys(fields, "") | entered, done=request.GET.get("done", "") if error is None else "",
        **context,
    )  # fmt: skip


def placed(error: SwitchboardError | None, fields: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the sentence over the form, and the one beside each field; all but one of them are empty."""
    beside = dict.fromkeys(fields, "")
    if error is None:
        return "", beside
    if error.field in beside:
        return "", beside | {error.field: hidden_characters.spelled_out(error.sentence_beside)}
    return hidden_characters.spelled_out(error.sentence), beside
