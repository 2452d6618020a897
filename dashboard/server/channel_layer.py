"""The channel layer of deployments with Redis, named in settings. The library is imported only when a process uses
it."""

from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


class DoorbellLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # untyped
    """A Redis channel layer that fails at once instead of retrying: the broadcast sender and listener retry, and report
    it."""

    def __init__(self, hosts: list[dict[str, Any]], **options: Any) -> None:  # Any: as redis-py takes them
        super().__init__(hosts=[host | {"retry": Retry(NoBackoff(), 0)} for host in hosts], **options)
