"""What a conversation is called: its first words, plain, cut between two of them."""

import pytest

from conversations.core.plain_text import TITLE, short_title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("A burst pipe", "A burst pipe"),
        ("  ## Report\n\n**Elm Street** is [flooded](https://x.example)  ", "Report Elm Street is flooded"),
        ("word " * 40, " ".join(["word"] * 16) + "…"),
        ("x" * 200, "x" * (TITLE - 1) + "…"),
        (f"{'A long clause, ' * 6}", f"{'A long clause, ' * 5}A…"),
        ("", ""),
        (" \n\t", ""),
    ],
)  # fmt: skip
def test_a_title_is_the_first_words_without_markdown_cut_between_two(text: str, title: str) -> None:
    assert short_title(text) == title
    assert len(title) <= TITLE
