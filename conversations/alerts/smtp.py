"""Django's SMTP backend, which reports refused recipients even if others were accepted. Named by `EMAIL_BACKEND`."""

import smtplib
from typing import Any

from django.core.mail.backends import smtp


class _Strict(smtplib.SMTP):
    def sendmail(self, *args: Any, **more: Any) -> dict[str, tuple[int, bytes]]:
        """Send a message to those who are accepted. Raises SMTPRecipientsRefused with the others."""
        if refused := super().sendmail(*args, **more):
            raise smtplib.SMTPRecipientsRefused(refused)
        return refused


class _StrictTls(_Strict, smtplib.SMTP_SSL):
    pass


class EmailBackend(smtp.EmailBackend):
    """Raises SMTPRecipientsRefused if anyone was refused; smtplib only does if everyone was."""

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        """Return the class of connections."""
        return _StrictTls if self.use_ssl else _Strict
