"""The people being remembered."""

import uuid
from datetime import datetime
from typing import Self
from zoneinfo import ZoneInfo

from django.db import models
from django.db.models import Q, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, MACHINE, OWN_TEXT, OWN_VALUE, VALUE, Column, Columns
from memories.models.ids import new_id
from memories.models.people.tenants import Tenant
from memories.time_zones import zone_or_utc

_WHO_SWITCHED = "whether staff, the application or you switched off `capture` and `serve`"

# In the place of a caller's id that was erased. No caller's id has a control character.
NOBODY = "\x1a"

# What can be off for one person; beside each stands who switched it off.
SWITCHES = ("capture", "serve")


def who_switched(name: str) -> str:
    """The field that says who switched this off: an ActorKind, empty where it is on."""
    return f"{name}_off_by"


class EndUserQuerySet(models.QuerySet["EndUser"]):
    def of(self, tenant: Tenant) -> Self:
        return self.filter(tenant=tenant)

    def themselves(self) -> Self:
        """Without the names that lead to somebody else."""
        return self.filter(merged_into=None)

    def called(self, tenant: Tenant, user_id: str) -> Self:
        """Whom the tenant means by this id: who has it, or whoever it leads to."""
        named = EndUser.objects.filter(tenant=tenant, external_id=user_id)
        return self.filter(pk=Subquery(named.values_list(Coalesce("merged_into", "pk"))))

    def with_aliases(self, person: "EndUser | uuid.UUID") -> Self:
        """The person, and the names that lead to them with what was left there."""
        pk = person.pk if isinstance(person, EndUser) else person
        return self.filter(Q(pk=pk) | Q(merged_into=pk))


class EndUser(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="end_users", db_index=False
    )
    external_id = models.CharField(max_length=255, help_text="The caller's own id (user_id in the API).")
    display_name = models.CharField(max_length=255, blank=True)
    time_zone = models.CharField(max_length=64, blank=True)
    language = models.CharField(max_length=35, blank=True, help_text="BCP 47, e.g. zh-CN.")
    metadata = models.JSONField(default=dict, blank=True)
    capture = models.BooleanField(default=True, help_text="Off: this person's turns are not stored.")
    serve = models.BooleanField(default=True, help_text="Off: this person's contexts are empty.")
    # A key cannot switch on what an operator switched off.
    capture_off_by = models.CharField(
        max_length=8, blank=True, choices=ActorKind.choices, editable=False, help_text="Who switched capture off."
    )
    serve_off_by = models.CharField(
        max_length=8, blank=True, choices=ActorKind.choices, editable=False, help_text="Who switched serve off."
    )
    restricted_at = models.DateTimeField(null=True, blank=True, editable=False)
    generation = models.PositiveIntegerField(
        default=1,
        editable=False,
        help_text="Raised by an erasure and by a merge: work begun under an older one is thrown away.",
    )
    erased_before = models.BooleanField(
        default=False, editable=False, help_text="Somebody of this id was erased before: this is a new person."
    )
    merged_into = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.CASCADE,
        related_name="names",
        db_index=False,
        editable=False,
        help_text="Whom this id leads to, since two people were merged or an id was changed.",
    )
    upkeep_tried_at = models.DateTimeField(
        null=True, editable=False, help_text="When a model was last to be asked what of this person no longer holds."
    )
    upkept_at = models.DateTimeField(null=True, editable=False, help_text="When it last answered, and was heeded.")
    created_at = models.DateTimeField()
    last_seen_at = models.DateTimeField(help_text="Of the last turn, to the nearest minute.")
    columns = Columns(
        id=OWN_VALUE, external_id=OWN_TEXT, display_name=OWN_TEXT, time_zone=OWN_TEXT, language=OWN_TEXT,
        metadata=OWN_TEXT, capture=VALUE, serve=VALUE, restricted_at=VALUE, erased_before=VALUE,
        merged_into=OWN_VALUE, created_at=VALUE, last_seen_at=VALUE,
        capture_off_by=Column(waived=CODE.waived, omitted=_WHO_SWITCHED),
        serve_off_by=Column(waived=CODE.waived, omitted=_WHO_SWITCHED), generation=MACHINE, upkeep_tried_at=MACHINE,
        upkept_at=MACHINE,
    )  # fmt: skip

    objects = EndUserQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("end user")
        verbose_name_plural = _("end users")
        constraints = [
            # Serves every look-up of a person by the caller's id.
            models.UniqueConstraint(fields=["tenant", "external_id"], name="end_user_once_per_tenant"),
        ]
        indexes = [
            # Serves GET /users, newest first.
            models.Index(fields=["tenant", "-created_at", "-id"], name="end_user_newest_idx"),
            # Serves the admin's list, last seen first.
            models.Index(fields=["-last_seen_at"], name="end_user_last_seen_idx"),
            # Serves the sweep, which passes over the few people under restriction.
            models.Index(fields=["id"], name="end_user_restricted_idx", condition=Q(restricted_at__isnull=False)),
            # Serves finding all names of a person; few have more than one.
            models.Index(fields=["merged_into"], name="end_user_names_idx", condition=Q(merged_into__isnull=False)),
        ]

    def __str__(self) -> str:
        # Nothing personal: Django's admin log keeps this text for ever.
        return f"End user {self.id}"

    @property
    def zone(self) -> str:
        """The name of the zone that this person's dates are told in: theirs, else the tenant's."""
        return self.time_zone or self.tenant.time_zone

    @property
    def clock(self) -> ZoneInfo:
        """The zone in which everything tells days and times to this person's agents; UTC if this host does not know
        it."""
        return zone_or_utc(self.zone)

    def local(self, moment: datetime) -> datetime:
        """The moment in this zone."""
        return moment.astimezone(self.clock)
