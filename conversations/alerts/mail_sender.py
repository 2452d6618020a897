"""Send one e-mail, by Django's settings. Synchronous; called in a thread."""

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from conversations.alerts import delivery_texts
from conversations.models import AlertDelivery


def send(delivery: AlertDelivery, site: str, timeout_s: float) -> None:
    """Send a delivery; its Message-ID is the same for every attempt. Raises OSError or smtplib.SMTPException."""
    if not can_send():
        raise OSError("no mail server: set SWITCHBOARD_EMAIL_URL")
    subject, text = delivery_texts.email_text(delivery, site)
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].strip("> ") or "localhost"
    email = EmailMessage(
        subject,
        text,
        to=[address.strip() for address in delivery.rule.recipients.split(",")],
        headers={"Message-ID": f"<{delivery.id}@{domain}>", "Auto-Submitted": "auto-generated"},
        connection=get_connection(timeout=timeout_s),
    )
    email.send()


def can_send() -> bool:
    """Return whether a mail server is configured."""
    return bool(settings.EMAIL_HOST) or not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend")
