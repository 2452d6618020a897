"""The texts of a delivery: its subject, and its message as JSON for a webhook, JSON for Slack, or an e-mail. Names and
errors in them are untrusted and stay plain text."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from conversations.alerts.kinds import KINDS
from conversations.core import hidden_characters, page_urls
from conversations.models import AlertDelivery, AlertRule

SLACK_TEXT = 2900  # characters of a section; Slack takes 3,000


def subject(event: str, rule: AlertRule, data: Mapping[str, Any]) -> str:
    """Return the subject that a new delivery keeps, on one line. `data` is the delivery's."""
    if event == "test":
        return f"Test of the alert rule {rule.name}"
    label = KINDS[rule.kind].label
    over = "Over: " if event == "alarm.closed" else ""
    agent = f", {data['agent']}" if data["agent"] else ""
    return f"{over}{label}{agent}: {data['cause']}"[:300]


def webhook_body(delivery: AlertDelivery, site: str) -> bytes:
    """Return the body in the format of the delivery's rule. `site` is the address of our pages, such as
    `https://host`."""
    payload = _payload(delivery, site)
    if delivery.rule.form == "slack":
        payload = _slack(delivery, payload["data"])
    return json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace")


def email_text(delivery: AlertDelivery, site: str) -> tuple[str, str]:
    """Return the subject (one line) and the text."""
    payload = _payload(delivery, site)
    subject = " ".join(hidden_characters.spelled_out(delivery.subject).split())
    lines = [subject, "", *_facts(payload["data"]), "", payload["data"]["url"]]
    return f"[Switchboard] {subject}"[:200], "\n".join(lines)


def _payload(delivery: AlertDelivery, site: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(delivery.body)
    data = payload["data"]
    path = page_urls.event_url(data["conversation_id"], data["seq"]) if data.get("conversation_id") else "/alerts/"
    if data.get("conversation_id"):
        data["conversation_title"] = delivery.conversation_title
    data["url"] = site + quote(path, safe="/?=&#%~")
    return payload


def _slack(delivery: AlertDelivery, data: dict[str, Any]) -> dict[str, Any]:
    title = hidden_characters.spelled_out(delivery.subject)
    facts = "\n".join(_facts(data))[:SLACK_TEXT]
    texts = [text for text in (title, facts) if text]
    sections: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "plain_text", "text": text[:SLACK_TEXT], "emoji": False}} for text in texts
    ]
    link = {"type": "section", "text": {"type": "mrkdwn", "text": f"<{_escaped(data['url'])}|Open in Switchboard>"}}
    return {"text": _escaped(title), "blocks": [*sections, link], "unfurl_links": False}


def _facts(data: dict[str, Any]) -> list[str]:
    """Return the facts to report, one line each."""
    if "alarm_id" not in data:
        return ["This is a test: the rule and its destination work."]
    count = int(data["count"])
    lines = [
        str(data["detail"]),
        f"Conversation: {_named(data)}" if data["conversation_id"] else "",
        f"Agent: {data['agent']}" if data["agent"] else "",
        f"{count:,} times since {data['opened_at']}" if count > 1 else f"Since {data['opened_at']}",
        f"Closed at {data['closed_at']}" if data["closed_at"] else "",
        f"Rule: {data['rule']}",
    ]
    return [hidden_characters.spelled_out(line) for line in lines if line]


def _named(data: Mapping[str, Any]) -> str:
    title, key = data.get("conversation_title", ""), data["conversation_id"]
    return f"{title} ({key})" if title and title != key else str(key)


def _escaped(text: str) -> str:
    """Escape Slack's markup: a name cannot mention a channel or hide a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
