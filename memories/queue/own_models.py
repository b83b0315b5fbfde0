"""Which model a tenant's batches ask: its own (the admin's form), else the hub's (the environment)."""

import uuid

from memories import conf
from memories.models import LanguageModel
from memories.models.hand_written import columns_of, first, read, selected

_COLUMNS = columns_of(LanguageModel)
# By hand: every request to the gateway asks for it before the first byte.
_OWN = f"""
    SELECT {selected("m", _COLUMNS)} FROM memories_languagemodel m WHERE m.tenant_id = %(tenant)s
"""  # noqa: S608  (columns of our own model)


def own_of(tenant_id: uuid.UUID) -> LanguageModel | None:
    """What the tenant has of its own."""
    row = first(_OWN, {"tenant": tenant_id})
    return read(LanguageModel, _COLUMNS, row) if row else None


def config_of(tenant_id: uuid.UUID | None) -> conf.LLMConfig:
    """The model in force for this tenant; None: the hub's. One query, unless extraction is off."""
    if tenant_id is None or conf.llm().mode == conf.LLM_OFF:
        return conf.llm()
    return conf.llm(own_of(tenant_id))
