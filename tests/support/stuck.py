"""A subscriber that reads only when it is told to: what a slow reader is to the server."""

import json
import socket

from websockets.client import ClientProtocol
from websockets.frames import Opcode
from websockets.uri import parse_uri


class StuckReader:
    """A subscriber over a raw connection with a small buffer, that reads only when told to."""

    def __init__(self, port, secret, topic):
        self.protocol = ClientProtocol(parse_uri(f"ws://127.0.0.1:{port}/ws/"), max_size=None)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", port))
        request = self.protocol.connect()
        request.headers["Authorization"] = f"Bearer {secret}"
        self.protocol.send_request(request)
        self.flush()
        self.frames = []
        self.until_frame("caught_up", topic)

    def until_frame(self, kind, topic):
        while not any(f["t"] == kind for f in self.frames):
            self.read()
            if topic and self.protocol.state.name == "OPEN":
                self.protocol.send_text(json.dumps({"op": "subscribe", "topic": topic, "after": 0}).encode())
                self.flush()
                topic = ""

    def flush(self):
        for data in self.protocol.data_to_send():
            if data:
                self.socket.sendall(data)

    def read(self):
        """Read once; answer False at the end."""
        data = self.socket.recv(1 << 20)
        self.protocol.receive_data(data) if data else self.protocol.receive_eof()
        for event in self.protocol.events_received():
            if getattr(event, "opcode", None) == Opcode.TEXT:
                self.frames.append(json.loads(event.data))
        return bool(data) and self.protocol.close_rcvd is None

    def read_to_the_end(self):
        """Read all there is; return the seqs and the close code."""
        while self.read():
            pass
        self.socket.close()
        code = self.protocol.close_rcvd.code if self.protocol.close_rcvd else None
        return [e["seq"] for f in self.frames for e in f.get("events", [])], code
