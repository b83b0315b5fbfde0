"""What goes into a model call and what comes out of it, whichever backend makes it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol

from memories.conf import LLMConfig
from memories.llm.answers import A, AnswerFormat
from memories.llm.prompts.framing import Message


@dataclass(frozen=True)
class Call(Generic[A]):
    """One question: at most `max_calls` HTTP calls, with `before_call` before each (a lease is renewed there), and at
    most `most_tokens` in the answer."""

    messages: Sequence[Message]
    answer: AnswerFormat[A]
    config: LLMConfig
    max_calls: int
    before_call: Callable[[], None]
    most_tokens: int | None = None
    # Of a picture that stands beside the last message: a data URL.
    picture: str = ""
    # Whether nobody waits for the answer any more: then the endpoint is not waited for either.
    has_left: Callable[[], bool] | None = None


class Written(Protocol):
    """What a model has written so far."""

    @property
    def content(self) -> str:
        """Of the answer."""
        ...

    @property
    def written(self) -> str:
        """All of it, with what it thought."""
        ...


@dataclass(frozen=True)
class Completion(Generic[A]):
    """A checked answer, the model that was asked, the tokens as reported (0 when they were not) and the number
    of HTTP calls that it took."""

    answer: A
    model: str
    prompt_tokens: int
    completion_tokens: int
    calls: int

    @property
    def extractor(self) -> str:
        """The name that every memory of this answer carries."""
        return f"llm:{self.model}"
