"""`GET /api/v1/conversations/{id}/evidence` and `/api/v1/evidence`: zip files that anyone can verify without this
server."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import IO

from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import urlencode

from conversations.access import permissions
from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.conversation import conversation_files, conversation_list
from conversations.evidence import bundle, witnesses
from conversations.evidence.checkpoints import Signer
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, one_of

ZIP = "application/zip"
PIECE = 256 << 10  # bytes
TARGET = "evidence.zip"  # of audit entries about several conversations


@endpoint(
    get=Operation(
        "Download one conversation as evidence: a zip with proofs, signatures and a verifier that needs only Python.",
        {200: None},
        files=(ZIP,),
    )
)
def evidence(request: HttpRequest, cid: str) -> HttpResponseBase:
    """Send the zip file. It contains salts, so it requires the permission to export. Unsigned changes are signed
    first."""
    target = f"conversation:{cid}"
    permissions.require(request.user, "export", target)
    conversation_list.find(cid)
    name = conversation_files.name_of(cid, "jsonl").removesuffix(".jsonl")
    headers = {"Content-Disposition": f'attachment; filename="{name}-evidence.zip"'}
    if request.method == "HEAD":
        return HttpResponse(content_type=ZIP, headers=headers)
    with audited_action(request.user, "export", target, right="export") as principal:
        chain.add_entry(principal, "export", target, correlation={"format": "evidence"})
    return _answer(request, [cid], headers, target)


@endpoint(
    get=Operation(
        "Download the matching conversations as evidence: at most 200 in one zip.",
        {200: None},
        query={
            "q": TEXT,
            "participant": TEXT,
            "state": TEXT | one_of(bundle.STATES),
        },
        files=(ZIP,),
    )
)
def evidence_of_filter(request: HttpRequest) -> HttpResponseBase:
    """Send the zip file of all conversations in the list with these filters."""
    permissions.require(request.user, "export", TARGET)
    filters = {name: request.GET.get(name, "") for name in ("q", "participant", "state")}
    keys = bundle.keys_matching(**filters)
    headers = {"Content-Disposition": 'attachment; filename="evidence.zip"'}
    if request.method == "HEAD":
        return HttpResponse(content_type=ZIP, headers=headers)
    with audited_action(request.user, "export", TARGET, right="export") as principal:
        query = urlencode({name: value for name, value in filters.items() if value})
        chain.add_entry(principal, "export", TARGET, correlation={"query": query, "conversations": str(len(keys))})
    return _answer(request, keys, headers, TARGET)


def _answer(request: HttpRequest, keys: Sequence[str], headers: Mapping[str, str], target: str) -> HttpResponseBase:
    may = partial(permissions.require, permissions.principal_of(request.user), "export", target)
    config = settings.CONFIG
    show = partial(witnesses.submit_all, config.witness_list, config.witness_key_list, config.alert_allow_list)
    made = bundle.write(Signer(config.signing_key_path, config.record_name), keys, config.witness_key_list, show=show)
    return StreamingHttpResponse(_sent(made, may), content_type=ZIP, headers=headers)


async def _sent(file: IO[bytes], may: "partial[None]") -> AsyncIterator[bytes]:
    """Yield the file in pieces, each read in a thread, while the caller has the permission."""
    with file:
        while piece := await asyncio.to_thread(_next, file, may):
            yield piece


def _next(file: IO[bytes], may: "partial[None]") -> bytes:
    may()
    return file.read(PIECE)
