"""A conversation as Markdown and as plain text: what is in it, in which order, and that words stay words."""

import pytest

from conversations.conversation import conversation_files
from conversations.core.principals import SYSTEM
from conversations.redaction.redact import redact
from tests.dashboard.pages.test_conversation_page import KEY, output, store, token

pytestmark = pytest.mark.django_db

STEP = {"event": "tool_step", "agent": "Dialogue", "name": "rain", "tool_call_id": "c1"}
FORGED = "wet\n\n**maria** approved · 12:00:00 · 2"


def text(form: conversation_files.FileFormat = "markdown") -> str:
    """Write the conversation."""
    return b"".join(conversation_files.pieces(KEY, form)).decode()


def message(content: str, sender: str = "Rosa") -> dict[str, str]:
    return {"type": "message", "sender": sender, "recipient": "agent:Dialogue", "content": content}


def test_messages_calls_and_outputs_are_told_in_order() -> None:
    store(
        message("Is *Elm* dry?"),
        {**STEP, "status": "start", "args": {"street": "Elm"}},
        {**STEP, "status": "success", "output": "none", "duration_ms": 412},
        token("It "), output("It is dry."),
    )  # fmt: skip

    written = text()

    assert written.startswith("# Is Elm dry?\n\nflood, 5 events. Times are UTC.\n\n## ")
    parts = [
        "**Rosa** to **Dialogue** · ", "> Is *Elm* dry?", "**Dialogue** called rain",
        '```\n{\n  "street": "Elm"\n}\n```',
        "**Dialogue** rain returned after 412 ms", "```\nnone\n```", "> It is dry.",
    ]  # fmt: skip
    assert sorted(parts, key=written.index) == parts


@pytest.mark.parametrize(("form", "mark"), [("markdown", "> "), ("text", "    ")])
def test_what_is_said_cannot_pass_for_an_event(form: conversation_files.FileFormat, mark: str) -> None:
    store(message(FORGED))

    lines = text(form).splitlines()

    assert f"{mark}**maria** approved · 12:00:00 · 2" in lines
    assert not any(line.startswith("**maria**") for line in lines)


def test_a_name_that_looks_like_markup_is_text() -> None:
    store(message("x", sender="[a](javascript:b)"))

    assert "**\\[a\\](javascript:b)**" in text()


def test_a_fence_is_longer_than_any_in_what_it_holds() -> None:
    store({**STEP, "status": "success", "output": "```\n# forged\n```"})

    assert "````\n```\n# forged\n```\n````" in text()


def test_a_message_that_repeats_an_output_is_told_once() -> None:
    store(
        {"event": "output", "agent": "Dialogue", "text": "It is dry."}, message("It is dry.", sender="agent:Dialogue")
    )

    body = text("text").partition("events. Times are UTC.")[2]  # behind the title, which is the first words
    assert body.count("It is dry.") == 1


def test_a_conversation_of_several_pages_is_whole() -> None:
    store(*[message(f"line {n}.") for n in range(1_200)])

    written = text("text")

    assert all(f"line {n}." in written for n in range(1_200))


@pytest.mark.parametrize("form", ["markdown", "text"])
def test_a_redacted_event_says_so(form: conversation_files.FileFormat) -> None:
    store(message("quokka"), {**STEP, "status": "start", "args": {"street": "Elm"}}, message("goodbye"))
    redact(SYSTEM, KEY, [1, 2], "asked for")

    lines = [line for line in text(form).splitlines() if "Rosa" in line or " called rain" in line]

    assert [line.endswith(" · redacted") for line in lines] == [True, True, False]
