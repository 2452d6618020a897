"""Formats whose conversations are named after the file: another file of that name is not taken for a later export."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.core.errors import Conflict
from tests.support.imported import Counts, bring, stored, written

pytestmark = pytest.mark.django_db(transaction=True)
HELLO = {"role": "user", "content": "Hello?"}
FORMATS: dict[str, Any] = {
    "chat": lambda *texts: {"messages": [{"role": "user", "content": text} for text in texts]},
    "list": lambda *texts: [{"role": "user", "content": text} for text in texts],
    "who and when": lambda *texts: {"question": "?", "history": [{"role": "human", "content": t} for t in texts]},
    "autogen": lambda *texts: [{"type": "TextMessage", "source": "user", "content": text} for text in texts],
}


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_another_file_of_the_same_name_is_no_update(tmp_path, form):
    for folder, text in (("run1", "Hello?"), ("run2", "Who is there?")):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / "result.json", form(text))
    bring(tmp_path / "run1" / "result.json")

    with pytest.raises(Conflict, match="lacks 1 event that an earlier import stored in conversation 'result'"):
        bring(tmp_path / "run2" / "result.json", is_update=True)

    assert stored() == {"result": Counts(messages=1)}


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_a_file_that_grew_is_an_update(tmp_path, form):
    bring(written(tmp_path / "result.json", form("Hello?")))

    bring(written(tmp_path / "result.json", form("Hello?", "Who is there?")), is_update=True)

    assert stored() == {"result": Counts(messages=2)}
