"""People in processes of their own, who decide, stop and lose their right at the same moment.

`Crowd` is the test's side: it says what each does and when. `take_part` is the other, in a process of the nursery: a
deed at a time over a socket, begun at the moment that all of them were told.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from django.db import connection

from conversations.access.accounts import people
from conversations.conversation import control, post_message
from conversations.core.errors import SwitchboardError
from conversations.core.principals import SYSTEM
from conversations.models import Approval, User
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide, overdue_requests
from tests.support import teamwork
from tests.support.cast import cast
from tests.support.nursery import Child, Nursery, Place

SOON = 0.01  # seconds until all of them have heard what to do


class Came(NamedTuple):
    """What came of a deed: its answer or the code and words of its refusal, and how long it took, in seconds."""

    answer: Any
    code: str
    message: str
    took: float


class Crowd:
    """So many processes on one database, idle until told."""

    def __init__(self, nursery: Nursery, place: Place, number: int) -> None:
        address = str(place.home / "crowd")
        self._lines, self._children = [], list[Child]()
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(address)
            door.listen(number)
            door.settimeout(30)
            for _ in range(number):
                self._children.append(nursery.start(place, "take-part", address))
                with door.accept()[0] as channel:
                    self._lines.append(channel.makefile("rw"))

    def run_one(self, deed: str, **facts: Any) -> Any:
        """Have one of them do something; return what it gave. It may not be refused."""
        (came,) = self.at_once((deed, facts))
        assert not came.code, came
        return came.answer

    def at_once(self, *deeds: tuple[str, dict[str, Any]]) -> list[Came]:
        """Have each of them do one of these at the same moment."""
        begin = time.monotonic() + SOON
        for lines, (deed, facts) in zip(self._lines, deeds, strict=False):
            lines.write(json.dumps({"deed": deed, "facts": facts, "begin": begin}) + "\n")
            lines.flush()
        return [Came(*self._answer_of(n)) for n in range(len(deeds))]

    def leave(self) -> None:
        """Hang up; they end."""
        for lines in self._lines:
            lines.close()
        for child in self._children:
            child.wait()

    def _answer_of(self, number: int) -> list[Any]:
        line = self._lines[number].readline()
        assert line, self._children[number].output()
        answer: list[Any] = json.loads(line)
        return answer


def take_part(address: str) -> None:
    """Do what the test says, when it says, until it hangs up."""
    connection.ensure_connection()
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(address)
        with channel.makefile("rw") as lines:
            for line in lines:
                lines.write(json.dumps(_came(**json.loads(line))) + "\n")
                lines.flush()


def _came(deed: str, facts: dict[str, Any], begin: float) -> Came:
    time.sleep(max(0.0, begin - time.monotonic()))
    began = time.monotonic()
    answer, code, message = None, "", ""
    try:
        answer = DEEDS[deed](**facts)
    except SwitchboardError as error:
        code, message = error.code, error.message
    return Came(answer, code, message, time.monotonic() - began)


def _people() -> None:
    cast()
    teamwork.team()


def _ask(key: str) -> str:
    """Bring a run to its question without a worker; return the approval."""
    approval: str = teamwork.ask(_user("otto"), key=key).id
    return approval


def _say(key: str, words: str, to: str) -> None:
    post_message.post(_user("otto"), key, recipient=to, content=words, client_id="1")


def _decide(by: str, approval: str, **answer: Any) -> list[str | None]:
    decided = decide.decide(_user(by), approval, **answer)
    return [decided.decided_by, decided.decision]


def _cancel(run: str) -> None:
    stop_and_rerun.cancel_run(_user("otto"), run)


def _control(verb: str, key: str) -> None:
    control.perform(_user("otto"), verb, key)


def _expire(approval: str) -> bool:
    """Let a question's time be up, and do what is done then."""
    return overdue_requests._expire(Approval.objects.get(id=approval))


def _set_roles(name: str, *roles: str) -> None:
    people.set_roles(SYSTEM, name, roles)


def _lose(name: str) -> None:
    _set_roles(name, "viewer")


def _regain(name: str) -> None:
    _set_roles(name, "approver")


def _user(name: str) -> User:
    return User.objects.get(username=name)


DEEDS: dict[str, Callable[..., Any]] = {
    "people": _people,
    "ask": _ask,
    "say": _say,
    "decide": _decide,
    "cancel": _cancel,
    "control": _control,
    "expire": _expire,
    "lose": _lose,
    "regain": _regain,
}
