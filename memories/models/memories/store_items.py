"""Items of the store: values that an agent keeps under a namespace and a key, as LangGraph's store does."""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _
from pgvector.django import HalfVectorField

from memories.models.columns import DERIVED, KEY, NUMBER, SPACE, TEXT, VALUE, Columns
from memories.models.ids import new_id
from memories.models.memories.embeddings import EmbeddingSpace
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant

# Items whose present texts no embedder has looked at. Without a digest there is nothing to embed.
UNEMBEDDED_ITEMS = Q(content_hash__isnull=False) & (Q(embedded_hash=None) | ~Q(embedded_hash=F("content_hash")))
# Together below what PostgreSQL takes into one row of an index.
LONGEST_NAMESPACE = 1_024
LONGEST_KEY = 512


class StoreItemQuerySet(models.QuerySet["StoreItem"]):
    def unembedded(self) -> Self:
        return self.filter(UNEMBEDDED_ITEMS)


class StoreItem(models.Model):
    """A value under a namespace and a key. The namespace decides whose it is; without a person it is the tenant's."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    # The row that has the id which the namespace names, also where that id leads to somebody else: an undone merge
    # then finds the item where it was.
    end_user = models.ForeignKey(
        EndUser,
        verbose_name=_("end user"),
        on_delete=models.CASCADE,
        related_name="store_items",
        db_index=False,
        null=True,
        editable=False,
    )
    # By bytes, so that a prefix is a range of the index.
    namespace = models.TextField(
        _("namespace"), db_collation="C", editable=False, help_text="The labels, joined by periods; none contains one."
    )
    key = models.TextField(_("key"), db_collation="C", editable=False)
    value = models.JSONField(_("value"), editable=False)
    index_paths = ArrayField(
        models.TextField(),
        null=True,
        editable=False,
        help_text="What of the value is embedded; null: all of it, empty: nothing.",
    )
    content_hash = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="SHA-256 of the texts to embed; null: there are none."
    )
    embedded_hash = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="The content_hash that the embedder has last handled."
    )
    ttl_minutes = models.FloatField(null=True, editable=False, help_text="It expires so long after it was last read.")
    expires_at = models.DateTimeField(_("expires"), null=True, editable=False)
    key_id = models.UUIDField(null=True, editable=False, help_text="Of the API key that wrote it last.")
    created_at = models.DateTimeField(_("created"), editable=False)
    updated_at = models.DateTimeField(_("updated"), editable=False)
    columns = Columns(
        id=VALUE, namespace=TEXT, key=TEXT, value=TEXT, index_paths=TEXT, ttl_minutes=VALUE, expires_at=VALUE,
        created_at=VALUE, updated_at=VALUE, content_hash=DERIVED, embedded_hash=DERIVED, key_id=KEY,
    )  # fmt: skip

    objects = StoreItemQuerySet.as_manager()

    class Meta:
        ordering = ["-updated_at", "-id"]
        default_permissions = ("view", "change", "delete")
        verbose_name = _("store item")
        verbose_name_plural = _("store items")
        constraints = [
            # Serves reading one item, and all below a prefix.
            models.UniqueConstraint(fields=["tenant", "namespace", "key"], name="store_item_once"),
        ]
        indexes = [
            # Serves the admin's list, and a search of everything.
            models.Index(fields=["tenant", "-updated_at", "-id"], name="store_item_newest_idx"),
            # Serves erasures, exports, and the count of a person's items.
            models.Index(fields=["end_user"], name="store_item_person_idx"),
            # Serves the sweep.
            models.Index(fields=["expires_at"], name="store_item_expires_idx", condition=Q(expires_at__isnull=False)),
            # Serves the embedder, and searches right after a write.
            models.Index(
                fields=["tenant", "-updated_at"], name="store_item_unembedded_idx", condition=UNEMBEDDED_ITEMS
            ),
        ]

    def __str__(self) -> str:
        # Nothing personal: Django's admin log keeps this text for ever.
        return f"Store item {self.id}"

    @property
    def labels(self) -> list[str]:
        return self.namespace.split(".")


class StoreItemVector(models.Model):
    """The vector of one text of an item; `place` tells its texts apart.

    The row goes with its item by ON DELETE CASCADE in the database itself, as those of facts do.
    """

    id = models.BigAutoField(primary_key=True)
    space = models.ForeignKey(EmbeddingSpace, on_delete=models.PROTECT, related_name="+", db_index=False)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    item = models.ForeignKey(
        StoreItem, on_delete=models.DO_NOTHING, related_name="vectors", db_index=False, db_constraint=False
    )
    place = models.PositiveSmallIntegerField()
    text_digest = models.BinaryField(max_length=32, help_text="The item's content_hash when it was made.")
    vector = HalfVectorField()
    columns = Columns(
        item=VALUE, place=VALUE, id=NUMBER, space=SPACE, text_digest=DERIVED, vector=DERIVED,
    )  # fmt: skip

    class Meta:
        default_permissions = ()
        verbose_name = _("store item vector")
        verbose_name_plural = _("store item vectors")
        constraints = [
            # Two embedders at work on one item leave one row for each text. Serves searches and the cascade, too.
            models.UniqueConstraint(fields=["item", "space", "place", "tenant"], name="store_item_vector_once"),
        ]

    def __str__(self) -> str:
        return f"Vector of store item {self.item_id}"
