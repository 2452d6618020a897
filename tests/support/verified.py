"""Check all chains at once, for tests; `switchboard verify` checks them with progress."""

from dataclasses import replace

from conversations.events import verify_chains
from conversations.events.verify_chains import ChainReport


def verify_events() -> ChainReport:
    """Walk all histories; stop at the first bad event."""
    if not (hidden := verify_chains.verify_visible()).ok:
        return hidden
    count = 0
    for conversation in verify_chains.conversations():
        verdict = verify_chains.verify_conversation(conversation)
        count += verdict.count
        if not verdict.ok:
            return replace(verdict, count=count)
    return replace(verify_chains.verify_orphans(), count=count)
