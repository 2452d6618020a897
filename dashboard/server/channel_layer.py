"""The channel layer of deployments with a Redis, named in settings. Its library is imported when a process uses it."""

from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


class DoorbellLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # untyped
    """Fails at once, instead of trying again by itself: the broadcast sender and listener do that, and say so."""

    def __init__(self, hosts: list[dict[str, Any]], **options: Any) -> None:  # Any: as redis-py takes them
        super().__init__(hosts=[host | {"retry": Retry(NoBackoff(), 0)} for host in hosts], **options)
