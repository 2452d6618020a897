"""A small HTTP server of a test's own, in a thread: a function answers each request."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """What a client asked; the names of headers are in any case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """What it is answered."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"


@contextmanager
def answering(answer: Callable[[Request], Answer]) -> Iterator[str]:
    """Answer on loopback in the block, each request on a connection of its own; yield the server's address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, kind = answer(Request(self.command, self.path, self.headers, self._body()))
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_DELETE = do_GET

        def _body(self) -> bytes:
            if self.headers["Transfer-Encoding"] != "chunked":
                return self.rfile.read(int(self.headers["Content-Length"] or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
