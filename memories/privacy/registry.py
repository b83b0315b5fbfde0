"""Every store that can hold personal data, and every other model with the reason why it holds none.

tests/test_privacy_registry.py walks all models and fails when one is missing here, so a new table or field
cannot be forgotten by access and erasure.
"""

from django.apps import apps
from django.contrib.postgres.fields import HStoreField
from django.db import models
from pgvector.django import BitField, HalfVectorField, SparseVectorField, VectorField
from picklefield.fields import PickledObjectField

from memories.models import EndUser
from memories.privacy.stores.linked import PEOPLE, STORES
from memories.privacy.stores.readers import BLOCKS_OF_OTHERS, CONTEXTS_OF_OTHERS, READERS
from memories.privacy.stores.store import PersonalDataStore, Store
from memories.privacy.stores.unlinked import UNLINKED
from memories.privacy.stores.waivers import WAIVERS, Waiver

__all__ = ["PEOPLE", "STORES", "WAIVERS", "Store", "Waiver", "all_stores", "counts", "unaccounted"]

_HOLDS_TEXT = (
    models.CharField,
    models.TextField,
    models.JSONField,
    models.BinaryField,
    models.FileField,
    models.GenericIPAddressField,
    HStoreField,
    PickledObjectField,
    HalfVectorField,
    VectorField,
    SparseVectorField,
    BitField,
)


def all_stores() -> tuple[PersonalDataStore, ...]:
    """In the order of an erasure: stores that name rows by their ids are emptied while these rows are there."""
    return (*UNLINKED, READERS, CONTEXTS_OF_OTHERS, BLOCKS_OF_OTHERS, *STORES)


def counts(person: EndUser) -> dict[str, int]:
    """Label of each store → its rows about the person, as they are now."""
    return {store.model: store.count(person) for store in all_stores()}


def unaccounted() -> list[str]:
    """Models and fields that could hold personal data and are neither registered nor waived, as `app.Model.field`."""
    missing: list[str] = []
    linked = _linked_models()
    registered = {store.model for store in all_stores()}
    for model in apps.get_models(include_auto_created=False):
        label = model._meta.label
        if model in linked and label not in registered:
            missing.append(f"{label}.(leads to EndUser)")
        accounted = _accounted_fields(label)
        if accounted is not None:
            missing += [
                f"{label}.{field.name}"
                for field in model._meta.local_fields
                if isinstance(getattr(field, "base_field", field), _HOLDS_TEXT)
                and not field.is_relation
                and field.name not in accounted
            ]
    return missing


def _linked_models() -> set[type[models.Model]]:
    """Models with a path to a person: a reference to one, or to a model that has such a path."""
    found: set[type[models.Model]] = {EndUser}
    refers_to = {
        model: {field.related_model for field in (*model._meta.local_fields, *model._meta.local_many_to_many)}
        for model in apps.get_models(include_auto_created=False)
    }
    while new := {model for model, related in refers_to.items() if model not in found and found & related}:
        found |= new
    return found


def _accounted_fields(label: str) -> set[str] | None:
    """None when all of the model is waived."""
    waivers = [waiver for waiver in WAIVERS if waiver.model == label]
    if any(not waiver.fields for waiver in waivers):
        return None
    named = [waiver.fields for waiver in waivers] + [store.fields for store in all_stores() if store.model == label]
    return {name for fields in named for name in fields}
