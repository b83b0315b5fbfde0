"""API keys and management keys: a public prefix and the SHA-256 of the secret, which is shown once and never stored.
The throttles of API keys."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import SETTING, TEXT, Columns
from memories.models.ids import new_id
from memories.models.people.tenants import MemoryOf, Tenant


class Scope(models.TextChoices):
    INGEST = "ingest", _("Ingest: turns and sessions")
    READ = "read", _("Read: context, search, lists")
    WRITE = "write", _("Write: facts and profile")
    PRIVACY = "privacy", _("Privacy: requests and exports")
    READ_ALL = "read_all", _("Read all: also facts restricted to certain roles, readers or agents")


class WritesAs(models.TextChoices):
    """Whose words a key writes when a request does not say it; a request can only lower it."""

    USER = "user", _("The user")
    AGENT = "agent", _("An agent")


class APIKey(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=100, blank=True, help_text="What uses it, e.g. support-bot.")
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.BinaryField(max_length=32, editable=False)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope.choices))
    # The caller's id, not a reference: the person need not exist yet, and their names lead to them at each request.
    user_id = models.CharField(
        max_length=255,
        blank=True,
        editable=False,
        help_text="The only person whom it is for; empty: everybody of the tenant.",
    )
    agent_id = models.CharField(
        max_length=255,
        blank=True,
        editable=False,
        help_text="The only agent that it is for, lower-cased; empty: every agent.",
    )
    writes_as = models.CharField(
        max_length=5,
        choices=WritesAs.choices,
        default=WritesAs.USER,
        editable=False,
        help_text="Whose words it writes.",
    )
    speaks_for_user = models.BooleanField(
        default=False,
        editable=False,
        help_text="Made to write as the user in so many words: what agents write by MCP counts as the user's, too.",
    )
    memory_of = models.CharField(
        max_length=6,
        blank=True,
        choices=MemoryOf.choices,
        editable=False,
        help_text="Whose memory sessions become that it opens; empty: as the tenant says.",
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_with_tenant = models.BooleanField(
        default=False,
        editable=False,
        help_text="Revoked by off-boarding its tenant, and by nobody since: taking the tenant back gives it back.",
    )
    successor = models.OneToOneField(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="predecessor",
        editable=False,
        help_text="The key that it was rotated to.",
    )
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False, help_text="To the nearest five minutes.")
    columns = Columns(
        omitted="keys of an application: they hold only the person's id, which is exported", name=SETTING,
        prefix=SETTING, digest=SETTING, scopes=SETTING, user_id=TEXT, agent_id=SETTING, writes_as=SETTING,
        speaks_for_user=SETTING, memory_of=SETTING,
    )  # fmt: skip

    class Meta:
        ordering = ["-created_at"]
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        indexes = [
            # Serves the erasure of a person; few keys are bound to one.
            models.Index(fields=["tenant", "user_id"], name="api_key_of_person_idx", condition=~Q(user_id="")),
        ]

    def __str__(self) -> str:
        return f"mh_{self.prefix}_…"


def ordinary_scopes() -> list[str]:
    """What a management key may give the keys that it makes, unless it was made otherwise."""
    return [Scope.INGEST, Scope.READ, Scope.WRITE]


# In what a management key gives, beside scopes: it may manage operators.
OPERATORS = "operators"


class ManagementKey(models.Model):
    """A key of its own kind: it manages tenants, their keys, settings and webhooks, and reads no memory.

    Only the server makes one (`manage.py create_management_key`).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant,
        verbose_name=_("tenant"),
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        editable=False,
        help_text="The only tenant that it manages; none: all of them, and it can make new ones.",
    )
    name = models.CharField(_("name"), max_length=100, editable=False, help_text="What uses it, e.g. terraform.")
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.BinaryField(max_length=32, editable=False)
    gives = ArrayField(
        models.CharField(max_length=16, choices=Scope.choices),
        default=ordinary_scopes,
        editable=False,
        help_text="Scopes that it may give to the keys that it makes.",
    )
    created_at = models.DateTimeField(_("created"), editable=False)
    expires_at = models.DateTimeField(null=True, editable=False)
    revoked_at = models.DateTimeField(null=True, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False, help_text="To the nearest five minutes.")
    columns = Columns(waived="names a tool's key, written by staff")

    class Meta:
        ordering = ["-created_at"]
        default_permissions = ("view", "change")
        verbose_name = _("management key")
        verbose_name_plural = _("management keys")

    def __str__(self) -> str:
        return f"mhm_{self.prefix}_…"


class ThrottleCounter(models.Model):
    """One row per key and scope; unlogged (see its migration): after a crash the counting begins anew."""

    id = models.BigAutoField(primary_key=True)
    key = models.ForeignKey(APIKey, on_delete=models.CASCADE, related_name="+", db_index=False)
    scope = models.CharField(max_length=16, choices=Scope.choices)
    window = models.BigIntegerField(help_text="Number of the window since 1970.")
    requests = models.PositiveIntegerField()
    columns = Columns(waived="counts the requests of an application's key")

    class Meta:
        constraints = [
            # Serves the upsert at every request.
            models.UniqueConstraint(fields=["key", "scope"], name="throttle_once_per_scope"),
        ]

    def __str__(self) -> str:
        return f"Requests of key {self.key_id} ({self.scope})"
