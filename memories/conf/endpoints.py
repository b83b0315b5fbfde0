"""What the hub talks to, from its settings: the model, the embedding, the reranker, and how often a key may ask."""

from dataclasses import dataclass
from decimal import Decimal

from django.conf import settings

LLM_OFF = "off"
LLM_RULES = "rules"
EMBEDDINGS_LOCAL = "local"
EMBEDDINGS_OPENAI = "openai"
# Vectors of hashed words, for tests.
EMBEDDINGS_HASHED = "hashed"
LOCAL_EMBEDDINGS = ("use-multilingual-3", "use-multilingual-3+e5-small")
_EMBEDDING_MODELS = {
    EMBEDDINGS_LOCAL: LOCAL_EMBEDDINGS[0],
    EMBEDDINGS_OPENAI: "text-embedding-3-small",
    EMBEDDINGS_HASHED: "hashed",
}


@dataclass(frozen=True)
class Rate:
    """How many requests a key may make in each window of `seconds`."""

    requests: int
    seconds: int


@dataclass(frozen=True)
class Prices:
    """US dollars for a million tokens that a model reads, and writes."""

    prompt: Decimal
    completion: Decimal


@dataclass(frozen=True)
class LLMConfig:
    """Which model is asked: mode is openai, scripted, rules (none) or off; timeout in seconds for a whole call; prices
    where they are known."""

    mode: str
    model: str
    timeout: float
    concurrency: int
    api_key: str
    base_url: str
    script: str
    prices: Prices | None = None


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
        prices=Prices(*settings.MEMORYHUB_LLM_PRICES) if settings.MEMORYHUB_LLM_PRICES else None,
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
