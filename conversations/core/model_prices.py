"""Prices of model tokens in US dollars: from the operator's file (`SWITCHBOARD_PRICES`), else from the package
`genai-prices`, which makes no requests.

The file is JSON: `{"MODEL": {"input": 2.5, "output": 10, "cached": 1.25}}`, dollars per million tokens; `cached` is the
price of input read from a cache, `cache_write` of input written to one, each by default the full price. A price that
neither has is unknown, never 0. The package's prices are today's, of its first tier.
"""

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from django.conf import settings

MILLION = 1_000_000
MAX_PRICE = 1_000_000  # dollars per million tokens


class ModelPrice(NamedTuple):
    """Dollars per million tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal
    cache_write: Decimal


class CostSum(NamedTuple):
    """The total cost of several models: `dollars` is None if nothing is known; `is_partial`: some of it is unknown."""

    dollars: Decimal | None = None
    is_partial: bool = False

    @property
    def is_free(self) -> bool:
        """Return whether there is nothing that costs anything: only the demo model was used, if any."""
        return self.dollars is None and not self.is_partial

    @property
    def words(self) -> str:
        """Return the cost as pages write it."""
        text = shown(self.dollars)
        return f"at least {text}" if self.is_partial and self.dollars is not None else text


class ModelTokenCount(NamedTuple):
    """Tokens of one model. Of the input, `cached_tokens` were read from a cache and `cache_write_tokens` written to
    one; `unknown_turns` reported no tokens."""

    model: str
    is_demo: bool
    input_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    output_tokens: int
    unknown_turns: int = 0


def cost(spent: ModelTokenCount) -> Decimal | None:
    """Return the cost of a model's tokens in dollars, None if its price is unknown."""
    price = settings.CONFIG.price_table.get(spent.model) or _listed(spent.model)
    if price is None:
        return None
    plain = spent.input_tokens - spent.cached_tokens - spent.cache_write_tokens
    cached = price.cached * spent.cached_tokens + price.cache_write * spent.cache_write_tokens
    return (price.input * plain + cached + price.output * spent.output_tokens) / MILLION


def total(counts: Iterable[ModelTokenCount]) -> CostSum:
    """Return the total cost. The demo model's tokens are free and left out."""
    known, is_partial = [], False
    for spent in counts:
        if spent.is_demo:
            continue
        dollars = cost(spent)
        has_tokens = bool(spent.input_tokens or spent.output_tokens)
        is_partial = is_partial or bool(spent.unknown_turns) or (has_tokens and dollars is None)
        known += [dollars] if dollars is not None and has_tokens else []
    return CostSum(sum(known, Decimal(0)) if known else None, is_partial)


def shown(dollars: Decimal | None) -> str:
    """Return a cost as text: `$1,234.50`, `$0.0042`, `under $0.0001`; `–` if unknown."""
    if dollars is None:
        return "–"
    if 0 < dollars < Decimal("0.0001"):
        return "under $0.0001"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"


def read_file(path: Path) -> Mapping[str, ModelPrice]:
    """Parse an operator's price file. Raises ValueError that says what is wrong with it."""
    try:
        table = json.loads(path.read_bytes())
    except OSError as error:
        raise ValueError(f"must be a file that can be read; {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"must be JSON; {error}") from None
    if not isinstance(table, dict):
        raise ValueError('must be an object, {"MODEL": {"input": 2.5, "output": 10}}')
    return {model: _price(model, entry) for model, entry in table.items()}


def _price(model: str, entry: Any) -> ModelPrice:
    given: list[Any] = [None]
    if isinstance(entry, dict):
        whole = entry.get("input")
        given = [whole, entry.get("output"), entry.get("cached", whole), entry.get("cache_write", whole)]
    if not all(type(price) in (int, float) and 0 <= price <= MAX_PRICE for price in given):
        form = '{"input": …, "output": …, "cached": …, "cache_write": …}'
        raise ValueError(f"{model[:80]!r} must be {form}, dollars per million tokens")
    return ModelPrice(*(Decimal(str(price)) for price in given))


@lru_cache(maxsize=1024)  # agents name models as they like
def _listed(model: str) -> ModelPrice | None:
    """Return the package's price of a model, by its name or by what follows the last slash; None if unknown."""
    from genai_prices import Usage, calc_price  # its table takes long to import, and commands never ask

    for name in dict.fromkeys([model, model.rpartition("/")[2]]):
        try:
            price = calc_price(Usage(input_tokens=1000, output_tokens=1000), model_ref=name)
        except LookupError:
            continue
        cached = [_input_price(name, cache_read_tokens=1000), _input_price(name, cache_write_tokens=1000)]
        return ModelPrice(*(dollars * 1000 for dollars in (price.input_price, price.output_price, *cached)))
    return None


def _input_price(name: str, **of_cache: int) -> Decimal:
    """Return the price of a thousand input tokens that were all read from a cache, or written to one."""
    from genai_prices import Usage, calc_price

    return calc_price(Usage(input_tokens=1000, output_tokens=0, **of_cache), model_ref=name).input_price
