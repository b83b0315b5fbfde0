"""Calls of the model that can wait for another night: those of dreams, upkeep and skills.

Before the first one the tenant's caps and its endpoint are asked; afterwards a failure is the endpoint's, or that of
what was asked about.
"""

import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from memories import conf
from memories.exceptions import ModelError
from memories.llm.calls import Completion
from memories.models import Tenant
from memories.queue import circuit_breaker, own_models, spending


def thinking_config_of(tenant: Tenant) -> conf.LLMConfig:
    """The model that dreams and proposes: the one that extracts, or the tenant's other one at the same endpoint."""
    config = own_models.config_of(tenant.pk)
    return replace(config, model=tenant.dream_model) if tenant.dream_model else config


def may_ask(tenant: Tenant, config: conf.LLMConfig, *, lease: timedelta, now: datetime) -> bool:
    """Whether no daily cap is reached and the endpoint takes calls; after an outage it is probed first, without
    anybody's data. Outside of any transaction."""
    own, owner = own_models.own_of(tenant.pk), config.tenant_id
    with transaction.atomic():
        if own and spending.wait_until(tenant, own, now=now):
            return False
        admitted = circuit_breaker.admit(lease=lease, owner=owner)
    return admitted and (not circuit_breaker.is_open(owner) or circuit_breaker.probe(owner))


def count(tenant: Tenant, config: conf.LLMConfig, used: Completion[Any] | ModelError, *, now: datetime) -> None:
    """Count what an answer, or a failed one, took for the daily caps; outside of any transaction, at once."""
    tokens = {"prompt_tokens": used.prompt_tokens, "completion_tokens": used.completion_tokens}
    spending.count(tenant, **tokens, prices=config.prices, now=now)


def note_failure(error: ModelError, config: conf.LLMConfig, *, about: uuid.UUID) -> None:
    """A failed call: the endpoint's fault after several in a row about different things, else that of `about`."""
    if error.endpoint_wide:
        circuit_breaker.count_failure(about, retry_after=error.retry_after, owner=config.tenant_id)
    else:
        circuit_breaker.close(config.tenant_id)
