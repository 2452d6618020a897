"""Cancelling and deleting a response by its id. Called by the door of `/v1/responses/{id}`, in a thread.

Deleting takes nothing out of the record, which keeps what was said: the response is reached no more, by its id or as
the one that another goes on from. Words are taken out by redaction.
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
    """Say that there is no such response, or none that this principal may see."""
    return NotFound(f"there is no response {payload.clean_text(response[:80])!r}", code="response_not_found")


def cancel(by: Who, response: str) -> None:
    """Cancel the run of a response; one that is over stays as it is. Raises `NotFound`, `NotAllowed`."""
    row = _row(response)
    if Run.objects.filter(id=row.run, status__in=OVER).exists():
        permissions.require(by, "control")
        return
    with suppress(Conflict):  # it ended meanwhile
        stop_and_rerun.stop(by, row.run)


def delete(by: Who, response: str) -> None:
    """Have a response reached no more. Raises `NotFound`, `NotAllowed` for somebody else's unless an admin does it, and
    `Conflict` while it is under way."""
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
        chain.enter(principal, "delete_response", f"response:{response}", correlation=correlation)


def _row(response: str) -> Response:
    row = stored_response.row_of(response)
    if row is None:
        raise not_there(response)
    return row
