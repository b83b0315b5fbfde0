"""What the hub talks to, from its settings: the model, the embedding, the reranker, and how often a key may ask."""

import uuid
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol
from urllib.parse import urlsplit

from django.conf import settings

from memories.conf import second_factor_keys

LLM_OFF = "off"
LLM_RULES = "rules"
LLM_OPENAI = "openai"
EMBEDDINGS_LOCAL = "local"
EMBEDDINGS_OPENAI = "openai"
# Vectors of hashed words, for tests.
EMBEDDINGS_HASHED = "hashed"
LOCAL_EMBEDDINGS = ("use-multilingual-3", "use-multilingual-3+e5-small")
# Of the encryption of tenants' keys, so that a second factor never counts as one.
_MODEL_KEY = b"model key"
_WEBHOOK_SECRET = b"webhook secret"
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
    where they are known.

    tenant_id: the tenant whose own it is, None for the hub's. entered: its address was entered in the admin; guarded:
    and must not lead into a private network.
    """

    mode: str
    model: str
    timeout: float
    concurrency: int
    api_key: str = field(repr=False)
    base_url: str
    script: str
    prices: Prices | None = None
    tenant_id: uuid.UUID | None = None
    entered: bool = False
    guarded: bool = False


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


class OwnModel(Protocol):
    """What a tenant has of its own; an empty field is the hub's."""

    tenant_id: uuid.UUID
    model: str
    base_url: str
    # Encrypted by encrypt_model_key().
    api_key: str
    prompt_price: Decimal | None
    completion_price: Decimal | None


def llm(own: OwnModel | None = None) -> LLMConfig:
    """The model endpoint in force: the hub's, or with `own` a tenant's.

    Without an endpoint the mode is rules unless another was asked for. If the hub's is off, so are tenants'.
    """
    hub = LLMConfig(
        mode=llm_mode(),
        model=settings.MEMORYHUB_LLM_MODEL,
        timeout=settings.MEMORYHUB_LLM_TIMEOUT,
        concurrency=settings.MEMORYHUB_LLM_CONCURRENCY,
        api_key=settings.OPENAI_API_KEY,
        base_url=settings.OPENAI_BASE_URL,
        script=settings.MEMORYHUB_LLM_SCRIPT,
        prices=Prices(*settings.MEMORYHUB_LLM_PRICES) if settings.MEMORYHUB_LLM_PRICES else None,
    )
    return hub if own is None or hub.mode == LLM_OFF else _of_tenant(own, hub)


def _of_tenant(own: OwnModel, hub: LLMConfig) -> LLMConfig:
    is_another = bool(own.model or own.base_url)
    prices = None if is_another else hub.prices
    if own.prompt_price is not None and own.completion_price is not None:
        prices = Prices(own.prompt_price, own.completion_price)
    if not is_another:
        return replace(hub, prices=prices)
    config = replace(hub, model=own.model or hub.model, prices=prices, tenant_id=own.tenant_id)
    if not own.base_url:
        return config
    # The hub's own key is never shown to an endpoint that somebody entered in the admin.
    return replace(
        config,
        mode=LLM_OPENAI,
        base_url=own.base_url,
        api_key=decrypted_model_key(own.api_key) or "",
        entered=True,
        guarded=not is_private_endpoint(own.base_url),
    )


def encrypt_model_key(key: str) -> str:
    """A tenant's key of its endpoint as it is stored; "" for none."""
    return second_factor_keys.encrypt(key, purpose=_MODEL_KEY) if key else ""


def decrypted_model_key(token: str) -> str | None:
    """The key; "" for none, None if it was encrypted under a key that the hub does not have."""
    try:
        return second_factor_keys.decrypt(token, purpose=_MODEL_KEY) if token else ""
    except second_factor_keys.Unreadable:
        return None


def renewed_model_key(token: str) -> str | None:
    """The key, encrypted under the present MEMORYHUB_MFA_KEY; None if no key of the hub decrypts it."""
    if not token or second_factor_keys.is_present(token, purpose=_MODEL_KEY):
        return token
    key = decrypted_model_key(token)
    return None if key is None else encrypt_model_key(key)


def encrypt_webhook_secret(secret: str) -> str:
    """The secret of a webhook as it is stored; "" for none."""
    return second_factor_keys.encrypt(secret, purpose=_WEBHOOK_SECRET) if secret else ""


def decrypted_webhook_secret(token: str) -> str | None:
    """The secret; "" for none, None if it was encrypted under a key that the hub does not have."""
    try:
        return second_factor_keys.decrypt(token, purpose=_WEBHOOK_SECRET) if token else ""
    except second_factor_keys.Unreadable:
        return None


def renewed_webhook_secret(token: str) -> str | None:
    """The secret, encrypted under the present MEMORYHUB_MFA_KEY; None if no key of the hub decrypts it."""
    if not token or second_factor_keys.is_present(token, purpose=_WEBHOOK_SECRET):
        return token
    secret = decrypted_webhook_secret(token)
    return None if secret is None else encrypt_webhook_secret(secret)


def is_private_endpoint(url: str) -> bool:
    """Whether MEMORYHUB_PRIVATE_ENDPOINTS has the host of this address, alone or with the port."""
    named = private_endpoint(url)
    allowed = {name.casefold() for name in settings.MEMORYHUB_PRIVATE_ENDPOINTS}
    return bool(named) and not allowed.isdisjoint({named, named.rpartition(":")[0]})


def private_endpoint(url: str) -> str:
    """The host and port of this address as MEMORYHUB_PRIVATE_ENDPOINTS names them; "" if it has no host."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ""
    host = (parts.hostname or "").casefold()
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if host else ""


def llm_mode() -> str:
    """The mode of the hub's own model, as llm() has it: requests ask for it alone."""
    endpoint = bool(settings.OPENAI_API_KEY or settings.OPENAI_BASE_URL)
    wanted: str = settings.MEMORYHUB_LLM or (LLM_OPENAI if endpoint else LLM_RULES)
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
