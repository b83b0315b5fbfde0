"""Typed access to the settings: the numbers of the rules (with a tenant's own) and the model's endpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from django.conf import settings

LLM_OFF = "off"
LLM_RULES = "rules"
EMBEDDINGS_LOCAL = "local"
EMBEDDINGS_OPENAI = "openai"
# Vectors of hashed words, for tests.
EMBEDDINGS_HASHED = "hashed"
LOCAL_EMBEDDINGS = ("use-multilingual-3", "use-multilingual-3+e5-small")
# An allergy must not fade, nor who somebody is.
HALF_LIVES: Mapping[str, float | None] = {"identity": None, "relationship": None, "constraint": None}
_EMBEDDING_MODELS = {
    EMBEDDINGS_LOCAL: LOCAL_EMBEDDINGS[0],
    EMBEDDINGS_OPENAI: "text-embedding-3-small",
    EMBEDDINGS_HASHED: "hashed",
}


@dataclass(frozen=True)
class Rules:
    """The numbers of docs/rules: seconds, counts and shares of 1 as named."""

    debounce_seconds: int
    max_wait_seconds: int
    lease_seconds: int
    max_attempts: int
    rounds_due_at_once: int = 20
    tokens_due_at_once: int = 6_000
    batch_tokens: int = 8_000
    max_model_calls: int = 4
    known_facts: int = 60
    min_confidence: float = 0.7
    min_importance: float = 0.2
    served_confidence: float = 0.6
    context_corrections: int = 10
    context_standing: int = 10
    context_facts: int = 20
    context_episodes: int = 3
    # Active facts of one person, 10 to 5,000; 0: no bound.
    capacity: int = 500
    trust_assistant: bool = False
    # Working memory (rules.md, 6.1). Compaction keeps at most this share of either limit; it waits for quiet, since
    # reading trims the window anyway.
    window_tokens: int = 8_000
    window_rounds: int = 10
    window_keep: float = 0.8
    compaction_quiet_seconds: int = 5
    compaction_wait_seconds: int = 60
    # Episodes (6.2, 6.3).
    idle_seconds: int = 1_800
    episode_turns: int = 4
    episode_quality: float = 0.5
    # Of importance, decayed: below it an episode is not served.
    served_importance: float = 0.3
    # Decay and forgetting (7). Half-lives in days by category; None: it never fades; a missing one is `half_life_days`.
    half_life_days: float = 90.0
    half_lives: Mapping[str, float | None] = field(default_factory=lambda: dict(HALF_LIVES))
    grace_days: float = 30.0
    forget_below: float = 0.2
    forget_episodes_below: float = 0.1
    trash_days: int = 30
    brake_share: float = 0.2
    brake_count: int = 100
    # Local hour of the nightly pass.
    nightly_hour: int = 3
    # Upkeep (7.5), off by default.
    staleness_review: bool = False
    stale_days: int = 90
    stale_least: int = 3
    stale_most: int = 10
    merge_crowded: bool = False
    crowded_facts: int = 8
    merged_most: int = 8


@dataclass(frozen=True)
class Rate:
    """How many requests a key may make in each window of `seconds`."""

    requests: int
    seconds: int


class Overrides(Protocol):
    """What a tenant may set for itself; None keeps the hub's own number."""

    debounce_seconds: int | None
    max_wait_seconds: int | None
    lease_seconds: int | None
    max_attempts: int | None
    trust_assistant: bool


@dataclass(frozen=True)
class LLMConfig:
    """Which model is asked: mode is openai, scripted, rules (none) or off; timeout in seconds for a whole call."""

    mode: str
    model: str
    timeout: float
    concurrency: int
    api_key: str
    base_url: str
    script: str


@dataclass(frozen=True)
class EmbeddingConfig:
    """What makes vectors: mode is local or openai (hashed in tests); dimensions 0 are the model's own.

    timeout: seconds for a whole call to an endpoint; query_timeout: for one that a request waits for.
    """

    mode: str
    model: str
    dimensions: int
    timeout: float
    query_timeout: float
    api_key: str
    base_url: str


@dataclass(frozen=True)
class RerankConfig:
    """What orders the best results anew: path names a function ("": none); seconds it may take; the endpoint's own."""

    path: str
    timeout: float
    url: str
    model: str
    api_key: str


def rules(tenant: Overrides) -> Rules:
    """The numbers that hold for this tenant."""
    own = {
        "debounce_seconds": tenant.debounce_seconds,
        "max_wait_seconds": tenant.max_wait_seconds,
        "lease_seconds": tenant.lease_seconds,
        "max_attempts": tenant.max_attempts,
    }
    given: dict[str, Any] = {name: value for name, value in own.items() if value is not None}
    numbers = replace(hub_rules(), **given)
    # A tenant cannot see how long a call may take, and a lease that ends during one lets another worker repeat it.
    lease_seconds = max(numbers.lease_seconds, int(settings.MEMORYHUB_LLM_TIMEOUT) + 1)
    return replace(numbers, lease_seconds=lease_seconds, trust_assistant=tenant.trust_assistant)


def hub_rules() -> Rules:
    """The numbers of the whole hub, before any tenant's own."""
    return Rules(
        debounce_seconds=settings.MEMORYHUB_DEBOUNCE_SECONDS,
        max_wait_seconds=settings.MEMORYHUB_MAX_WAIT_SECONDS,
        lease_seconds=settings.MEMORYHUB_LEASE_SECONDS,
        max_attempts=settings.MEMORYHUB_MAX_ATTEMPTS,
    )


def throttle(scope: str) -> Rate | None:
    """The limit for a key's requests of this scope; None when there is none."""
    found: tuple[int, int] | None = settings.MEMORYHUB_THROTTLES.get(scope)
    return Rate(*found) if found else None


def llm() -> LLMConfig:
    """The model endpoint in force; without an endpoint the mode is rules unless another was asked for."""
    return LLMConfig(
        mode=_llm_mode(),
        model=settings.MEMORYHUB_LLM_MODEL,
        timeout=settings.MEMORYHUB_LLM_TIMEOUT,
        concurrency=settings.MEMORYHUB_LLM_CONCURRENCY,
        api_key=settings.OPENAI_API_KEY,
        base_url=settings.OPENAI_BASE_URL,
        script=settings.MEMORYHUB_LLM_SCRIPT,
    )


def _llm_mode() -> str:
    endpoint = bool(settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL)
    wanted: str = settings.MEMORYHUB_LLM or ("openai" if endpoint else LLM_RULES)
    return wanted


def embeddings() -> EmbeddingConfig:
    """The embedding in force."""
    mode: str = settings.MEMORYHUB_EMBEDDINGS
    base_url: str = settings.MEMORYHUB_EMBEDDING_BASE_URL
    # The key of one endpoint is never shown to another.
    fallback = "" if base_url else settings.OPENAI_API_KEY
    return EmbeddingConfig(
        mode=mode,
        model=settings.MEMORYHUB_EMBEDDING_MODEL or _EMBEDDING_MODELS[mode],
        dimensions=settings.MEMORYHUB_EMBEDDING_DIMENSIONS,
        timeout=settings.MEMORYHUB_EMBEDDING_TIMEOUT,
        query_timeout=min(settings.MEMORYHUB_EMBEDDING_TIMEOUT, settings.MEMORYHUB_EMBEDDING_QUERY_TIMEOUT),
        api_key=settings.MEMORYHUB_EMBEDDING_API_KEY or fallback,
        base_url=base_url or settings.OPENAI_BASE_URL,
    )


def reranking() -> RerankConfig:
    """The reranker in force."""
    return RerankConfig(
        path=settings.MEMORYHUB_RERANKER,
        timeout=settings.MEMORYHUB_RERANK_TIMEOUT,
        url=settings.MEMORYHUB_RERANK_URL,
        model=settings.MEMORYHUB_RERANK_MODEL,
        api_key=settings.MEMORYHUB_RERANK_API_KEY,
    )
