"""A call as a question: only what is in it."""

import pytest

from conversations.rendering.call_question import question_of


@pytest.mark.parametrize(
    ("name", "arguments", "question"),
    [
        ("refund", {"amount": 40, "currency": "EUR", "to": "Rosa"}, "Refund: amount 40, currency EUR, to Rosa?"),
        ("city.file_incident", {}, "City file incident?"),
        ("closeCase", None, "Close case?"),
        ("file", {"text": "x" * 41, "danger": True, "house": None, "tags": ["a"], "at": "Mill  Road\n5"},
         "File: at Mill Road 5?"),
        ("send", {"a": 1, "b": 2, "c": 3, "d": 4}, "Send: a 1, b 2, c 3?"),
        ("sign_in", {"password": "hunter2", "key": "sk-proj-0123456789abcdefghij0123", "user": "ada"},
         "Sign in: user ada?"),
        ("refund", {"to": "Rosa, amount 1?", "amount": 400}, "Refund: to “Rosa, amount 1?”, amount 400?"),
        ("refund", {"to": "a”, amount 1, b “", "amount": 400}, "Refund: amount 400?"),
        ("調べる", {"場所": "東京"}, "調べる: 場所 東京?"),
        ("", {"a": 1}, ""),
        ("___", {"a": 1}, ""),
    ],
)  # fmt: skip
def test_a_call_is_put_in_words(name, arguments, question):
    assert question_of(name, arguments) == question


def test_hidden_characters_are_written_out():
    assert "\u202e" not in question_of("re\u202efund", {"to": "a\u202eb"})
