"""Everything the hub raises on purpose.

MemoryHubError                     code, HTTP status, retryable; the message is the class docstring
├── InvalidInput            400    with the place (`pointer`) of each fault
├── NotFound                404
├── Conflict                409
│   ├── OperatorWord        409
│   ├── FactLocked          409    by a key; a change that lifts the lock is taken
│   ├── ExternalIdReused    409
│   ├── DuplicateFact       409
│   ├── CapacityReached     409
│   ├── IdempotencyKeyBusy  409    with Retry-After
│   ├── ReembedRunning      409    another process builds a space
│   └── DecayRunning        409    a pass of forgetting is under way
├── PreconditionFailed      412
├── MessageTooLarge         413
├── IdempotencyKeyReused    422
├── PersonRestricted        423
├── LeaseLost                      another worker took the batch over, or the person was erased
├── ModelError                     a call to the language model failed
│   ├── ModelUnavailable           network, reset, 5xx; retryable
│   ├── ModelTimeout               the whole call took too long; retryable
│   ├── ModelRateLimited           429; retryable, perhaps with retry_after
│   ├── ModelRefused               the model or its filter declined
│   ├── ModelAnswerInvalid         not the JSON that was asked for; retryable
│   ├── ModelAnswerTruncated       stopped at its length limit; retryable
│   └── ModelMisconfigured         key, model or address refused
├── EmbeddingError                 texts could not be turned into vectors
│   ├── EmbeddingUnavailable       network, reset, 5xx, 429; retryable, perhaps with retry_after
│   ├── EmbeddingTimeout           the whole call took too long; retryable
│   ├── EmbeddingAnswerInvalid     too few vectors, another dimension, not finite; retryable
│   ├── EmbeddingRefused           these texts will never be taken
│   └── EmbeddingMisconfigured     key, model or address refused, or the model is not installed
├── RerankFailed                   the reranker raised, was too slow or gave no usable scores
└── ReembedUnfinished              the texts could not all be embedded; to be run again
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from django.utils.translation import gettext


@dataclass(frozen=True)
class Fault:
    """One fault of an input: where (JSON pointer or parameter name), which, and what to do."""

    pointer: str
    code: str
    detail: str


class MemoryHubError(Exception):
    """The hub could not do this."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, detail: str = "", *, faults: Sequence[Fault] = ()) -> None:
        # In the language in force: English for the API and commands.
        self.detail = detail or gettext(" ".join((type(self).__doc__ or "").split()))
        self.faults = tuple(faults)
        super().__init__(self.detail)


class InvalidInput(MemoryHubError):
    """The request is not valid; see the listed errors."""

    code = "invalid"
    status = 400

    @classmethod
    def at(cls, pointer: str, detail: str, *, code: str = "invalid") -> "InvalidInput":
        """One fault at one place."""
        return cls(faults=[Fault(pointer=pointer, code=code, detail=detail)])


class NotFound(MemoryHubError):
    """There is no such object."""

    code = "not_found"
    status = 404


class Conflict(MemoryHubError):
    """The object's present state does not allow this."""

    code = "conflict"
    status = 409


class OperatorWord(Conflict):
    """An operator corrected, pinned or locked this: only an operator can change it."""

    code = "operator_word"


class FactLocked(Conflict):
    """The fact is locked: no key changes it until the lock is lifted."""

    code = "locked"


class ExternalIdReused(Conflict):
    """The session already has a turn with this external_id and other content; use a new external_id."""

    code = "external_id_reused"


class DuplicateFact(Conflict):
    """The person already has a fact with this text."""

    code = "duplicate"

    def __init__(self, detail: str = "", *, fact_id: UUID | None = None) -> None:
        super().__init__(detail)
        self.fact_id = fact_id


class CapacityReached(Conflict):
    """The person has as many active facts as the tenant allows; forget some, or raise the capacity."""

    code = "capacity"


class IdempotencyKeyBusy(Conflict):
    """The first request with this Idempotency-Key is still being worked on; send it again a little later."""

    code = "idempotency_key_busy"


class PreconditionFailed(MemoryHubError):
    """The object has changed since the version named in If-Match; read it again."""

    code = "version_mismatch"
    status = 412


class MessageTooLarge(MemoryHubError):
    """A message may be at most 1 MB."""

    code = "too_large"
    status = 413


class IdempotencyKeyReused(MemoryHubError):
    """This Idempotency-Key came with another request before; use a new one for each request."""

    code = "idempotency_key_reused"
    status = 422


class PersonRestricted(MemoryHubError):
    """This person is restricted while a privacy case is open: nothing is stored."""

    code = "restricted"
    status = 423


class LeaseLost(MemoryHubError):
    """The claim on this batch has passed to somebody else; the result is thrown away."""

    code = "lease_lost"


class ModelError(MemoryHubError):
    """The call to the language model failed."""

    code = "model_error"
    # Not about one batch: the endpoint would most likely fail the others as well.
    endpoint_wide: ClassVar[bool] = False

    def __init__(self, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class ModelUnavailable(ModelError):
    """The model endpoint could not be reached or answered with a server error."""

    code = "model_unavailable"
    endpoint_wide = True
    retryable = True


class ModelTimeout(ModelError):
    """The model endpoint took longer than MEMORYHUB_LLM_TIMEOUT for one call."""

    code = "model_timeout"
    endpoint_wide = True
    retryable = True


class ModelRateLimited(ModelError):
    """The model endpoint asked us to slow down."""

    code = "model_rate_limited"
    endpoint_wide = True
    retryable = True


class ModelRefused(ModelError):
    """The model or its content filter declined to answer."""

    code = "model_refused"


class ModelAnswerInvalid(ModelError):
    """The model's answer is not the JSON that was asked for."""

    code = "model_answer_invalid"
    retryable = True


class ModelAnswerTruncated(ModelError):
    """The model stopped at its length limit; the batch must become smaller."""

    code = "model_answer_truncated"
    retryable = True


class ModelMisconfigured(ModelError):
    """The model endpoint refused the key, the model's name or the address; check the settings."""

    code = "model_misconfigured"
    endpoint_wide = True


class EmbeddingError(MemoryHubError):
    """Texts could not be turned into vectors."""

    code = "embedding_error"

    def __init__(self, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class EmbeddingUnavailable(EmbeddingError):
    """The embedding endpoint could not be reached, answered with a server error or asked us to slow down."""

    code = "embedding_unavailable"
    retryable = True


class EmbeddingTimeout(EmbeddingError):
    """The embedding endpoint took longer than MEMORYHUB_EMBEDDING_TIMEOUT for one call."""

    code = "embedding_timeout"
    retryable = True


class EmbeddingAnswerInvalid(EmbeddingError):
    """The embedding endpoint's answer is not one usable vector per text."""

    code = "embedding_answer_invalid"
    retryable = True


class EmbeddingRefused(EmbeddingError):
    """The embedding endpoint will not take these texts."""

    code = "embedding_refused"


class EmbeddingMisconfigured(EmbeddingError):
    """The embedding endpoint refused the key, the model's name or the address; check the settings."""

    code = "embedding_misconfigured"


class RerankFailed(MemoryHubError):
    """The reranker gave no usable scores."""

    code = "rerank_failed"
    retryable = True


class ReembedRunning(Conflict):
    """Another process is changing the embedding model; wait for it, or end it: the next one goes on where it was."""

    code = "reembed_running"


class DecayRunning(Conflict):
    """A pass of forgetting is under way for this tenant: wait until it is done."""

    code = "decay_running"


class ReembedUnfinished(MemoryHubError):
    """Not every text could be embedded; what is done is kept, run the command again."""

    code = "reembed_unfinished"
    retryable = True
