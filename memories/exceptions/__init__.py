"""Everything the hub raises on purpose.

MemoryHubError                     code, HTTP status, retryable; the message is the class docstring
├── InvalidInput            400    with the place (`pointer`) of each fault
│   └── OffsetBeyondEnd     400    of a file's lines
├── KeyBound                403    a key for one person or agent named another one
├── NotFound                404
│   ├── FileNotFound        404
│   └── TextNotFound        404    in a file
├── Conflict                409
│   ├── ModelUntested       409
│   ├── PreviewRefused      409    extraction is off, or a cap is reached
│   ├── NoPrice             409    a cost is to be bounded, and nobody said what the model costs
│   ├── OperatorWord        409
│   ├── FactLocked          409    by a key; a change that lifts the lock is taken
│   ├── TripleOfFact        409    only the fact changes it
│   ├── ExternalIdReused    409
│   ├── AlreadyRedacted     409    whoever asks with `once` is told
│   ├── ContentForbidden    409    with the category of the tenant's content policy
│   ├── DuplicateFact       409
│   ├── CapacityReached     409
│   ├── TextNotUnique       409    in a file, with how often it is there
│   ├── FileIsBinary        409
│   ├── FileIsFolder        409
│   ├── FolderIsFile        409
│   ├── MayNotWrite         409
│   ├── NotAMember          409
│   ├── TooManyEntries      409
│   ├── TooManyFiles        409
│   ├── TooManySteps        409
│   ├── TooManyTrajectories 409
│   ├── ReviewNeeded        409    a key's text, or an agent's key, would change what is served
│   │   └── BeyondTrust     409    an agent's key would end it
│   ├── ConfirmationNeeded  409    a text with flags would be public; an operator can overrule that when publishing
│   ├── RefusedBefore       409    an operator turned it down, and no user says it again
│   ├── IdempotencyKeyBusy  409    with Retry-After
│   ├── ExportNotReady      409    with Retry-After
│   ├── ReembedRunning      409    another process builds a space
│   ├── DecayRunning        409    a pass of forgetting is under way
│   └── RetentionRunning    409    a pass of retention is under way
├── PreconditionFailed      412
├── MessageTooLarge         413
├── FileTooLarge            413
├── TooManySecrets          413    looking for secrets would take too long
├── RequestTooCostly        413    one request's budget of rows, bytes and seconds is spent
├── IdempotencyKeyReused    422
├── PersonRestricted        423
├── HubBusy                 503    it would wait too long for a thread; with Retry-After
├── Erased                  410    the person asked to be erased, and the tombstone refuses their id
├── ExportGone              410
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

from memories.exceptions.endpoints import (
    DecayRunning,
    EmbeddingAnswerInvalid,
    EmbeddingError,
    EmbeddingMisconfigured,
    EmbeddingRefused,
    EmbeddingTimeout,
    EmbeddingUnavailable,
    ModelAnswerInvalid,
    ModelAnswerTruncated,
    ModelError,
    ModelMisconfigured,
    ModelRateLimited,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    ReembedRunning,
    ReembedUnfinished,
    RerankFailed,
    RetentionRunning,
)
from memories.exceptions.requests import (
    AlreadyRedacted,
    BeyondTrust,
    CapacityReached,
    ConfirmationNeeded,
    Conflict,
    ContentForbidden,
    DuplicateFact,
    Erased,
    ExportGone,
    ExportNotReady,
    ExternalIdReused,
    FactLocked,
    Fault,
    FileIsBinary,
    FileIsFolder,
    FileNotFound,
    FileTooLarge,
    FolderIsFile,
    HubBusy,
    IdempotencyKeyBusy,
    IdempotencyKeyReused,
    InvalidInput,
    KeyBound,
    LeaseLost,
    MayNotWrite,
    MemoryHubError,
    MessageTooLarge,
    ModelUntested,
    NoPrice,
    NotAMember,
    NotFound,
    OffsetBeyondEnd,
    OperatorWord,
    PersonRestricted,
    PreconditionFailed,
    PreviewRefused,
    RefusedBefore,
    RequestTooCostly,
    ReviewNeeded,
    TextNotFound,
    TextNotUnique,
    TooManyEntries,
    TooManyFiles,
    TooManySecrets,
    TooManySteps,
    TooManyTrajectories,
    TripleOfFact,
)

__all__ = [
    "AlreadyRedacted",
    "BeyondTrust",
    "CapacityReached",
    "ConfirmationNeeded",
    "Conflict",
    "ContentForbidden",
    "DecayRunning",
    "DuplicateFact",
    "EmbeddingAnswerInvalid",
    "EmbeddingError",
    "EmbeddingMisconfigured",
    "EmbeddingRefused",
    "EmbeddingTimeout",
    "EmbeddingUnavailable",
    "Erased",
    "ExportGone",
    "ExportNotReady",
    "ExternalIdReused",
    "FactLocked",
    "Fault",
    "FileIsBinary",
    "FileIsFolder",
    "FileNotFound",
    "FileTooLarge",
    "FolderIsFile",
    "HubBusy",
    "IdempotencyKeyBusy",
    "IdempotencyKeyReused",
    "InvalidInput",
    "KeyBound",
    "LeaseLost",
    "MayNotWrite",
    "MemoryHubError",
    "MessageTooLarge",
    "ModelAnswerInvalid",
    "ModelAnswerTruncated",
    "ModelError",
    "ModelMisconfigured",
    "ModelRateLimited",
    "ModelRefused",
    "ModelTimeout",
    "ModelUnavailable",
    "ModelUntested",
    "NoPrice",
    "NotAMember",
    "NotFound",
    "OffsetBeyondEnd",
    "OperatorWord",
    "PersonRestricted",
    "PreconditionFailed",
    "PreviewRefused",
    "ReembedRunning",
    "ReembedUnfinished",
    "RefusedBefore",
    "RequestTooCostly",
    "RerankFailed",
    "RetentionRunning",
    "ReviewNeeded",
    "TextNotFound",
    "TextNotUnique",
    "TooManyEntries",
    "TooManyFiles",
    "TooManySecrets",
    "TooManySteps",
    "TooManyTrajectories",
    "TripleOfFact",
]
