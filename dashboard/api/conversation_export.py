"""`GET /api/v1/conversations/{id}/export`: stream a conversation as a file. Linked from the page's menu."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial

from django.http import HttpRequest, StreamingHttpResponse

from conversations.access import permissions
from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.conversation import conversation_files, conversation_list
from conversations.conversation.conversation_files import FORMATS, KINDS, FileFormat
from conversations.core.errors import Invalid
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, one_of

TOGETHER = 64 << 10  # bytes that are sent at once


@endpoint(
    get=Operation(
        "Read one conversation as a file: Markdown, plain text, JSON lines with hashes, or a Chrome trace.",
        {200: None},
        query={"format": TEXT | one_of(FORMATS)},
        files=tuple(kind.media_type for kind in KINDS.values()),
    )
)
def export(request: HttpRequest, cid: str) -> StreamingHttpResponse:
    """Send the file. Texts and traces require the permission to view; JSON lines, which contain salts, the permission
    to export."""
    form = _format(request)
    right = "export" if form == "jsonl" else "view"
    target = f"conversation:{cid}"
    permissions.require(request.user, right, target)
    conversation_list.find(cid)
    if form == "jsonl" and request.method == "GET":
        with audited_action(request.user, "export", target, right=right) as principal:
            chain.add_entry(principal, "export", target, correlation={"format": form})
    may = partial(permissions.require, permissions.principal_of(request.user), right, target)
    parts = conversation_files.pieces(cid, form)
    headers = {
        "Content-Disposition": f'attachment; filename="{conversation_files.name_of(cid, form)}"',
        "X-Accel-Buffering": "no",
    }
    sent = iter(()) if request.method == "HEAD" else _sent(parts, may)
    return StreamingHttpResponse(sent, content_type=KINDS[form].media_type, headers=headers)


def _format(request: HttpRequest) -> FileFormat:
    requested = request.GET.get("format", "jsonl")
    known = next((form for form in FORMATS if form == requested), None)
    if known is None:
        raise Invalid(f"must be one of {', '.join(FORMATS)}", field="format")
    return known


async def _sent(parts: Iterator[bytes], may: "partial[None]") -> AsyncIterator[bytes]:
    """Yield pieces of limited size, each read in a thread, while the caller has the permission."""
    while piece := await asyncio.to_thread(_next, parts, may):
        yield piece


def _next(parts: Iterator[bytes], may: "partial[None]") -> bytes:
    may()
    gathered: list[bytes] = []
    size = 0
    for part in parts:
        gathered.append(part)
        size += len(part)
        if size >= TOGETHER:
            break
    return b"".join(gathered)
