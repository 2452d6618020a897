"""What model tokens cost, in US dollars: by a file of the operator's (`SWITCHBOARD_PRICES`), else by the table in the
package `genai-prices`, which asks nobody.

The file is JSON: `{"MODEL": {"input": 2.5, "output": 10}}`, dollars per million tokens. What neither has is unknown,
never 0. Prices of the package are those of today, of its first tier; cached input counts in full.
"""

import json
from collections.abc import Mapping
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


def cost(model: str, input_tokens: int, output_tokens: int) -> Decimal | None:
    """Return what tokens of a model cost in dollars, None where its price is unknown."""
    price = settings.CONFIG.price_table.get(model) or _listed(model)
    return None if price is None else (price.input * input_tokens + price.output * output_tokens) / MILLION


def shown(dollars: Decimal | None) -> str:
    """Write a cost: `$1,234.50`, `$0.0042`, `under $0.0001`; `–` where it is unknown."""
    if dollars is None:
        return "–"
    if 0 < dollars < Decimal("0.0001"):
        return "under $0.0001"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"


def read_file(path: Path) -> Mapping[str, ModelPrice]:
    """Read an operator's file. Raises ValueError that says what is wrong with it."""
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
    given: list[Any] = [entry.get(side) for side in ModelPrice._fields] if isinstance(entry, dict) else [None]
    if not all(type(price) in (int, float) and 0 <= price <= MAX_PRICE for price in given):
        raise ValueError(f'{model[:80]!r} must be {{"input": …, "output": …}}, dollars per million tokens')
    return ModelPrice(*(Decimal(str(price)) for price in given))


@lru_cache(maxsize=1024)  # agents name models as they like
def _listed(model: str) -> ModelPrice | None:
    """Look a model up in the package's table: as it is named, and by what follows the last slash."""
    from genai_prices import Usage, calc_price  # its table takes long to import, and commands never ask

    for name in dict.fromkeys([model, model.rpartition("/")[2]]):
        try:
            price = calc_price(Usage(input_tokens=1000, output_tokens=1000), model_ref=name)
        except LookupError:
            continue
        return ModelPrice(price.input_price * 1000, price.output_price * 1000)
    return None
