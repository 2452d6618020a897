"""Ends runs in a worker's place. The product's workers end theirs with `RunEventWriter.store`."""

from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.runs import claims


def finish(claimed: claims.Claim, payload: claims.Body, *more: claims.Body) -> None:
    """End a run with `payload`, its `run.done`, `run.failed`, `run.cancelled` or `run.incompatible`; `more` are stored
    before it. Raises `Fenced` if the worker no longer holds the run.
    """
    with write_transaction():
        claims._write_held(claimed, lease_until=None, state=None, state_mac=None)
        log.append([claimed.event(body) for body in (*more, payload)])
