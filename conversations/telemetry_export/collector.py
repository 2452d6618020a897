"""Send one request to a collector: OTLP/HTTP in protobuf, compressed. No redirects, no proxies."""

import contextlib
import gzip
import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from switchboard.api import connection_to

PATH = "/v1/traces"
MAX_ANSWER = 64 << 10  # bytes
FINAL = (400, 413, 415, 422)  # the request is at fault: sent again it would be refused again


class CollectorAnswer(NamedTuple):
    """A collector's answer: how many spans it rejected, and why; with a status other than 2xx it accepted nothing."""

    status: int
    rejected: int = 0
    words: str = ""
    retry_after_s: float | None = None

    @property
    def is_taken(self) -> bool:
        """Return whether the request was accepted, perhaps without some spans."""
        return 200 <= self.status < 300

    @property
    def is_final(self) -> bool:
        """Return whether it was rejected for good."""
        return self.status in FINAL


class Collector:
    """A connection to a collector. `close`, from any thread, ends a request in progress."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], timeout_s: float) -> None:
        self._endpoint, path = endpoint, urlsplit(endpoint).path.rstrip("/")
        self._path = path if path.endswith(PATH) else path + PATH
        self._headers, self._timeout_s = headers, timeout_s
        self._socket: socket.socket | None = None  # of a request in progress

    def send(self, body: bytes) -> CollectorAnswer:
        """Send one request. Raises OSError or http.client.HTTPException if there was no answer, or none in time."""
        connection = connection_to(self._endpoint, self._timeout_s)
        try:
            connection.connect()
            self._socket = connection.sock  # which `http.client` forgets before the body of an answer that closes it
            headers = {
                "Content-Type": "application/x-protobuf",
                "Content-Encoding": "gzip",
                "User-Agent": "Switchboard",
            }
            connection.request("POST", self._path, gzip.compress(body, 1), {**headers, **self._headers})
            with self._deadline():
                return _answer(connection.getresponse())
        finally:
            self._socket = None
            connection.close()

    @contextlib.contextmanager
    def _deadline(self) -> Iterator[None]:
        """Give the answer in the block the time of one read: `http.client` gives it to each. Raises TimeoutError."""
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            self.close()

        timer = threading.Timer(self._timeout_s, end)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if is_late.is_set():
                raise TimeoutError(f"the answer took longer than {self._timeout_s:g} s")

    def close(self) -> None:
        """End a request in progress."""
        if (wire := self._socket) is not None:
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)


def _answer(response: http.client.HTTPResponse) -> CollectorAnswer:
    body, wait = response.read(MAX_ANSWER), response.headers.get("Retry-After", "")
    if 200 <= response.status < 300 and response.headers.get_content_type() == "text/html":
        raise http.client.HTTPException(f"HTTP {response.status} with a web page, not a collector's answer")
    retry_after_s = float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 6 else None
    if not 200 <= response.status < 300:
        return CollectorAnswer(response.status, words=f"HTTP {response.status}", retry_after_s=retry_after_s)
    with contextlib.suppress(DecodeError):  # an answer in another encoding refuses nothing that we could know of
        partial = ExportTraceServiceResponse.FromString(body).partial_success
        return CollectorAnswer(response.status, max(0, partial.rejected_spans), partial.error_message[:300])
    return CollectorAnswer(response.status)
