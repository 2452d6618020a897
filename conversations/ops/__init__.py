"""The state of a deployment, as its database tells it: what the ops page reads. Nothing here changes anything."""

from conversations.ops.counts import Count, bounded
from conversations.ops.deployment import Deployment, state
from conversations.ops.processes import Process
from conversations.ops.transport import Stream, Topic

__all__ = ["Count", "Deployment", "Process", "Stream", "Topic", "bounded", "state"]
