"""The form of a call's arguments: what a browser returns of it, and what is read from that."""

import pytest

from conversations.tool_calls.schemas import argument_form
from conversations.tool_calls.schemas.argument_check import InvalidArguments

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
NULLABLE = {"anyOf": [TEXT, {"type": "null"}]}
SCHEMA = {
    "type": "object",
    "required": ["body"],
    "properties": {"body": TEXT, "cc": TEXT, "n": NUMBER, "note": NULLABLE, "urgent": {"type": "boolean"}},
}


def posted(schema, arguments, **edits):
    """What a browser posts of the form: line ends as CRLF, no NUL, no half of a surrogate pair."""
    drawn = {field.name: field.value for field in argument_form.entries(schema, arguments)} | edits
    return {f"arg.{name}": value.replace("\n", "\r\n") for name, value in drawn.items()}


@pytest.mark.parametrize(
    ("value", "returned"),
    [
        ("a\r\nb", "a\r\nb"),
        ("a\rb", "a\r\nb"),
        ("a\nb\r\nc\rd", "a\r\nb\r\nc\r\nd"),
        ("\na", "\r\na"),
        ("a\0b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_a_text_that_a_browser_returns_otherwise_is_not_edited(value, returned):
    arguments = {"body": value, "n": 2}
    form = {"arg.body": returned, "arg.cc": "", "arg.n": "2", "arg.note": "", "arg.urgent": ""}

    assert argument_form.read(SCHEMA, form, arguments) == arguments
    assert argument_form.read(SCHEMA, form | {"arg.n": "3"}, arguments) == arguments | {"n": 3}


@pytest.mark.parametrize("value", ["a\rb", "a\r\nb", "\na"])
def test_a_text_of_several_lines_has_a_field_of_several_lines(value):
    (field,) = argument_form.entries({"properties": {"body": TEXT}}, {"body": value})

    assert (field.kind, "\r" in field.value, field.is_edited) == ("text", False, False)


@pytest.mark.parametrize(
    "arguments",
    [
        {"n": 2},  # `body`, `cc`, `note` and `urgent` are left out
        {"n": 2, "cc": "", "note": None},
        {"n": 2, "note": "", "urgent": "perhaps"},
        {"n": 2.0, "body": 7, "urgent": None},
        {"n": 2, "ticket": 7, "more": {"a": [1, None]}},  # not in `properties`
    ],
)
def test_an_edit_changes_no_other_argument(arguments):
    edited = argument_form.read(SCHEMA, posted(SCHEMA, arguments, n="8"), arguments)

    assert edited == arguments | {"n": 8}
    assert list(map(type, edited.values())) == [int if name == "n" else type(arguments[name]) for name in edited]


def test_a_cleared_field_is_empty_null_or_left_out():
    arguments = {"body": "a", "note": "b", "n": 2, "urgent": True}

    cleared = argument_form.read(SCHEMA, posted(SCHEMA, arguments, body="", note="", n="", urgent=""), arguments)

    assert cleared == {"body": "", "note": None}


def test_arguments_that_are_no_object_are_those_of_the_edited_fields():
    assert argument_form.read(SCHEMA, posted(SCHEMA, None, body="a", urgent="false"), None) == {
        "body": "a",
        "urgent": False,
    }


def test_a_number_in_another_notation_is_an_edit():
    assert argument_form.read(SCHEMA, posted(SCHEMA, {"n": 100}, n="1e2"), {"n": 100}) == {"n": 1e2}
    with pytest.raises(InvalidArguments, match="n must be a number"):
        argument_form.read(SCHEMA, posted(SCHEMA, {"n": 100}, n="1_00"), {"n": 100})


def test_a_value_outside_the_choices_is_shown_as_it_is_and_stays_unless_edited():
    schema = {"properties": {"level": {"enum": ["low", "high"]}, "n": NUMBER}}
    arguments = {"level": "urgent", "n": 2}
    field = argument_form.entries(schema, arguments)[0]

    assert field.choices == (('"low"', "low"), ('"high"', "high"), ('"urgent"', "urgent (not a choice)"))
    assert (field.value, field.was_words) == ('"urgent"', "urgent (not a choice)")
    assert argument_form.read(schema, posted(schema, arguments, n="3"), arguments) == arguments | {"n": 3}
    with pytest.raises(InvalidArguments, match="must be one of its choices"):
        argument_form.read(schema, {"arg.level": '"other"'}, arguments)


def test_a_definition_that_refers_to_another_is_followed_as_the_table_does():
    definitions = {
        "Level": {"$ref": "#/$defs/Words"},
        "Words": {"enum": ["low", "high"]},
        "Self": {"$ref": "#/$defs/Self"},
    }
    fields = {"level": {"$ref": "#/$defs/Level"}, "self": {"$ref": "#/$defs/Self"}}

    level, endless = argument_form.entries({"properties": fields, "$defs": definitions}, None)

    assert (level.kind, [label for _, label in level.choices]) == ("choice", ["low", "high"])
    assert endless.kind == "json"
