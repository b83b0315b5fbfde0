"""What a call costs, where the prices of the model are set."""

from decimal import Decimal

from memories.conf import Prices

_MILLION = 1_000_000


def cost_of(prompt_tokens: int, completion_tokens: int, prices: Prices | None) -> Decimal | None:
    """US dollars for so many tokens; None when nobody said what they cost."""
    if prices is None:
        return None
    total = prompt_tokens * prices.prompt + completion_tokens * prices.completion
    return (total / _MILLION).quantize(Decimal("0.000001"))
