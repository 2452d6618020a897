"""How an erased id is replaced in the bodies of events: as a word of its own, and never in names."""

import pytest

from conversations.redaction.id_forms import ErasedId


@pytest.mark.parametrize(
    ("old", "body", "left"),
    [
        (
            "ida",
            '{"text":"ida, Candidate","b":["chat:ida"],"to":"x"}',
            '{"text":"new, Candidate","b":["chat:new"],"to":"x"}',
        ),
        (
            "ida",
            '{"sender":"ida","by":"user:ida","text":"user:ida"}',
            '{"sender":"ida","by":"user:ida","text":"user:ida"}',
        ),
        ("message", '{"type":"message","message":"a message"}', '{"type":"message","message":"a new"}'),
        ("a@b.c", '{"args":{"a@b.c":{"name":"a@b.c"}}}', '{"args":{"new":{"name":"new"}}}'),
        ("ida", '{"args_raw":"{\\"who\\":\\"ida\\"}"}', '{"args_raw":"{\\"who\\":\\"new\\"}"}'),
        ("a/ü", '{"a":"a\\/\\u00fc"}', '{"a":"new"}'),
        ("1", '{"seq":1,"at":1.50,"a":"1"}', '{"seq":1,"at":1.5,"a":"new"}'),
        ("x", '{"a":  "y"}', '{"a":  "y"}'),
        ("x", '{"a":"\\ud83d x"}', '{"a":"\\ud83d new"}'),
        ("x", '{"a":1e999,"b":"x"}', '{"a":"1e999","b":"new"}'),
        ("x", f'{{"a":{"9" * 5000},"b":"x"}}', f'{{"a":"{"9" * 5000}","b":"new"}}'),
        ("x", "x of xy", "new of xy"),
    ],
)
def test_an_id_is_replaced_as_a_word_of_its_own_and_names_stay(old, body, left):
    assert ErasedId(old, "new").in_body(body, words=True) == left


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ('{"text":"ida","parent":"ida","args":{"name":"ida"}}', '{"text":"ida","parent":"new","args":{"name":"ida"}}'),
        ('{"recipient":"chat:ida","to":"ida"}', '{"recipient":"chat:new","to":"ida"}'),
        ('{"event":"conversation.moved","to":"ida"}', '{"event":"conversation.moved","to":"new"}'),
        ("ida", "ida"),
    ],
)
def test_elsewhere_only_what_refers_to_the_conversation_is_replaced(body, left):
    assert ErasedId("ida", "new").in_body(body, words=False) == left
