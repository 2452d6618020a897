"""No message costs more than 50 ms, whatever it is made of. Measured in CPU time, scaled to the machine's speed now."""

import random
import time
from collections.abc import Callable

import pytest

from conversations.rendering import highlight, richtext

BOUND_MS = 50
REFERENCE_MS = 7  # what `_work` takes on the machine the bounds were measured on, alone
SIZE = 256_000  # bytes

_REPEATED = {
    "quotes": ">",
    "quotes-spaced": "> ",
    "deep-quotes": "> " * 30 + "a\n",
    "stars": "*",
    "open-emphasis": "*a ",
    "closed-emphasis": "a**b",
    "mixed-emphasis": "*a_ ",
    "brackets": "[",
    "open-links": "[a](",
    "open-angle-links": "[a](<",
    "nested-links": "[a](b ",
    "titles": "[a](b 'c",
    "links": "[a](http://b)",
    "bangs": "![",
    "images": "![a](http://b)",
    "emphasis-over-links": "*[a*](b)",
    "backticks": "`",
    "open-code": "`a",
    "pipes": "|",
    "references": "[a]: b\n",
    "open-references": "[a]: b '\n",
    "list": "- a\n",
    "nested-list": "- ",
    "numbered": "1. ",
    "entities": "&a",
    "numeric-entities": "&#x41;",
    "escapes": "\\*",
    "slashes": "\\",
    "angles": "<",
    "open-autolinks": "<http://a",
    "autolinks": "<http://a>",
    "bare-links": "http://a.b ",
    "mails": "<a@a",
    "fences": "```\n",
    "closed-fences": "```py\nb\n```\n",
    "tildes": "~~a",
    "headings": "# a\n",
    "hashes": "#",
    "underlined": "a\n=\n",
    "rules": "---\n",
    "paragraphs": "a\n\n",
    "lines": "a\n",
    "newlines": "\n",
    "blanks": " ",
    "tabs": "\t",
    "indented": "    a\n\n",
    "hard-breaks": "a  \n",
    "quoted-lists": "> - > a\n",
    "word": "a",
    "accents": "é*ü_",
    "zero-widths": "a\u200b",
    "overrides": "\u202e\u200b",
    "persian": "می\u200cخ",
    "emoji": "👨\u200d",
    "escape-codes": "\x1b[31ma",
    "half-escapes": "\x1b[1;",
}
_SHAPED: dict[str, Callable[[int], str]] = {
    "closed-brackets": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "growing-code": lambda n: "".join("`" * i + " " for i in range(1, int((2 * n) ** 0.5))),
    "wide-table": lambda n: "a|" * (n // 3) + "\n" + "-|" * (n // 3) + "\n" + "|" * (n // 3),
    "filled-table": lambda n: "a|" * (n // 8) + "\n" + "-|" * (n // 8) + "\n" + "a\n" * (n // 4),
    "table": lambda n: "|a" * 20 + "\n" + "|-" * 20 + "\n" + ("|a" * 20 + "\n") * (n // 42),
    "lazy-quote": lambda n: "> " * 3 + "a\n" + "b\n" * (n // 2),
    "lazy-list": lambda n: "- " * 3 + "a\n" + "b\n" * (n // 2),
    "stairs": lambda n: "".join(" " * (2 * i) + "- a\n" for i in range(int(n**0.5))),
    "numbered-list": lambda n: "".join(f"{i}. a\n" for i in range(n // 7)),
    "definitions": lambda n: (
        "".join(f"[r{i}]: x\n" for i in range(n // 18)) + "".join(f"[r{i}]" for i in range(n // 10))
    ),
    "late-heading": lambda n: "a\n" * (n // 2) + "=",
    "code-block": lambda n: "```js\n" + '\\"' * 100 + "\n" + '\\"x\n' * (n // 4) + "\n```",
    "signs": lambda n: _random("[]()*_`<>~|-+#&;!\\ \n\ta1.:\"'", n),
    "blocks": lambda n: _random(
        ["> ", "- ", "1. ", "# ", "|a|b|\n", "|-|-|\n", "```\n", "    ", "a\n", "\n", "[a](http://b) "], n
    ),
}


@pytest.fixture(scope="module")
def bound_ms() -> float:
    """Return the bound, widened by how much slower the machine is now than when it was measured."""
    return BOUND_MS * max(1.0, min(_timed(_work) for _ in range(5)) / REFERENCE_MS)


@pytest.mark.thorough
@pytest.mark.parametrize("name", [*_REPEATED, *_SHAPED])
def test_any_size_of_a_nasty_text_is_drawn_in_time(name, bound_ms):
    for size in (1_000, 2_000, 4_000, 6_000, 8_000, 12_000, 15_900, SIZE):
        text = _text(name, size)

        assert _best(text) <= bound_ms, (name, size)


@pytest.mark.thorough
@pytest.mark.parametrize("language", sorted(set(highlight._LEXERS)))
def test_any_code_is_coloured_in_time(language, bound_ms):
    for part in [
        "a",
        "a b ",
        "\n",
        '"',
        '\\"',
        "'",
        "`",
        "(",
        "{",
        "[",
        "<",
        "/*a",
        "//",
        "#",
        "a.",
        "@",
        "${",
        "<a ",
        "~",
        "x=",
    ]:
        code = "\n".join([(part * 240)[:240]] * 12)
        text = f"```{language}\n{code[: highlight.MAX_CODE]}\n```"

        assert _best(text) <= bound_ms, part


def test_a_usual_long_answer_is_still_rich():
    prose = (
        "The underpass at **Mill Street** is flooded, see [the report](https://example.org/x).\n\n- one\n- two\n\n" * 60
    )

    assert len(prose) > 5_000
    assert "<strong>" in richtext.render(prose)


def _text(name: str, size: int) -> str:
    """Make about `size` bytes."""
    if name in _SHAPED:
        return _SHAPED[name](size)
    part = _REPEATED[name]
    return part * (size // len(part.encode()))


def _random(parts: str | list[str], size: int) -> str:
    chosen = random.Random(3).choices(parts, k=size)
    return "".join(chosen)[:size]


def _best(text: str) -> float:
    return min(_timed(lambda: richtext.render(text)) for _ in range(3))


def _timed(work: Callable[[], object]) -> float:
    """Return the CPU time in ms."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def _work() -> int:
    return sum(len(str(number)) * number for number in range(60_000))
