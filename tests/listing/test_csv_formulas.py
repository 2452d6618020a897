"""No cell of an exported CSV file is a formula, whichever character the reader's spreadsheet splits lines at."""

import csv
import io
import re

import pytest

from conversations.listing import file_export

HOSTILE = [
    "x;=cmd|' /C calc'!A0",
    "x; \t@SUM(1)",
    'a, b;"=1+1"',
    "a\n=1+1",
    "a\r\n\r\n+1",
    "a;b\n;-2",
    "ä;＝1",
    "=1;=2",
    "  =1+1",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("row", [("{}", "12"), ("12", "{}")], ids=["first", "last"])
def test_no_separator_begins_a_formula(text, row):
    written = file_export.table([[cell.format(file_export.cell(text)) for cell in row]]).decode()

    by_comma = [cell for line in csv.reader(io.StringIO(written)) for cell in line]
    for cell in [*by_comma, *re.split("[;\r\n]", written)]:  # which knows no quotes in mid-line
        assert not cell.lstrip(' \t"').startswith(tuple("=+-@＝"))


@pytest.mark.parametrize("text", ["a; b", "Done.\nNext: 5-3", "x;y=1", "one", "<a href='?a=1;b=2'>"])
def test_other_cells_stay_as_they_are(text):
    assert file_export.cell(text) == text
