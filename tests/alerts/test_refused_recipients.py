"""An e-mail of which the mail server refuses some recipients: the others get it once, the refused ones are named."""

import email
import socketserver
import threading

import pytest

from conversations.alerts import deliveries, handle_alarms
from conversations.alerts.dispatcher import Dispatcher
from conversations.core.database_clock import database_now
from conversations.models import AlertDelivery, AlertRule
from tests.support import alerting
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


class MailServer(socketserver.ThreadingTCPServer):
    """Takes e-mail on loopback, except for recipients in `refused`: 550."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.refused = {"typo@example.com"}
        self.taken: list[tuple[list[str], str]] = []  # whom a message was for, and its text


class _Session(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        recipients: list[str] = []
        self._answer("220 ready")
        for line in self.rfile:
            verb, _, rest = line.decode().strip().partition(":")
            address = rest.strip("<> ")
            if verb.upper() == "RCPT TO" and address in self.server.refused:
                self._answer("550 no such user")
                continue
            if verb.upper() == "RCPT TO":
                recipients.append(address)
            if verb.upper() == "MAIL FROM":
                recipients = []
            if verb.upper() == "DATA":
                self._answer("354 go on")
                self.server.taken.append((recipients, self._text()))
            self._answer("221 bye" if verb.upper() == "QUIT" else "250 ok")

    def _text(self) -> str:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line)
        return b"".join(lines).decode()

    def _answer(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def mail_server(settings):
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        settings.EMAIL_BACKEND = "conversations.alerts.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.server_address[1]
        settings.CONFIG = settings.CONFIG.model_copy(update={"alert_retry_s": 0.05, "alert_timeout_s": 5.0})
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def dispatcher(mail_server):
    thread = Dispatcher("https://switchboard.example")
    thread.start()
    yield thread
    thread.close()


@pytest.fixture
def delivery():
    rule = alerting.rule(form="email", url="", recipients="a@example.com, typo@example.com", secret="")
    return deliveries.enqueue(rule, "test", database_now())


def test_who_was_refused_is_named_and_gets_it_later_alone(mail_server, dispatcher, delivery):
    dispatcher.wake()

    refused = until(lambda: AlertDelivery.objects.filter(attempts__gte=2, status="waiting").exclude(error="").first())
    assert refused.error == "refused: typo@example.com (550 no such user)"
    mail_server.refused.clear()
    delivered = until(lambda: AlertDelivery.objects.filter(status="delivered").first())

    assert delivered.error == ""
    assert [recipients for recipients, _ in mail_server.taken] == [["a@example.com"], ["typo@example.com"]]
    first, second = (email.message_from_string(text) for _, text in mail_server.taken)
    assert first["To"] == second["To"] == "a@example.com, typo@example.com"
    assert first["Message-ID"] == second["Message-ID"]


def test_a_recipient_who_stays_refused_makes_a_dead_letter_that_reaches_the_corrected_address(
    mail_server, dispatcher, delivery, team
):
    AlertDelivery.objects.update(tries_left=1)
    dispatcher.wake()
    until(lambda: AlertDelivery.objects.filter(status="failed", error__contains="typo@example.com").exists())

    AlertRule.objects.update(recipients="a@example.com, right@example.com")
    handle_alarms.retry_delivery(team["admin"], delivery.id)
    until(lambda: AlertDelivery.objects.filter(status="delivered").exists())

    assert [recipients for recipients, _ in mail_server.taken] == [["a@example.com"], ["right@example.com"]]
