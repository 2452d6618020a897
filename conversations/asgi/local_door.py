"""The door for the owner's commands on this machine: `POST /api/v1/door` exchanges the one-use token of the data
directory's door.json for a bearer token; `DELETE` ends that."""

import json
import secrets
from pathlib import Path

import msgspec

from conversations.asgi import route
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core import data_dir as datadir
from conversations.core.errors import Invalid, NotSignedIn


class _TokenRequest(msgspec.Struct):
    name: str


_decoder = msgspec.json.Decoder(_TokenRequest)


class LocalDoorEndpoint(route.Route):
    """The route. A user who can read the 0600 file owns the data and may write to it."""

    methods = ("POST", "DELETE")

    def __init__(self, data_dir: Path, authenticator: TokenAuthenticator) -> None:
        self._data_dir, self._authenticator = data_dir, authenticator
        self._url = ""
        self._secret = ""

    def open(self, url: str) -> None:
        """Write the address and the token to the file."""
        self._url = url
        self._secret = secrets.token_urlsafe(32)
        datadir.write_door(self._data_dir, url, self._secret)

    async def handle(self, scope: route.Scope, receive: route.Receive) -> tuple[int, bytes]:
        """Return `{"token"}` for the principal `import:NAME`; the one-use token is consumed and a new one written. A
        DELETE with that bearer token ends it: `{}`."""
        secret = route.bearer(scope)
        if scope["method"] == "DELETE":
            if not self._authenticator.take_back(secret):
                raise NotSignedIn("send a token that this endpoint issued")
            return 200, b"{}"
        body = await route.body(scope, receive, 4096)
        if not self._secret or not self._is_ours(secret):
            raise NotSignedIn("this request requires the one-use token in the data directory's door.json")
        request = _read(body)
        self.open(self._url)
        return 200, json.dumps({"token": self._authenticator.give(request.name)}).encode()

    def _is_ours(self, secret: str) -> bool:
        return secrets.compare_digest(secret.encode(), self._secret.encode())


def _read(body: bytes) -> _TokenRequest:
    try:
        return _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f'the body must be JSON {{"name"}}: {error}') from None
