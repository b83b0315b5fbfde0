"""What a tenant does not allow to be remembered: versions of its content policy, what was dropped for one, dry runs."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, SETTING, Columns
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent, Tenant


class Road(models.TextChoices):
    """By which road a text came that was dropped."""

    EXTRACTION = "extraction", _("Extraction")
    STATEMENT = "statement", _("A statement of a fact")
    PROFILE = "profile", _("Profile")
    EPISODE = "episode", _("Episodes and summaries")
    DOCUMENT = "document", _("A memory document")
    FILE = "file", _("Memory files")
    DIARY = "diary", _("Diary")
    GROUP = "group", _("Groups")
    GRAPH = "graph", _("Graph")
    STORE = "store", _("Store")
    UPKEEP = "upkeep", _("Reflections and upkeep")


class ContentPolicy(models.Model):
    """One version; the one with the tenant's `policy_version` is in force. A version never changes."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    version = models.PositiveIntegerField(_("version"))
    categories = models.JSONField(_("categories"), help_text="As content_policy/categories.py writes them.")
    changes = models.JSONField(default=dict, help_text="Names of the categories that it added, changed and removed.")
    restored = models.PositiveIntegerField(_("restored version"), null=True, help_text="The version that it repeats.")
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=36, blank=True)
    created_at = models.DateTimeField(_("time"))
    columns = Columns(waived="settings of an application, written by staff")

    class Meta:
        ordering = ["-version"]
        default_permissions = ()
        verbose_name = _("content policy")
        verbose_name_plural = _("content policies")
        constraints = [
            # Two who save at once: the second one finds the version taken. Serves reading the newest ones, too.
            models.UniqueConstraint(fields=["tenant", "version"], name="content_policy_once"),
        ]

    def __str__(self) -> str:
        return f"Content policy {self.version} ({self.id})"


class PolicyDrop(models.Model):
    """How many texts a version dropped on a day (UTC), by category and road: nothing of them, and no person."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField(_("day"))
    version = models.PositiveIntegerField(_("version"))
    category = models.CharField(_("category"), max_length=60)
    road = models.CharField(_("road"), max_length=10, choices=Road.choices)
    count = models.PositiveIntegerField(_("texts"))
    last_at = models.DateTimeField(_("last"))
    columns = Columns(waived="sums of a tenant's day")

    class Meta:
        default_permissions = ()
        ordering = ["-day", "category", "road"]
        constraints = [
            # Serves adding to it, and reading a tenant's days.
            models.UniqueConstraint(fields=["tenant", "day", "version", "category", "road"], name="policy_drop_once"),
        ]

    def __str__(self) -> str:
        return f"Dropped on {self.day}"


class PolicyTrialQuerySet(LeasedQuerySet["PolicyTrial"]):
    def undone(self) -> Self:
        return self.filter(ended_at=None)


class PolicyTrial(Leased):
    """A dry run: which of the stored memories these categories would not allow. Nothing is deleted by it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    categories = models.JSONField()
    kind = models.CharField(max_length=12, blank=True, help_text="The kind of memory that is read now.")
    reached = models.UUIDField(null=True, help_text="The last row of that kind that was read.")
    seen = models.PositiveIntegerField(default=0, help_text="Memories that were read.")
    total = models.PositiveIntegerField(default=0, help_text="Memories that there were when it began.")
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=36, blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    batch = models.UUIDField(null=True, help_text="Of the change sets that deleted what it found.")
    columns = Columns(waived="settings of an application, written by staff, and counts")

    IN_WORK = Q(ended_at=None)

    objects = PolicyTrialQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["tenant"], name="policy_trial_alone", condition=Q(ended_at=None)),
        ]
        indexes = [models.Index(fields=["tenant", "-created_at"], name="policy_trial_newest_idx")]

    def __str__(self) -> str:
        return f"Policy trial {self.pk}"


class PolicyFinding(OfParent):
    """One stored memory that a dry run found: its kind, its id and the category; nothing of what it says."""

    id = models.BigAutoField(primary_key=True)
    trial = models.ForeignKey(PolicyTrial, on_delete=models.CASCADE, related_name="findings", db_index=False)
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12)
    row = models.UUIDField()
    category = models.CharField(max_length=60)
    columns = Columns(omitted="found in rows that are exported themselves", kind=CODE, category=SETTING)

    class Meta:
        default_permissions = ()
        ordering = ["id"]
        verbose_name = _("finding of a dry run")
        verbose_name_plural = _("findings of dry runs")
        constraints = [models.UniqueConstraint(fields=["trial", "kind", "row", "tenant"], name="policy_finding_once")]

    def __str__(self) -> str:
        return f"Policy finding {self.pk}"
