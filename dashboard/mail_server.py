"""Where e-mail is handed over, read from `SWITCHBOARD_EMAIL_URL`."""

from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class MailServer(NamedTuple):
    """Where e-mail is handed over. No host: nowhere."""

    host: str
    port: int
    user: str
    password: str
    has_tls: bool  # from the start
    has_starttls: bool


def mail_server(email_url: str) -> MailServer:
    """Read a mail server's address, `SWITCHBOARD_EMAIL_URL`. A password is sent over TLS only."""
    parts = urlsplit(email_url)
    has_tls = parts.scheme == "smtps"
    port = parts.port or (465 if has_tls else 587 if parts.password else 25)
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    starts = not has_tls and (bool(password) or port == 587)
    return MailServer(parts.hostname or "", port, user, password, has_tls, starts)
