"""Files of chats and benchmarks: imported twice, and first a half of it, each makes the same record."""

import gzip
from pathlib import Path

import pytest

from tests.support.imported import in_lines, is_the_same_record
from tests.support.live import ROOT
from tests.support.tiers import variants

SAMPLES = ROOT / "tests" / "samples"
DOCUMENTS = ("chat.json", "traj.json", "simulations.json", "history_group.json", "history_orchestrated.json")
LINES = ("chat.jsonl", "chats.jsonl", "display.jsonl")

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("name", variants(DOCUMENTS))
def test_a_document_that_is_imported_twice_is_the_same_record(name):
    is_the_same_record(SAMPLES / name)


@pytest.mark.parametrize("name", variants(LINES, quick=2))
def test_lines_of_which_half_came_first_are_the_same_record(name, tmp_path):
    lines = (SAMPLES / name).read_text().splitlines() * 2  # the half has more than one, as the whole has
    whole = in_lines(tmp_path / name, lines)
    (tmp_path / "half").mkdir()
    half = in_lines(tmp_path / "half" / name, lines[: max(1, len(lines) // 2)])

    is_the_same_record(whole, half)


@pytest.mark.thorough
def test_a_packed_file_is_the_same_record(tmp_path):
    packed = Path(tmp_path / "chats.jsonl.gz")
    packed.write_bytes(gzip.compress((SAMPLES / "chats.jsonl").read_bytes()))

    is_the_same_record(SAMPLES / "chats.jsonl", packed)
