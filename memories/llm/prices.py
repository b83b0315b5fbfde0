"""What a call costs, where the prices of the model are set."""

from decimal import Decimal

from memories import conf

_MILLION = 1_000_000


def cost_of(prompt_tokens: int, completion_tokens: int) -> Decimal | None:
    """US dollars for so many tokens; None when nobody said what they cost."""
    prices = conf.llm().prices
    if prices is None:
        return None
    total = prompt_tokens * prices.prompt + completion_tokens * prices.completion
    return (total / _MILLION).quantize(Decimal("0.000001"))
