"""A proxy on loopback between an agent and a server: it can be away, hang, or cut the answers off."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from tests.support.live import free_port

State = Literal["there", "cutting", "hanging", "away"]


class CuttingProxy:
    """`there` passes all on; `cutting` passes requests on and ends the connection instead of each answer; `hanging`
    accepts and passes nothing on; `away` is not listening."""

    def __init__(self, upstream: int) -> None:
        self.port = free_port()
        self.cut = 0  # answers
        self.connections = 0  # accepted so far
        self._upstream = upstream
        self._state: State = "away"
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Where the agent finds it."""
        return f"http://127.0.0.1:{self.port}"

    def be(self, state: State) -> None:
        """Change; connections of before are ended."""
        with self._lock:
            self._state = state
            ended, self._open = self._open, set()
        if state == "away":
            self._stop_listening()
        elif self._listener is None:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        for socket_ in ended:
            _end(socket_)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            _end(self._listener)
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                agent, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(agent)
                self.connections += 1
            agent.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._connect, args=(agent,), daemon=True).start()

    def _connect(self, agent: socket.socket) -> None:
        if self._state == "hanging":
            return
        server = socket.create_connection(("127.0.0.1", self._upstream))
        with self._lock:
            self._open.add(server)
        threading.Thread(target=self._pass_on, args=(server, agent, True), daemon=True).start()
        self._pass_on(agent, server, False)

    def _pass_on(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer and self._state == "cutting":
                    self.cut += 1
                    break
                target.sendall(data)
        for socket_ in (source, target):
            _end(socket_)
        with self._lock:
            self._open -= {source, target}


def _end(socket_: socket.socket) -> None:
    with suppress(OSError):
        socket_.shutdown(socket.SHUT_RDWR)
    socket_.close()


@contextmanager
def proxied(upstream: int) -> Iterator[CuttingProxy]:
    """Stand in front of a server's port for the block."""
    proxy = CuttingProxy(upstream)
    proxy.be("there")
    try:
        yield proxy
    finally:
        proxy.be("away")
