"""`POST /api/v1/door`: the owner's commands trade the data directory's one-use token for a bearer."""

import json
import secrets
from pathlib import Path

import msgspec

from conversations import datadir
from conversations.doors import http
from conversations.doors.bearers import Bearers
from conversations.errors import Invalid, MethodNotAllowed, NotSignedIn, SwitchboardError


class _Asked(msgspec.Struct):
    name: str


class KeyDoor:
    """The route. Whoever can read the 0600 file is the owner of the data, and may write into it."""

    def __init__(self, data_dir: Path, bearers: Bearers) -> None:
        self._data_dir, self._bearers = data_dir, bearers
        self._url = ""
        self._secret = ""

    def open(self, url: str) -> None:
        """Write address and token to the file."""
        self._url = url
        self._secret = secrets.token_urlsafe(32)
        datadir.write_door(self._data_dir, url, self._secret)

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Answer `{"token"}` for the principal `import:NAME`; the one-use token is spent and a new one written."""
        try:
            given = http.bearer(scope)
            if scope["method"] != "POST":
                raise MethodNotAllowed(["POST"])
            body = await http.body(scope, receive, 4096)
            if not self._secret or not self._is_ours(given):
                raise NotSignedIn("expected the one-use token of the data directory's door.json")
            asked = _read(body)
            self.open(self._url)
            token = self._bearers.give(asked.name)
        except SwitchboardError as error:
            await http.refuse(send, error)
        else:
            await http.answer(send, 200, json.dumps({"token": token}).encode())

    def _is_ours(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._secret.encode())


def _read(body: bytes) -> _Asked:
    try:
        return msgspec.json.decode(body, type=_Asked)
    except msgspec.MsgspecError as error:
        raise Invalid(f'expected {{"name"}} as JSON: {error}') from None
