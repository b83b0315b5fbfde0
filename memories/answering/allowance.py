"""How many tokens the calls for one answer may use, and what they may cost: counted before each call is made.

A prompt is counted in the vocabulary of the model that reads it, or in the dearest one that is known. What is left is
the most that the model may write. So the bound holds before anything is asked, whatever the endpoint reports later.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any

from memories.conf import LLMConfig
from memories.llm import tokens
from memories.llm.answers import AnswerFormat
from memories.llm.prices import cost_of
from memories.llm.prompts.framing import Message
from memories.llm.tokenizers import CONSERVATIVE, of_model

# What a chat template puts around a message, at most.
AROUND_MESSAGE = 12
_MILLION = 1_000_000


@dataclass
class Allowance:
    """What is left of the tokens, and of the cost in US dollars (None: no bound)."""

    config: LLMConfig
    tokens: int
    cost: Decimal | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    # What the call may use that is about to be made: endpoints that report nothing have used it.
    _asked: tuple[int, int] = (0, 0)
    # What all calls have used at most, read and written.
    _read: int = 0
    _written: int = 0

    def room_for(self, messages: Sequence[Message], answer: AnswerFormat[Any]) -> int:
        """How many tokens the model may write after this prompt; 0 or less if it may not be asked."""
        prompt = self.size_of(messages, answer)
        room = self.tokens - self._read - self._written - prompt
        if self.cost is not None and self.config.prices is not None:
            spent = cost_of(self._read + prompt, self._written, self.config.prices) or Decimal(0)
            price = self.config.prices.completion / _MILLION
            left = self.cost - spent
            if price > 0:
                room = min(room, int((left / price).to_integral_value(ROUND_DOWN)))
            elif left < 0:
                room = 0
        return room

    def ask(self, messages: Sequence[Message], answer: AnswerFormat[Any], *, most: int) -> int:
        """The most that the model may write now, at most `most`; to be called before it is asked."""
        limit = min(most, self.room_for(messages, answer))
        self._asked = (self.size_of(messages, answer), limit)
        return limit

    def add(self, prompt_tokens: int, completion_tokens: int) -> None:
        """What the endpoint reported of the call, or 0 for what it did not."""
        self.calls += 1
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self._read += max(prompt_tokens, self._asked[0])
        self._written += completion_tokens or self._asked[1]

    @property
    def spent(self) -> Decimal | None:
        """What the calls cost, in US dollars; None where nobody said what they cost, or for no call."""
        return cost_of(self.prompt_tokens, self.completion_tokens, self.config.prices) if self.calls else None

    def size_of(self, messages: Sequence[Message], answer: AnswerFormat[Any]) -> int:
        """Tokens of a prompt and of the form that is asked for, at most."""
        texts = [*(message["content"] for message in messages), json.dumps(answer.schema)]
        tokenizer = of_model(self.config.model, unknown=CONSERVATIVE)
        # Instructions and forms come again, and a prompt is measured more than once.
        return sum(tokens.count_once(text, tokenizer) + AROUND_MESSAGE for text in texts)
