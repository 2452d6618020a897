"""What tokens cost: the operator's prices, then the listed ones; what neither knows is unknown."""

import json
from decimal import Decimal

import pytest

from conversations.core import model_prices
from conversations.core.model_prices import ModelTokenCount, shown

READ, WRITTEN = {"cached": 1_000_000}, {"written": 1_000_000}


def cost(model, input_tokens, output_tokens, *, cached=0, written=0):
    return model_prices.cost(ModelTokenCount(model, False, input_tokens, cached, written, output_tokens))


@pytest.fixture
def own_prices(settings, tmp_path):
    """A file of the operator's prices."""
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"house-model": {"input": 1, "output": 2.5}, "gpt-4o": {"input": 0, "output": 0}}))
    settings.CONFIG = settings.CONFIG.model_copy(update={"prices": file})
    settings.CONFIG.__dict__.pop("price_table", None)


def test_a_listed_model_costs_what_its_tokens_cost():
    both = cost("gpt-4o", 1_000_000, 1_000_000)

    assert both > cost("gpt-4o", 1_000_000, 0) > 0
    assert both == cost("gpt-4o", 1_000_000, 0) + cost("gpt-4o", 0, 1_000_000)
    assert cost("litellm/openai/gpt-4o", 1_000_000, 1_000_000) == both


def test_input_of_a_cache_has_prices_of_its_own():
    plain, read, written = (cost("claude-sonnet-4-5", 1_000_000, 0, **part) for part in ({}, READ, WRITTEN))

    assert (read, written) == (plain / 10, plain * Decimal("1.25"))


@pytest.mark.parametrize("model", ["", "demo", "no-such-model-of-anybody", "/", "gpt-4o\x00" * 40])
def test_an_unknown_model_costs_nobody_knows_what(model):
    assert cost(model, 1_000, 1_000) is None


@pytest.mark.usefixtures("own_prices")
def test_the_operators_prices_go_first():
    assert cost("house-model", 2_000_000, 2_000_000) == Decimal(7)
    assert cost("gpt-4o", 5, 5) == 0
    assert cost("gpt-4o-mini", 5, 5) > 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "must be JSON"),
        ("[]", "must be an object"),
        ('{"m": 5}', "'m' must be"),
        ('{"m": {"input": 1}}', "'m' must be"),
        ('{"m": {"input": -1, "output": 1}}', "'m' must be"),
        ('{"m": {"input": "1", "output": 1}}', "'m' must be"),
        ('{"m": {"input": NaN, "output": 1}}', "'m' must be"),
        ('{"m": {"input": true, "output": 1}}', "'m' must be"),
    ],
)
def test_a_file_that_is_wrong_is_said_where(tmp_path, text, problem):
    (tmp_path / "prices.json").write_text(text)

    with pytest.raises(ValueError, match=problem):
        model_prices.read_file(tmp_path / "prices.json")
    with pytest.raises(ValueError, match="a file that can be read"):
        model_prices.read_file(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("dollars", "words"),
    [(None, "–"), ("0", "$0.00"), ("0.00001", "under $0.0001"), ("0.0042", "$0.0042"), ("1234.5", "$1,234.50")],
)
def test_a_cost_is_written_so_that_it_can_be_read(dollars, words):
    assert shown(None if dollars is None else Decimal(dollars)) == words
