"""The errors of the record, one tree. Endpoint, view, socket and command each answer them in their own words.

They are the client library's too: every error with a status from 400 to 413 is also a `switchboard.Refused`, so that a
publisher catches the same errors from every bus.

SwitchboardError            code, message, field?
├── Invalid                 the input is wrong: where, what was expected (400; 422 for a form)
│   └── UnknownPosition     a reader's place that the bus never gave out
├── TooLarge                over a limit of §3.1 (413)
├── NotSignedIn             nobody is there (401)
├── NotAllowed              the principal may not (403)
├── NotFound                no such thing (404)
├── MethodNotAllowed        the address has other methods (405)
├── Conflict                somebody or something was first (409)
│   ├── IdReused            the same id with another payload
│   ├── TooLate             it is so already: who did it, what and when
│   └── Fenced              a worker writes for a run that it no longer holds
├── Busy                    too much is in progress: try again later (429)
└── Unavailable             cannot be done now (503)
"""

import re
from collections.abc import Iterable

import switchboard
from switchboard import BusError, Refused

RETRY_STATUSES = (429, 503)  # the same request may work later
PREDICATES = ("must ", "is ")  # how a message about one field begins: the field itself is its subject


class SwitchboardError(BusError):
    """Base of all: `code` for programs, `message` for people, `field` where one field is at fault."""

    status = 500
    is_recorded = False  # of a refusal: whether the audit log has it already

    def as_dict(self) -> dict[str, str]:
        """Return the body of §3.6: `{"code", "message", "field"?}`."""
        body = {"code": self.code, "message": self.message}
        return body | {"field": self.field} if self.field else body

    @property
    def full_message(self) -> str:
        """Return the message, with the field's name in front if it is a predicate ("must be …")."""
        if self.field is None or not self.message.startswith(PREDICATES):
            return self.message
        name = self.field if "." in self.field else self.field.removesuffix("_s").replace("_", " ")
        return f"{name} {self.message}"

    @property
    def sentence(self) -> str:
        """Return the message as pages show it: a whole sentence, with people's names without `user:`."""
        return self._as_sentence(self.full_message)

    @property
    def sentence_beside(self) -> str:
        """Return the sentence for a place beside the field, whose label is its subject: "Must be a number."."""
        return self._as_sentence(self.message)

    @staticmethod
    def _as_sentence(text: str) -> str:
        is_principal = re.match(r"\w+:\w", text) is not None  # a name stays as it is written
        text = text.removeprefix("user:") if is_principal else text[:1].upper() + text[1:]
        return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def as_predicate(message: str) -> str:
    """Return a message of pydantic in the form of ours: "Input should be a valid number, unable to parse string as a
    number" is "must be a number"."""
    message = re.sub(r"^(?:Input|String|List|Tuple|Dictionary|Data|Value) should ", "must ", message)
    message = re.sub(r", unable to (?:parse|interpret) .*$", "", message)
    message = message.replace("must be a valid ", "must be a ").replace("a integer", "an integer")
    known = {"Field required": "is required", "Extra inputs are not permitted": "is not a known field"}
    return known.get(message, message.removeprefix("Value error, "))


def reason_of(error: Exception, file: object = "") -> str:
    """Return what is wrong, for a sentence of a command's own: of files what the system says, without its number. The
    file's name comes first unless it is the `file` that the sentence names already.
    """
    if isinstance(error, UnicodeDecodeError):
        return f"must be UTF-8 text; byte {error.start + 1:,} is not"
    if isinstance(error, OSError) and error.strerror:
        other = error.filename is not None and str(error.filename) != str(file)
        return f"{error.filename}: {error.strerror}" if other else error.strerror
    return str(error)


class Invalid(SwitchboardError, Refused):
    """Wrong input: says where and what was expected."""

    status, code = 400, "invalid"


class UnknownPosition(Invalid, switchboard.UnknownPosition):
    """A reader's position that the bus never gave out (§3.2)."""

    code = "unknown_position"


class TooLarge(SwitchboardError, Refused):
    """More than a limit of §3.1 allows."""

    status, code = 413, "too_large"


class NotSignedIn(SwitchboardError, Refused):
    """No session and no token."""

    status, code = 401, "not_signed_in"


class NotAllowed(SwitchboardError, Refused):
    """Signed in, without the right."""

    status, code = 403, "not_allowed"


class NotFound(SwitchboardError, Refused):
    """No such thing, or not for this principal."""

    status, code = 404, "not_found"


class MethodNotAllowed(SwitchboardError, Refused):
    """The address has other methods; `allowed` says which."""

    status, code = 405, "method_not_allowed"

    def __init__(self, methods: Iterable[str]) -> None:
        self.allowed = ", ".join(methods)
        super().__init__(f"method must be {self.allowed}")


class Conflict(SwitchboardError, Refused):
    """Somebody or something was first."""

    status, code = 409, "conflict"


class IdReused(Conflict, switchboard.IdReused):
    """An id came again with another payload (§3.6)."""

    code = "id_reused"


class OtherPerson(Conflict):
    """A page of one person asks in a browser in which another one has signed in since."""

    code = "other_person"

    def __init__(self, opened_by: str, signed_in: str) -> None:
        super().__init__(
            f"This page was opened by {opened_by}, but {signed_in} has signed in in this browser since, so nothing was "
            "done. Reload the page."
        )


class TooLate(Conflict):
    """Someone already did it, or the opposite: `did` is what, `by` a principal, `at` ISO 8601; empty if unknown.

    `seq` is the event that shows it, if there is one; as text, like the others.
    """

    def __init__(self, message: str, *, code: str, did: str = "", by: str = "", at: str = "", seq: int = 0) -> None:
        super().__init__(message, code=code)
        self.first = {"did": did, "by": by, "at": at} | ({"seq": str(seq)} if seq else {})

    def as_dict(self) -> dict[str, str]:
        """Return the error with who was first."""
        return super().as_dict() | self.first


class Fenced(Conflict):
    """A worker's run was taken from it (law F): it writes nothing more of it."""

    code = "fenced"


class Busy(SwitchboardError):
    """Too much is in progress, such as writes, readers or imports: the same request may work later."""

    status, code = 429, "busy"


class Unavailable(SwitchboardError):
    """Cannot be done now."""

    status, code = 503, "unavailable"
