"""`GET /api/v1/conversations/{id}/evidence`: a zip that anybody can check without this server."""

import asyncio
from collections.abc import AsyncIterator
from typing import IO

from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from conversations.access import permissions
from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.conversation import conversation_files, conversation_list
from conversations.evidence import bundle
from conversations.evidence.checkpoints import Signer
from dashboard.api.openapi.operations import Operation, endpoint

ZIP = "application/zip"
PIECE = 256 << 10  # bytes


@endpoint(
    get=Operation(
        "Read one conversation as evidence: a zip with proofs, signatures and a verifier that needs Python alone.",
        {200: None},
        files=(ZIP,),
    )
)
def evidence(request: HttpRequest, cid: str) -> HttpResponseBase:
    """Send the zip; it holds salts, so it asks for the right to export. What moved is signed first."""
    target = f"conversation:{cid}"
    permissions.require(request.user, "export", target)
    conversation_list.find(cid)
    name = conversation_files.name_of(cid, "jsonl").removesuffix(".jsonl")
    headers = {"Content-Disposition": f'attachment; filename="{name}-evidence.zip"'}
    if request.method == "HEAD":
        return HttpResponse(content_type=ZIP, headers=headers)
    with audited_action(request.user, "export", target, right="export") as principal:
        chain.enter(principal, "export", target, correlation={"format": "evidence"})
    config = settings.CONFIG
    made = bundle.write(Signer(config.signing_key_path, config.record_name), [cid], config.witness_key_list)
    return StreamingHttpResponse(_sent(made), content_type=ZIP, headers=headers)


async def _sent(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
