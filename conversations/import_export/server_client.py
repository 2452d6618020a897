"""A client of the running server: its one-use token is in the data directory, readable by its owner (mode 0600).

The server writes a new token after each use, and issues a bearer token for `import:NAME`, which is valid until it is
handed back, revoked, or unused for an hour, or until the server ends.
"""

import contextlib
import http.client
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from conversations.core import data_dir as datadir
from conversations.core.errors import (
    Busy,
    Conflict,
    Invalid,
    NotAllowed,
    NotFound,
    NotSignedIn,
    SwitchboardError,
    TooLarge,
    Unavailable,
)
from conversations.core.json_values import text_of
from conversations.events.payload import clean_text
from conversations.import_export.import_lines import ImportedConversation, LineReceiver, imported
from conversations.import_export.recording import encoded
from switchboard.api import connection_to
from switchboard.errors import Unreachable

PUBLISH, REPORT, DOOR = "/api/v1/publish", "/api/v1/report", "/api/v1/door"
KNOCKS = 50  # tries to get in, 0.1 s apart: a server that starts writes the file a moment after it takes the lock
RETRIES = 8  # when the server is busy: 0.1 s, then twice as long each time
HAND_BACK_S = 2.0  # seconds for the server to take a token back; it ends by itself after an hour
TIMEOUT = 600.0  # seconds for one answer; the end of a large import publishes it all

_LOST = (OSError, http.client.HTTPException)
_ERRORS: dict[int, type[SwitchboardError]] = {
    400: Invalid, 401: NotSignedIn, 403: NotAllowed, 404: NotFound, 409: Conflict, 413: TooLarge, 429: Busy,
    503: Unavailable,
}  # fmt: skip


class ServerAccess(NamedTuple):
    """A server's address, a token for it, and, for a token that ends with the server, how to get new ones."""

    url: str
    token: str
    renew: Callable[[], tuple[str, str]] | None = None


class ServerClient:
    """One connection to the server, with a token that is `import:NAME` there."""

    def __init__(self, address: str, token: str, path: str = PUBLISH) -> None:
        self._address, self._token, self._path = address, token, path
        self._connection = _connect(address)
        self._knock_again: Callable[[], ServerClient] | None = None  # how to get another token

    @classmethod
    @contextmanager
    def open(cls, data_dir: Path, name: str) -> Iterator["ServerClient"]:
        """Connect and get a token. Raises Unavailable if the server does not answer."""
        client = _knock(data_dir, name)
        client._knock_again = partial(_knock, data_dir, name)
        try:
            yield client
        finally:
            client._hand_back()
            client.close()

    def _hand_back(self) -> None:
        """Revoke the token, unless the server is gone or takes too long. On a new connection: the server closes those
        that were idle for some seconds."""
        self._connection.close()
        self._connection.timeout = HAND_BACK_S
        with contextlib.suppress(*_LOST):
            self._connection.request(
                "DELETE", _path_at(self._address, DOOR), headers=_headers(self._token, "application/json")
            )
            self._connection.getresponse().read()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def page_of(self, conversation: str) -> str:
        """Return the address of a conversation's page."""
        return f"{self._address}/conversations/{quote(conversation, safe='')}/"

    def intake(self) -> LineReceiver:
        """Start an import, on a connection of its own."""
        return _Upload(self._address, self._token)

    def publish(self, topic: str, payload: dict[str, Any], bus_id: str) -> None:
        """Publish one message; retry while the server is busy (its bus id makes repetitions harmless)."""
        body = _fit({"topic": topic, "payload": payload, "id": bus_id})
        for attempt in range(RETRIES):
            try:
                self._publish(body)
                return
            except Busy:
                time.sleep(0.1 * 2**attempt)
        self._publish(body)

    def _publish(self, body: bytes) -> None:
        """Publish with this token, or with a new one if it expired during a pause of the recording."""
        try:
            self._post(self._path, body)
        except NotSignedIn:
            if self._knock_again is None:
                raise
            self.renew()
            self._post(self._path, body)

    def renew(self) -> tuple[str, str]:
        """Get another token from the server that holds the data directory now; return its address and the token. Raises
        Unavailable."""
        assert self._knock_again is not None
        self.close()
        client = self._knock_again()
        self._address, self._token, self._connection = client._address, client._token, client._connection
        return self._address, self._token

    def _post(self, path: str, body: bytes) -> dict[str, Any]:
        """Send a request and read the answer; tried twice, since a server closes idle connections. The message's bus id
        makes repetitions harmless."""
        try:
            return self._post_once(path, body)
        except _LOST:
            self._connection.close()
        try:
            return self._post_once(path, body)
        except _LOST as error:
            raise Unavailable(
                f"lost the connection to the server at {self._address}: {error or type(error).__name__}"
            ) from None

    def _post_once(self, path: str, body: bytes) -> dict[str, Any]:
        self._connection.request("POST", _path_at(self._address, path), body, _headers(self._token, "application/json"))
        return _answer(self._connection.getresponse())


class _Upload:
    """One import through the server: a chunked request that grows while the file is read."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._connection = _connect(address)
        self._connection.putrequest("POST", _path_at(address, "/api/v1/import"))
        for name, value in _headers(token, "application/x-ndjson").items():
            self._connection.putheader(name, value)
        self._connection.putheader("Transfer-Encoding", "chunked")
        self._connection.endheaders()

    def receive(self, lines: list[bytes]) -> None:
        """Send these lines; waits while the server stores earlier ones."""
        text = b"".join(line + b"\n" for line in lines)
        self._send(b"%x\r\n%s\r\n" % (len(text), text))

    def finish(self) -> list[ImportedConversation]:
        """End the request and return the server's answer. Raises the server's refusal."""
        self._send(b"0\r\n\r\n")
        try:
            answer = _answer(self._connection.getresponse())
        except _LOST as error:
            raise self._unavailable(error) from None
        finally:
            self._connection.close()
        if not isinstance(items := answer.get("items"), list):
            raise _not_switchboard(200)
        return [imported.convert(item) for item in items]

    def discard(self) -> None:
        """Cut off the request: the server discards an import without an end."""
        self._connection.close()

    def _send(self, data: bytes) -> None:
        try:
            self._connection.send(data)
        except OSError as error:
            with contextlib.suppress(*_LOST):
                _answer(self._connection.getresponse())  # it may have said why before it hung up
            raise self._unavailable(error) from None

    def _unavailable(self, error: Exception) -> Unavailable:
        return Unavailable(f"lost the connection to the server at {self._address}; nothing was imported: {error}")


def _knock(data_dir: Path, name: str) -> ServerClient:
    problem: Exception | None = None
    for attempt in range(KNOCKS):
        if attempt:
            time.sleep(0.1)
        try:
            client = ServerClient(*datadir.read_door(data_dir))
            token = text_of(client._post(DOOR, encoded({"name": name})).get("token"))
            if token is None:
                raise _not_switchboard(200)
            client._token = token
        except SwitchboardError as error:
            problem = error  # somebody else used the token, or the file is from a server before
        else:
            return client
    raise Unavailable(f"it cannot be reached: {problem}")


@contextmanager
def access(data_dir: Path, name: str) -> Iterator[ServerAccess]:
    """Yield the address of the server that holds a data directory, and a token for it that is valid inside the block.
    Raises Unavailable."""
    with ServerClient.open(data_dir, name) as client:
        yield ServerAccess(client._address, client._token, partial(_renewed, client))


def _renewed(client: ServerClient) -> tuple[str, str]:
    """Return what `follow` asks for. Raises Unreachable."""
    try:
        return client.renew()
    except Unavailable as error:
        raise Unreachable(error.message) from error


def _connect(address: str) -> http.client.HTTPConnection:
    try:
        return connection_to(address, TIMEOUT)
    except ValueError:
        raise Invalid(f"must be an address like https://switchboard.example.com; got {address!r}") from None


def _path_at(address: str, path: str) -> str:
    """Return the path of a request to a server that may be under a path of its host."""
    return urlsplit(address).path.rstrip("/") + path


def _fit(message: dict[str, Any]) -> bytes:
    """Return a message for the publish endpoint, which refuses lone surrogates."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return clean_text(json.dumps(message, ensure_ascii=False)).encode()


def _headers(token: str, kind: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}", "Content-Type": kind}


def _answer(response: http.client.HTTPResponse) -> dict[str, Any]:
    """Return the server's answer, or raise its error: a proxy's may have any form."""
    text, status = response.read(), response.status
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if 200 <= status < 300:
        if not isinstance(answer, dict):
            raise _not_switchboard(status)
        return answer
    given = answer.get("error") if isinstance(answer, dict) else None
    error = given if isinstance(given, dict) else {}
    kind = _ERRORS.get(status, Unavailable)
    message = text_of(error.get("message")) or f"the server responded with {status}"
    raise kind(message, code=text_of(error.get("code")))


def _not_switchboard(status: int) -> Unavailable:
    return Unavailable(f"the server responded with {status}, but not as Switchboard does")
