"""The state of a deployment, as its database tells it: what the ops page reads. Nothing here changes anything."""

from conversations.realtime.deployment.bus_state import RedisStream, Topic
from conversations.realtime.deployment.nodes import Process
from conversations.realtime.deployment.overview import Count, Deployment, bounded, state

__all__ = ["Count", "Deployment", "Process", "RedisStream", "Topic", "bounded", "state"]
