"""What goes wrong at the endpoints of models and embeddings."""

from typing import ClassVar

from memories.exceptions.requests import Conflict, MemoryHubError


class ModelError(MemoryHubError):
    """The call to the language model failed."""

    code = "model_error"
    # Not about one batch: the endpoint would most likely fail the others as well.
    endpoint_wide: ClassVar[bool] = False

    def __init__(self, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        # Of an answer that is paid for although it cannot be used.
        self.prompt_tokens = self.completion_tokens = 0


class ModelUnavailable(ModelError):
    """The model endpoint could not be reached or returned a server error."""

    code = "model_unavailable"
    endpoint_wide = True
    retryable = True


class ModelTimeout(ModelError):
    """The model endpoint took longer than MEMORYHUB_LLM_TIMEOUT for one call."""

    code = "model_timeout"
    endpoint_wide = True
    retryable = True


class ModelRateLimited(ModelError):
    """The model endpoint limits the rate of requests."""

    code = "model_rate_limited"
    endpoint_wide = True
    retryable = True


class ModelRefused(ModelError):
    """The model or its content filter refused to answer."""

    code = "model_refused"


class ModelAnswerInvalid(ModelError):
    """The model's answer is not the requested JSON."""

    code = "model_answer_invalid"
    retryable = True


class ModelAnswerTruncated(ModelError):
    """The model reached its output limit. The batch must become smaller."""

    code = "model_answer_truncated"
    retryable = True


class ModelMisconfigured(ModelError):
    """The model endpoint rejected the API key, the model name or the address. Check the settings."""

    code = "model_misconfigured"
    endpoint_wide = True


class EmbeddingError(MemoryHubError):
    """The texts could not be embedded."""

    code = "embedding_error"

    def __init__(self, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class EmbeddingUnavailable(EmbeddingError):
    """The embedding endpoint could not be reached, returned a server error, or limits the rate of requests."""

    code = "embedding_unavailable"
    retryable = True


class EmbeddingTimeout(EmbeddingError):
    """The embedding endpoint took longer than MEMORYHUB_EMBEDDING_TIMEOUT for one call."""

    code = "embedding_timeout"
    retryable = True


class EmbeddingAnswerInvalid(EmbeddingError):
    """The embedding endpoint did not return one usable vector per text."""

    code = "embedding_answer_invalid"
    retryable = True


class EmbeddingRefused(EmbeddingError):
    """The embedding endpoint rejected these texts."""

    code = "embedding_refused"


class EmbeddingMisconfigured(EmbeddingError):
    """The embedding endpoint rejected the API key, the model name or the address. Check the settings."""

    code = "embedding_misconfigured"


class RerankFailed(MemoryHubError):
    """The reranker gave no usable scores."""

    code = "rerank_failed"
    retryable = True


class ReembedRunning(Conflict):
    """Another process is changing the embedding model. Wait for it, or stop it; the next one continues where it
    stopped."""

    code = "reembed_running"


class DecayRunning(Conflict):
    """A forgetting pass is running for this tenant. Wait until it is done."""

    code = "decay_running"


class RetentionRunning(Conflict):
    """A retention pass is running for this tenant. Wait until it is done."""

    code = "retention_running"


class ReembedUnfinished(MemoryHubError):
    """Some texts could not be embedded. The finished ones are kept. Run the command again."""

    code = "reembed_unfinished"
    retryable = True
