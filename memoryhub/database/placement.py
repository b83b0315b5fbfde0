"""Where a table lies on a distributed database (docs/distributed.md). The models say it, so a new one is covered.

Distributed: each row lies with its tenant. Reference: a copy on each node. Local: on the coordinator alone.
"""

from enum import StrEnum
from functools import cache

from django.apps import apps
from django.db import models

COLUMN = "tenant_id"
# Small, of tenants, and looked up before the tenant is known or for all of them at once.
SHARED = frozenset({"memories_apikey", "memories_languagemodel"})


class Placement(StrEnum):
    DISTRIBUTED = "distributed"
    REFERENCE = "reference"
    LOCAL = "local"


@cache
def placements() -> dict[str, Placement]:
    """Table → where it lies, for all tables of models."""
    found = {model._meta.db_table: model for model in apps.get_models(include_auto_created=True)}
    distributed = {table for table, model in found.items() if _of_one_tenant(model)}
    reference = set(SHARED)
    # What a distributed row refers to is on its node, and so is what that refers to.
    seen, following = set[str](), distributed | reference
    while following:
        seen |= following
        named = {
            field.remote_field.model._meta.db_table
            for table in following
            for field in found[table]._meta.concrete_fields
            if isinstance(field, models.ForeignKey)
        }
        reference |= named - distributed
        following = named - seen
    return {
        table: Placement.DISTRIBUTED
        if table in distributed
        else Placement.REFERENCE
        if table in reference
        else Placement.LOCAL
        for table in found
    }


@cache
def distributed() -> frozenset[str]:
    return frozenset(table for table, placement in placements().items() if placement is Placement.DISTRIBUTED)


def _of_one_tenant(model: type[models.Model]) -> bool:
    options = model._meta
    if options.auto_created or options.db_table in SHARED:
        return False
    return any(field.column == COLUMN and not field.null for field in options.concrete_fields)
