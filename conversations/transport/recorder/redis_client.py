"""A redis.asyncio client that gives up on a server that fell silent. Used only by the recorder.

redis-py's `socket_timeout` limits a whole answer, which may be 100 MB here; this limits the time without a byte.
"""

import asyncio

import redis.asyncio
from redis._parsers import _AsyncHiredisParser
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

PATIENCE = 3.0  # seconds without a byte; a hung server is left and tried again
CHUNK = 1 << 16  # bytes asked of the socket at once


class PatientParser(_AsyncHiredisParser):
    """hiredis, with a limit on silence."""

    async def read_from_socket(self) -> bool:
        """Read what has arrived. Raises redis.TimeoutError if nothing does, redis.ConnectionError at the end."""
        try:
            async with asyncio.timeout(PATIENCE):
                return bool(await super().read_from_socket())  # type: ignore[no-untyped-call]  # redis-py's
        except TimeoutError:
            raise redis.TimeoutError(f"no answer for {PATIENCE:.0f} s") from None


def connect(url: str) -> "redis.asyncio.Redis":
    """Return a client with one connection, bytes in and out. It connects with the first command; close it with
    `aclose`."""
    pool = redis.asyncio.ConnectionPool.from_url(
        url,
        parser_class=PatientParser,
        protocol=2,
        decode_responses=False,
        socket_read_size=CHUNK,
        socket_timeout=None,  # the parser's own patience
        socket_keepalive=True,
        socket_connect_timeout=PATIENCE,
        retry=Retry(NoBackoff(), 0),
        max_connections=1,
    )
    client = redis.asyncio.Redis.from_pool(pool)
    for command in ("XREAD", "XINFO STREAM", "SCAN"):
        client.response_callbacks.pop(command, None)  # read here as they come
    return client
