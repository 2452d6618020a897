"""A rule as a person enters it, and its validation. Errors name the first invalid field."""

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

FORMS = {"post": "Webhook (JSON)", "slack": "Slack", "email": "E-mail"}
MAX_NAME, MAX_AGENT, MAX_AFTER_S, MAX_RECIPIENTS = 100, 200, 30 * 24 * 3600, 20


class RuleFields(NamedTuple):
    """A rule as entered. An empty `url` keeps the stored one."""

    name: str
    kind: str
    form: str
    url: str = ""
    recipients: str = ""
    after_s: int | None = None
    agent: str = ""
    grouping: str = "conversation"
    is_enabled: bool = True
    sends_end: bool = False

    def checked(self, allowed: AllowList, stored: AlertRule | None = None) -> "RuleFields":
        """Return the fields as they are stored, without those that the format or kind does not use. Raises Invalid."""
        for field, choices in (("kind", KINDS), ("form", FORMS), ("grouping", GROUPINGS)):
            if getattr(self, field) not in choices:
                raise Invalid(f"must be one of {', '.join(choices)}", field=field)
        name, agent = self.name.strip(), self.agent.strip()
        _require_line(name, "name", MAX_NAME, is_required=True)
        _require_line(agent, "agent", MAX_AGENT)
        after_s = self._after_s()
        if self.form == "email":
            recipients = _recipients(self.recipients)
            return self._replace(name=name, agent=agent, after_s=after_s, recipients=recipients, url="")
        url = self.url.strip() or (stored.url if stored else "")
        _require_reachable(url, allowed)
        return self._replace(name=name, agent=agent, after_s=after_s, recipients="", url=url)

    def _after_s(self) -> int:
        if self.kind != "approval_waiting":
            return 0
        if self.after_s is None or not 1 <= self.after_s <= MAX_AFTER_S:
            raise Invalid("must be from 1 s to 30 d", field="after_s")
        return self.after_s


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
