"""What will happen to a message before it is sent: who answers it, and what it waits for. By the same rule that starts
runs (`MessageTriggers`), so the preview is what happens. For the composer."""

from typing import NamedTuple

from conversations.conversation.conversation_row import strip_prefix
from conversations.core.database_clock import database_now
from conversations.events.log import run_history
from conversations.events.log.message_triggers import MessageTriggers
from conversations.models import Agent, Conversation, Run
from conversations.runs import deliver_messages


class DeliveryPreview(NamedTuple):
    """`words`: a sentence or two, empty if nothing delays an answer; `waits`: it will not be answered at once.
    `at_work`: the agent that can get it at its next step instead, empty if none can."""

    words: str
    waits: bool
    at_work: str = ""


def preview_delivery(
    conversation: Conversation, *, by: str, sender: str, recipient: str, when: str = "after_run"
) -> DeliveryPreview:
    """Return what will happen to a message from `sender` to `recipient`. `by` is the principal, who may speak as
    another."""
    answerer = MessageTriggers.of_now().answerer(sender, recipient, by, conversation)
    if answerer is None:
        return DeliveryPreview(_unanswered(conversation, by, sender, recipient), waits=True)
    if text := _holder_note(conversation, by, answerer):
        return DeliveryPreview(text, waits=True)
    at_work = _at_work(conversation, answerer)
    if at_work and when == "next_step":
        return DeliveryPreview(_at_next_step(conversation, at_work), waits=False, at_work=at_work)
    text = _busy(conversation, answerer) or _away(answerer)
    return DeliveryPreview(text, waits=bool(text), at_work=at_work)


def _at_work(conversation: Conversation, answerer: str) -> str:
    """Return the agent whose active run takes messages for `answerer`; empty if there is none."""
    run = deliver_messages.receiver(conversation)
    if run is None or run.stop:
        return ""
    working = run_history.working_agent(conversation.pk, run)
    return working if answerer in (run.agent, working) else ""


def _at_next_step(conversation: Conversation, at_work: str) -> str:
    asks = Run.objects.of(conversation).filter(status="waiting", reason="approval").exists()
    return f"{at_work} gets your message at its next step{', after the approval' if asks else ''}."


def _unanswered(conversation: Conversation, by: str, sender: str, recipient: str) -> str:
    """Return why nobody will answer; empty if someone will."""
    kind, _, name = recipient.partition(":")
    if kind == "agent":
        if sender == recipient:
            return f"No agent will reply: {name} does not answer its own messages."
        if Agent.objects.filter(name=name).exists():
            return f"No agent will reply: {name} takes only handoffs from other agents."
        return f"{name} does not run here. It receives the message and may reply."
    if sender.startswith("agent:"):
        return "No agent will reply. Pick a recipient to get an answer."
    if conversation.owner and conversation.owner == by:
        return "You took over, so no agent will reply. Agents see this message once you hand back."
    if not conversation.handler:
        return "No agent will reply. Pick a recipient to get an answer."
    return (
        f"{conversation.handler.removeprefix('agent:')} handles this conversation but does not run here. It may reply."
    )


def _holder_note(conversation: Conversation, by: str, answerer: str) -> str:
    """Return who paused or took over and has to end that first; empty if nobody did."""
    if not conversation.is_held:
        return ""
    until = []
    if conversation.owner:
        holder = "you took over" if conversation.owner == by else f"{strip_prefix(conversation.owner)} took over"
        until.append((holder, "handed back"))
    if conversation.state == "paused":
        until.append(("the conversation is paused", "resumed"))
    why, then = (" and ".join(parts) for parts in zip(*until, strict=True))
    return f"Your message will wait: {why}. {answerer} answers once the conversation is {then}."


def _busy(conversation: Conversation, answerer: str) -> str:
    """Return which run is ahead of it, since a conversation has one run at a time; empty if none is."""
    runs = list(Run.objects.of(conversation).values_list("status", "reason", "agent"))
    if not runs:
        return ""
    asking = next((agent for status, reason, agent in runs if status == "waiting" and reason == "approval"), None)
    if asking is not None:
        return f"Your message will wait: {asking} is waiting for an approval. Then {answerer} answers."
    working = next((agent for status, _, agent in runs if status == "running"), None)
    before = f"{working} is working" if working else "another message comes first"
    return f"Your message will wait: {before}. Then {answerer} answers."


def _away(answerer: str) -> str:
    if Agent.objects.filter(name=answerer, served_until__gt=database_now()).exists():
        return ""
    return f"Your message will wait: {answerer} is not available now. It answers as soon as a worker runs it."
