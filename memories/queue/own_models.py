"""Which model a tenant's batches ask: its own (the admin's form), else the hub's (the environment)."""

import uuid

from memories import conf
from memories.models import LanguageModel


def own_of(tenant_id: uuid.UUID) -> LanguageModel | None:
    """What the tenant has of its own."""
    return LanguageModel.objects.filter(pk=tenant_id).first()


def config_of(tenant_id: uuid.UUID | None) -> conf.LLMConfig:
    """The model in force for this tenant; None: the hub's. One query, unless extraction is off."""
    if tenant_id is None or conf.llm().mode == conf.LLM_OFF:
        return conf.llm()
    return conf.llm(own_of(tenant_id))
