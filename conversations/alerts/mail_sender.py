"""Send one e-mail, by Django's settings. Synchronous; called in a thread."""

import smtplib
from collections.abc import Mapping, Sequence

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from conversations.alerts import delivery_texts
from conversations.models import AlertDelivery


class RecipientsRefused(Exception):
    """The mail server refused some recipients; the text names them and is for the admin. `accepted` are the others."""

    def __init__(self, refused: Mapping[str, tuple[int, bytes]], accepted: Sequence[str]) -> None:
        answers = (f"{to} ({code} {text.decode(errors='replace')})" for to, (code, text) in refused.items())
        super().__init__(f"refused: {', '.join(answers)}")
        self.accepted = tuple(accepted)


def send(delivery: AlertDelivery, site: str, timeout_s: float) -> None:
    """Send a delivery to those whom no earlier attempt reached; its Message-ID is the same for every attempt. Raises
    RecipientsRefused, OSError or smtplib.SMTPException."""
    if not can_send():
        raise OSError("no mail server: set SWITCHBOARD_EMAIL_URL")
    subject, text = delivery_texts.email_text(delivery, site)
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "localhost"
    recipients, reached = _addresses(delivery.rule.recipients), _addresses(delivery.reached)
    email = EmailMessage(
        subject,
        text,
        to=[address for address in recipients if address not in reached],
        headers={
            "Message-ID": f"<{delivery.id}@{domain}>",
            "Auto-Submitted": "auto-generated",
            "To": ", ".join(recipients),
        },
        connection=get_connection(timeout=timeout_s),
    )
    try:
        email.send()
    except smtplib.SMTPRecipientsRefused as error:
        raise RecipientsRefused(error.recipients, [to for to in email.to if to not in error.recipients]) from None


def _addresses(text: str) -> list[str]:
    return [address.strip() for address in text.split(",") if address.strip()]


def can_send() -> bool:
    """Return whether a mail server is configured."""
    return bool(settings.EMAIL_HOST) or not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend")
