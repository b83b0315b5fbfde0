"""What model calls besides extraction cost: added to the tenant's day, in the transaction of what they were for."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from memories.llm.calls import Completion
from memories.llm.prices import cost_of
from memories.models import ModelUse, Tenant

# The row is locked to the end of the transaction: this is its last statement.
_ADD = """
    INSERT INTO memories_modeluse (tenant_id, day, purpose, calls, prompt_tokens, completion_tokens, cost)
    VALUES (%s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT (tenant_id, day, purpose) DO UPDATE SET
        calls = memories_modeluse.calls + excluded.calls,
        prompt_tokens = memories_modeluse.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = memories_modeluse.completion_tokens + excluded.completion_tokens,
        cost = CASE WHEN excluded.cost IS NULL THEN memories_modeluse.cost
            ELSE coalesce(memories_modeluse.cost, 0) + excluded.cost END
"""


@dataclass
class Spent:
    """Tokens of an attempt's calls, as the endpoint reported them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, prompt_tokens: int, completion_tokens: int) -> None:
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens

    def add_answer(self, completion: Completion[Any]) -> None:
        self.add(completion.prompt_tokens, completion.completion_tokens)


def note(tenant: Tenant, purpose: ModelUse.Purpose, *, calls: int, spent: Spent, now: datetime) -> None:
    """Add the calls to the tenant's day."""
    if not calls:
        return
    tokens = (spent.prompt_tokens, spent.completion_tokens)
    day = now.astimezone(UTC).date()
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [tenant.pk, day, purpose, calls, *tokens, cost_of(*tokens)])
