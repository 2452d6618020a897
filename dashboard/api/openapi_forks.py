"""The section of the API's document about forks."""

from dashboard.api import shapes_forks
from dashboard.api.operations import BEARER, CONVERSATION, FORM, JSON, Json, does, ref

TEXT: Json = {"type": "string"}

TAKEN = (shapes_forks.ToFork, shapes_forks.ToRerun)
GIVEN = (shapes_forks.ForkMade,)


def paths() -> Json:
    """Describe the calls."""
    return {
        "/api/v1/conversations/{id}/forks": {
            "post": does(
                "Fork after an event, as it was or with that message in other words, and run on where asked.",
                {201: shapes_forks.ForkMade},
                path={"id": CONVERSATION},
                body={JSON: ref(shapes_forks.ToFork)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            )
        },
        "/api/v1/runs/{id}/forks": {
            "post": does(
                "Fork where a run began, and have its agent answer the same again.",
                {201: shapes_forks.ForkMade},
                path={"id": TEXT},
                body={JSON: ref(shapes_forks.ToRerun)},
                errors=(400, 403, 404, 409, 413),
                security=[BEARER, FORM],
            )
        },
    }
