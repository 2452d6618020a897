"""Cancel and delete responses by id. Called by the endpoint of `/v1/responses/{id}`, in a thread.

Deleting removes nothing from the record: the response can no longer be read by its id or continued. Text is removed by
redaction.
"""

from contextlib import suppress

from conversations.access import permissions
from conversations.access.action_context import audited_action, event_author
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, NotAllowed, NotFound
from conversations.core.ids import new_id
from conversations.events import log, payload
from conversations.models import Conversation, Response, Run
from conversations.models.run import OVER
from conversations.runs import stop_and_rerun
from conversations.runs.claims import Body
from conversations.runs.responses import stored_response


def not_there(response: str) -> NotFound:
    """Return the error for a response that does not exist, or that this principal may not see."""
    return NotFound(f"there is no response {payload.clean_text(response[:80])!r}", code="response_not_found")


def cancel(by: Who, response: str) -> None:
    """Cancel the run of a response; a completed response is not changed. Raises `NotFound`, `NotAllowed`."""
    row = _row(response)
    if Run.objects.filter(id=row.run, status__in=OVER).exists():
        permissions.require(by, "control")
        return
    with suppress(Conflict):  # it ended meanwhile
        stop_and_rerun.cancel_run(by, row.run)


def delete(by: Who, response: str) -> None:
    """Make a response unreachable. Raises `NotFound`, `NotAllowed` for somebody else's (except for admins), and
    `Conflict` while it is in progress."""
    with audited_action(by, "delete_response", f"response:{response}", right="respond") as principal:
        conversation = Conversation.objects.locked(_row(response).conversation_id)
        row = _row(response)  # as it is under the lock
        if stored_response.asker_of(row) != str(principal) and permissions.ADMIN.isdisjoint(permissions.roles_of(by)):
            raise NotAllowed("only the requester or an admin can delete a response")
        if not Run.objects.filter(id=row.run, status__in=OVER).exists():
            raise Conflict("this response is in progress: cancel it first", code="response_in_progress")
        writer, by_whom = event_author(principal)
        body: Body = {"event": "response.deleted", "id": new_id(), "response_id": response, **by_whom}
        log.append([log.from_internal(conversation.key, body, writer)])
        correlation = {"conversation": conversation.key, "run": row.run}
        chain.add_entry(principal, "delete_response", f"response:{response}", correlation=correlation)


def _row(response: str) -> Response:
    row = stored_response.row_of(response)
    if row is None:
        raise not_there(response)
    return row
