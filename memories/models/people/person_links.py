"""Links with which people open their own page, and the short session that each becomes."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.access.api_keys import APIKey
from memories.models.columns import Columns
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant


class PersonLink(models.Model):
    """A link to a person's own page: opened once, and from then on the session that it became.

    Neither the link nor the session is stored: both are this row's id, signed. Once the person is another one, by a
    merge or an erasure, the link is over.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="page_links", db_index=False
    )
    key = models.ForeignKey(
        APIKey, on_delete=models.CASCADE, related_name="+", help_text="Who made it: when the key ends, so does it."
    )
    generation = models.PositiveIntegerField(editable=False, help_text="The person's when it was made.")
    language = models.CharField(max_length=10, blank=True, help_text="Empty: what the browser asks for.")
    allow = ArrayField(models.CharField(max_length=16), help_text="What the page lets the person do, at most.")
    embed_origins = ArrayField(
        models.CharField(max_length=255), default=list, help_text="Sites that may show the page in a frame."
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(help_text="Until when it can be opened.")
    opened_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True, help_text="When the session ends; empty: it was not opened.")
    columns = Columns(
        waived="numbers of ours, moments, and what an application chose",
        omitted="links to the person's own page: numbers of ours, kept for a day",
    )

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ()
        verbose_name = _("link to a person’s page")
        verbose_name_plural = _("links to people’s pages")
        indexes = [
            # Serves erasures, and the count of links that wait.
            models.Index(fields=["end_user", "-created_at"], name="person_link_of_person_idx"),
            # Serves taking away what is over.
            models.Index(fields=["created_at"], name="person_link_oldest_idx"),
        ]

    def __str__(self) -> str:
        return f"Link to a person's page {self.id}"
