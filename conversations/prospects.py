"""What becomes of words before they are sent: who answers them, and what that waits for. By the rule that starts runs
(`log.queue`), so that what is said to a person is what will happen. For the composer.
"""

from typing import NamedTuple

from conversations.log.queue import Queue
from conversations.models import Agent, Conversation, Run
from conversations.nodes import database_time


class Prospect(NamedTuple):
    """`words` are a sentence or two, empty where nothing stands in the way of an answer; `waits`: not at once."""

    words: str
    waits: bool


def of(found: Conversation, *, by: str, sender: str, recipient: str) -> Prospect:
    """Say what becomes of what `sender` says to `recipient`. `by` is the principal, who may speak as another."""
    answerer = Queue.of_now().answerer(sender, recipient, by, found)
    if answerer is None:
        return Prospect(_unanswered(found, by, sender, recipient), waits=True)
    if words := _held(found, by, answerer) or _busy(found, answerer) or _away(answerer):
        return Prospect(words, waits=True)
    return Prospect("", waits=False)


def _unanswered(found: Conversation, by: str, sender: str, recipient: str) -> str:
    """Say why nobody is asked."""
    kind, _, name = recipient.partition(":")
    if kind == "agent":
        if sender == recipient:
            return f"{name} does not answer itself: nobody is asked."
        if Agent.objects.filter(name=name).exists():
            return f"{name} takes no messages by name, only what other agents hand over: nobody is asked."
        return f"{name} is not served here: it is told, and may answer if it listens."
    if sender.startswith("agent:"):
        return "What an agent says to everybody asks nobody: name an agent if you want an answer."
    if found.owner and found.owner == by:
        return "You hold it: this is the answer, and no agent is asked. Agents know it when you hand it back."
    if not found.handler:
        return "Nobody handles this conversation: name an agent if you want an answer."
    return f"{found.handler.removeprefix('agent:')} handles it and is not served here: it may answer if it listens."


def _held(found: Conversation, by: str, answerer: str) -> str:
    """Say who has to let go first."""
    if not found.is_held:
        return ""
    until = []
    if found.owner:
        holder = "you hold it" if found.owner == by else f"{_bare(found.owner)} holds it"
        until.append((holder, "handed back"))
    if found.state == "paused":
        until.append(("it is paused", "resumed"))
    why, then = (" and ".join(parts) for parts in zip(*until, strict=True))
    return f"Your message will wait: {why}. {answerer} answers once it is {then}."


def _busy(found: Conversation, answerer: str) -> str:
    """Say what runs before it: one run at a time, in order."""
    runs = list(Run.objects.of(found).values_list("status", "reason", "agent"))
    if not runs:
        return ""
    asking = next((agent for status, reason, agent in runs if status == "waiting" and reason == "approval"), None)
    if asking is not None:
        return f"Your message will wait: {asking} waits for a person’s decision first. Then {answerer} answers."
    working = next((agent for status, _, agent in runs if status == "running"), None)
    before = f"{working} is at work" if working else "another message is before it"
    return f"Your message will wait: {before}. Then {answerer} answers."


def _away(answerer: str) -> str:
    if Agent.objects.filter(name=answerer, served_until__gt=database_time()).exists():
        return ""
    return f"Your message will wait: no worker serves {answerer} now. It is answered as soon as one does."


def _bare(principal: str) -> str:
    return principal.partition(":")[2] or principal
