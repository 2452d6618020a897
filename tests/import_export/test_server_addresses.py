"""`follow` at the server that SWITCHBOARD_URL names: behind TLS, under a path, with a token that may not report, and
behind a proxy that answers in its place."""

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from conversations.core import data_dir
from conversations.core.errors import NotAllowed, NotFound, SwitchboardError, Unavailable
from conversations.import_export import server_client
from conversations.import_export.server_client import REPORT, ServerClient
from switchboard import api
from tests.support.answering import Answer, Request, answering

REFUSAL = json.dumps({"error": {"code": "x", "message": "no"}}).encode()
PAYLOAD = {"event": "log", "conversation_id": "c", "text": "x"}


@contextmanager
def serving(status: int, body: bytes = REFUSAL) -> Iterator[tuple[str, list[str]]]:
    """Answer everything alike; yield the address, and the paths that were asked."""
    paths: list[str] = []

    def answer(request: Request) -> Answer:
        paths.append(request.path)
        return Answer(status, body)

    with answering(answer) as address:
        yield address, paths


def test_an_address_of_a_server_behind_tls_is_taken():
    client = ServerClient("https://switchboard.example/team", "t", REPORT)

    assert isinstance(client._connection, http.client.HTTPSConnection)


def test_a_server_under_a_path_is_asked_there():
    with serving(200) as (address, paths):
        ServerClient(f"{address}/team/", "t", REPORT).publish("stream:c", PAYLOAD, "1")

    assert paths == [f"/team{REPORT}"]


@pytest.mark.parametrize(("status", "error"), [(403, NotAllowed), (404, NotFound)])
def test_a_refusal_that_stays_is_not_taken_for_an_absent_server(status: int, error: type[SwitchboardError]):
    with serving(status) as (address, _), pytest.raises(error):
        ServerClient(address, "t", REPORT).publish("stream:c", PAYLOAD, "1")


@pytest.mark.parametrize(
    "body", [b"<html>Sign in</html>", b"[]", b"", b"[" * 100_000], ids=["page", "list", "none", "deep"]
)
@pytest.mark.parametrize("status", [200, 201])
def test_a_success_that_is_not_switchboards_stores_nothing(status: int, body: bytes):
    with (
        serving(status, body) as (address, _),
        pytest.raises(Unavailable, match=f"responded with {status}, but not as"),
    ):
        ServerClient(address, "t", REPORT).publish("stream:c", PAYLOAD, "1")


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"{}"])
def test_an_import_that_is_answered_with_a_page_has_not_happened(body: bytes):
    with serving(200, body) as (address, _):
        upload = ServerClient(address, "t").intake()
        upload.receive([b"{}"])
        with pytest.raises(Unavailable, match="responded with 200, but not as"):
            upload.finish()


@pytest.mark.parametrize(
    "body", [b'{"error":"Bad gateway"}', b'{"error":[1]}', b'{"error":{"message":7}}', b'"no"', b"[" * 100_000],
    ids=["text", "list", "number", "no object", "deep"],
)  # fmt: skip
@pytest.mark.parametrize(("status", "error"), [(502, Unavailable), (403, NotAllowed)])
def test_an_error_of_a_proxy_is_an_error_whatever_its_form(status: int, error: type[SwitchboardError], body: bytes):
    with serving(status, body) as (address, _), pytest.raises(error):
        ServerClient(address, "t", REPORT).publish("stream:c", PAYLOAD, "1")


def test_a_program_that_took_the_servers_port_is_no_server(tmp_path, monkeypatch):
    monkeypatch.setattr(server_client, "KNOCKS", 1)
    with serving(200, b"{}") as (address, _):
        data_dir.write_door(tmp_path, address, "once")
        with pytest.raises(Unavailable, match="cannot be reached"), ServerClient.open(tmp_path, "x"):
            pass


def test_certificates_are_verified_whatever_http_client_does_by_default(monkeypatch):
    monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)

    context = api.connection_to("https://switchboard.test", 1.0)._context

    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
