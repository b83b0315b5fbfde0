"""Typed access to the settings: the numbers of the rules (with a tenant's own) and the model's endpoint."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol

from django.conf import settings

from memories.conf.endpoints import (
    EMBEDDINGS_HASHED,
    EMBEDDINGS_LOCAL,
    EMBEDDINGS_OPENAI,
    LLM_OFF,
    LLM_OPENAI,
    LLM_RULES,
    LOCAL_EMBEDDINGS,
    EmbeddingConfig,
    LLMConfig,
    OwnModel,
    Prices,
    Rate,
    RerankConfig,
    decrypted_model_key,
    decrypted_webhook_secret,
    embeddings,
    encrypt_model_key,
    encrypt_webhook_secret,
    is_private_endpoint,
    llm,
    llm_mode,
    private_endpoint,
    renewed_model_key,
    renewed_webhook_secret,
    reranking,
    throttle,
)
from memories.conf.kinds import Number, NumberKind, SettingGroup, shown
from memories.conf.numbers import (
    FADING,
    NUMBERS,
    OF_THE_ENVIRONMENT,
    contradictions,
    own_numbers,
    unusable_numbers,
    warnings,
)
from memories.conf.pepper import digest, digest_of_person
from memories.conf.table import HALF_LIVES, Rules

__all__ = [
    "EMBEDDINGS_HASHED",
    "EMBEDDINGS_LOCAL",
    "EMBEDDINGS_OPENAI",
    "FADING",
    "HALF_LIVES",
    "LLM_OFF",
    "LLM_OPENAI",
    "LLM_RULES",
    "LOCAL_EMBEDDINGS",
    "NUMBERS",
    "OF_THE_ENVIRONMENT",
    "EmbeddingConfig",
    "LLMConfig",
    "Number",
    "NumberKind",
    "Overrides",
    "OwnModel",
    "Prices",
    "Rate",
    "RerankConfig",
    "Rules",
    "SettingGroup",
    "contradictions",
    "decrypted_model_key",
    "decrypted_webhook_secret",
    "digest",
    "digest_of_person",
    "embeddings",
    "encrypt_model_key",
    "encrypt_webhook_secret",
    "hub_rules",
    "is_private_endpoint",
    "llm",
    "llm_mode",
    "own_numbers",
    "private_endpoint",
    "renewed_model_key",
    "renewed_webhook_secret",
    "reranking",
    "rules",
    "shown",
    "throttle",
    "unusable_numbers",
    "warnings",
]

_VARIABLES = [f"MEMORYHUB_{name.upper()}" for name in OF_THE_ENVIRONMENT]


class Overrides(Protocol):
    """What a tenant may set for itself: numbers by name, as they are stored; one that is missing is the hub's own."""

    numbers: Any
    trust_assistant: bool


def rules(tenant: Overrides) -> Rules:
    """The numbers that hold for this tenant; those of its own that cannot be used count as missing.

    Every request asks for them. Nothing is kept between two calls but the hub's, so a change holds at once.
    """
    hub = hub_rules()
    if not tenant.numbers and not tenant.trust_assistant:
        return hub
    own = own_numbers(tenant.numbers)
    if "half_lives" in own:
        own["half_lives"] = {**hub.half_lives, **own["half_lives"]}
    if "lease_seconds" in own:
        own["lease_seconds"] = _outlasting_a_call(own["lease_seconds"], settings.MEMORYHUB_LLM_TIMEOUT)
    return replace(hub, **own, trust_assistant=tenant.trust_assistant)


def hub_rules() -> Rules:
    """The numbers of the whole hub, before any tenant's own."""
    return _hub_rules(tuple([getattr(settings, variable) for variable in _VARIABLES]), settings.MEMORYHUB_LLM_TIMEOUT)


@lru_cache(maxsize=8)
def _hub_rules(given: tuple[int, ...], timeout: float) -> Rules:
    numbers: dict[str, Any] = dict(zip(OF_THE_ENVIRONMENT, given, strict=True))
    hub = Rules(**numbers)
    return replace(hub, lease_seconds=_outlasting_a_call(hub.lease_seconds, timeout))


def _outlasting_a_call(lease: int, timeout: float) -> int:
    """A tenant cannot see how long a call may take, and a lease that ends during one lets another worker repeat it."""
    return max(lease, int(timeout) + 1)
