"""The one way to ask a language model: a backend is picked by name, as Django does for mail."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from django.utils.module_loading import import_string

from memories import conf
from memories.exceptions import ModelError, ModelMisconfigured
from memories.llm.answers import A, AnswerFormat
from memories.llm.calls import Call, Completion, Written
from memories.llm.prompts.framing import Message
from memories.telemetry import traces
from memories.telemetry.families import MODEL_FAILURES, MODEL_SECONDS

# By dotted path, so that a process that never asks a model never pays for importing its library.
BACKENDS = {
    "openai": "memories.llm.backends.openai.complete",
    "scripted": "memories.llm.backends.scripted.complete",
}
# How to be told what is written before all of it is; a backend without one tells it at the end.
STREAMS = {"openai": "memories.llm.backends.openai.stream"}
# How to learn whether an endpoint answers at all; a backend without one always does.
CHECKS = {"openai": "memories.llm.backends.openai.check"}


def is_configured(config: conf.LLMConfig | None = None) -> bool:
    """Whether there is a model to ask (default: the hub's); its mode says which, or off."""
    return (config or conf.llm()).mode in BACKENDS


def preload() -> None:
    """Load the backend in use (about 1 s for openai's library), so that no batch waits for it."""
    if is_configured():
        import_string(BACKENDS[conf.llm().mode])


def complete(
    *,
    messages: Sequence[Message],
    answer: AnswerFormat[A],
    max_calls: int = 4,
    before_call: Callable[[], None] = lambda: None,
    config: conf.LLMConfig | None = None,
    most_tokens: int | None = None,
    picture: str = "",
) -> Completion[A]:
    """The model's answer to `messages`, checked against `answer`.

    An endpoint that refuses a form of the request is asked again in a simpler one: at most `max_calls` HTTP
    calls, each bounded by the configured timeout and announced through `before_call`, whose exceptions pass. It may
    write `most_tokens`; an answer that has more is ModelAnswerTruncated. `picture`: a data URL, shown with the last
    message.
    Raises a subclass of ModelError, and nothing else, when there is no good answer. Opens no transaction.
    """
    config = config or conf.llm()
    if config.mode not in BACKENDS:
        raise ModelMisconfigured("No language model is configured.")
    backend: Callable[[Call[A]], Completion[A]] = import_string(BACKENDS[config.mode])
    with _measured(answer.name), traces.span("model call", prompt=answer.name, model=config.model):
        return backend(Call(messages, answer, config, max_calls, before_call, most_tokens, picture))


def stream(
    *,
    messages: Sequence[Message],
    answer: AnswerFormat[A],
    before_call: Callable[[], None],
    has_left: Callable[[], bool] | None,
    config: conf.LLMConfig,
    most_tokens: int,
) -> Generator[Written, None, Completion[A]]:
    """As complete(), and tells what the model has written so far each time that more of it comes.

    To close the generator ends the call. `has_left` is asked while it waits: once nobody waits for the answer, it is
    a ModelTimeout. Errors: a subclass of ModelError.
    """
    call = Call(messages, answer, config, 4, before_call, most_tokens, has_left=has_left)
    backend = import_string((STREAMS if config.mode in STREAMS else BACKENDS)[config.mode])
    began = perf_counter()
    try:
        with _measured(answer.name):
            completion: Completion[A] = (yield from backend(call)) if config.mode in STREAMS else backend(call)
        return completion
    finally:
        # What runs between two parts belongs to no call: there is no span around them.
        traces.record("model call", perf_counter() - began, prompt=answer.name, model=config.model)


@contextmanager
def _measured(prompt: str) -> Iterator[None]:
    began = perf_counter()
    try:
        yield
    except ModelError as error:
        MODEL_FAILURES.count(prompt, error.code)
        raise
    finally:
        MODEL_SECONDS.observe(perf_counter() - began, prompt)


def check(*, before_call: Callable[[], None] = lambda: None, config: conf.LLMConfig | None = None) -> None:
    """Ask the endpoint for one word, without anybody's data: one HTTP call, announced through `before_call`.

    Raises the ModelError of an endpoint that would most likely fail everybody (`endpoint_wide`); whatever else it
    says is an answer.
    """
    config = config or conf.llm()
    if config.mode not in CHECKS:
        return
    before_call()
    ask: Callable[[conf.LLMConfig], None] = import_string(CHECKS[config.mode])
    try:
        ask(config)
    except ModelError as error:
        if error.endpoint_wide:
            raise
