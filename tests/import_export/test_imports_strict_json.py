"""NaN and the infinities, which some programs write and JSON does not have: every format names the line and stores
nothing of it; a number that no float holds stays as it was written."""

import json

import pytest

from conversations.core.errors import Invalid
from conversations.import_export.recording import decoded
from conversations.models import Event
from tests.import_export.test_imports_hostile import DOCUMENTS, LINES, tried
from tests.support.imported import bring, in_lines

pytestmark = pytest.mark.django_db(transaction=True)
CONSTANTS = ("NaN", "Infinity", "-Infinity")


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_refused_with_the_line(tmp_path, name, constant):
    text = json.dumps(DOCUMENTS[name], indent=1).replace('"High water?"', constant, 1)
    path = tmp_path / "x.json"
    path.write_text(text)
    before = text[: text.index(constant)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")

    assert f"{constant} is not valid JSON: line {line} column {column}" in tried(path)


@pytest.mark.parametrize("name", LINES)
def test_a_line_is_left_out_and_named(tmp_path, name):
    good = json.dumps(LINES[name])
    path = in_lines(tmp_path / "x.jsonl", [good, good.replace('"High water?"', "NaN")])

    problems = bring(path, is_strict=False)

    assert [problem for problem in problems if "NaN" in problem and "2" in problem]
    assert not Event.objects.filter(body__contains="NaN").exists()


def test_such_words_in_a_text_are_text():
    assert decoded(rb'{"a": "NaN \" Infinity", "b": "\ud800"}') == {"a": 'NaN " Infinity', "b": "\ud800"}
    with pytest.raises(Invalid, match="-Infinity is not valid JSON: line 2 column 6"):
        decoded(b'{"a": "NaN \\" Infinity",\n"b": -Infinity}')


def test_a_number_that_no_float_holds_stays_as_it_was_written():
    assert decoded(b'{"a": 1e999, "b": -2e400, "c": 1.5}') == {"a": "1e999", "b": "-2e400", "c": 1.5}
