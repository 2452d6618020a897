"""A rule as a person enters it, and its validation. An error names every invalid field."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from conversations.alerts import mail_sender
from conversations.alerts.kinds import GROUPINGS, KINDS
from conversations.core import outbound_address
from conversations.core.errors import Invalid
from conversations.core.hidden_characters import is_clean
from conversations.core.outbound_address import AllowList
from conversations.core.secret_masking import MASK
from conversations.models import AlertRule
from conversations.runs.policy.file_format import seconds_of

FORMS = {"post": "Webhook (JSON)", "slack": "Slack", "email": "E-mail"}
MAX_NAME, MAX_AGENT, MAX_AFTER_S, MAX_RECIPIENTS = 100, 200, 30 * 24 * 3600, 20


class InvalidFields(Invalid):
    """One or more invalid fields: `faults`, one error for each. It reads as the first of them."""

    def __init__(self, faults: Sequence[Invalid]) -> None:
        super().__init__(faults[0].message, field=faults[0].field)
        self.faults = faults


class RuleFields(NamedTuple):
    """A rule as entered. An empty `url` keeps the stored one; `after_s` may be text, such as 15 min."""

    name: str
    kind: str
    form: str
    url: str = ""
    recipients: str = ""
    after_s: int | str | None = None
    agent: str = ""
    grouping: str = "conversation"
    is_enabled: bool = True
    sends_end: bool = False

    def checked(self, allowed: AllowList, stored: AlertRule | None = None) -> "RuleFields":
        """Return the fields as they are stored, without those that the format or kind does not use. Raises
        InvalidFields."""
        faults: list[Invalid] = []
        for field, choices in (("kind", KINDS), ("form", FORMS), ("grouping", GROUPINGS)):
            if getattr(self, field) not in choices:
                faults.append(Invalid(f"must be one of {', '.join(choices)}", field=field))
        name, agent = self.name.strip(), self.agent.strip()
        after_s, url, recipients = 0, "", ""
        with _collected(faults):
            _require_line(name, "name", MAX_NAME, is_required=True)
        with _collected(faults):
            _require_line(agent, "agent", MAX_AGENT)
        with _collected(faults):
            after_s = self._after_s()
        with _collected(faults):
            if self.form == "email":
                recipients = _recipients(self.recipients)
            elif self.form in FORMS:
                url = self.url.strip() or (stored.url if stored else "")
                _require_reachable(url, allowed)
        if faults:
            raise InvalidFields(faults)
        return self._replace(name=name, agent=agent, after_s=after_s, recipients=recipients, url=url)

    def _after_s(self) -> int:
        if self.kind != "approval_waiting":
            return 0
        after_s = _seconds(self.after_s) if isinstance(self.after_s, str) else self.after_s
        if after_s is None:
            raise Invalid("must be given, such as 15 min", field="after_s")
        if not 1 <= after_s <= MAX_AFTER_S:
            raise Invalid("must be from 1 s to 30 d", field="after_s")
        return after_s


@contextmanager
def _collected(faults: list[Invalid]) -> Iterator[None]:
    """Collect an error instead of raising it."""
    try:
        yield
    except Invalid as error:
        faults.append(error)


def _seconds(text: str) -> int | None:
    try:
        return seconds_of(text)
    except Invalid as error:
        raise Invalid(error.message, field="after_s") from None


def masked_url(rule: AlertRule) -> str:
    """Return scheme and host of a webhook: its path and query may be secret."""
    if not rule.url:
        return ""
    url = outbound_address.parse(rule.url)
    return f"{url.scheme}://{url.host_header}/{MASK}"


def _require_line(text: str, field: str, most: int, *, is_required: bool = False) -> None:
    if len(text) > most or (is_required and not text):
        raise Invalid(f"must be {int(is_required)} to {most} characters; got {len(text)}", field=field)
    if not text.isprintable() or not is_clean(text):
        raise Invalid("must not contain control characters", field=field)


def _require_reachable(url: str, allowed: AllowList) -> None:
    """Raise Invalid for an address to which nothing could be sent, whatever its name resolves to."""
    parsed = outbound_address.parse(url)
    try:
        outbound_address.check_literal(parsed, allowed)
    except outbound_address.AddressRefused as error:
        raise Invalid(str(error), field="url") from None


def _recipients(text: str) -> str:
    if not mail_sender.can_send():
        raise Invalid("e-mail requires SWITCHBOARD_EMAIL_URL", field="form")
    addresses = [address.strip() for address in text.replace("\n", ",").split(",") if address.strip()]
    if not 1 <= len(addresses) <= MAX_RECIPIENTS:
        raise Invalid(f"must be 1 to {MAX_RECIPIENTS} addresses, comma-separated", field="recipients")
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError:
            raise Invalid(f"must be e-mail addresses; got {address[:100]!r}", field="recipients") from None
    return ", ".join(addresses)
