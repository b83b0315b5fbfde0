"""A tenant's own language model: which one, where, with which key, what it costs and how much of it a day may use."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import Columns
from memories.models.people.tenants import Tenant


class LanguageModelQuerySet(models.QuerySet["LanguageModel"]):
    def others(self) -> Self:
        """Those that are asked in another way than the hub's own: rows that hold caps alone are not."""
        return self.exclude(model="", base_url="")


class LanguageModel(models.Model):
    """What a tenant has of its own; an empty field is the hub's. Without a row all of it is."""

    tenant = models.OneToOneField(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    model = models.CharField(max_length=100, blank=True, help_text="The model's name at the endpoint.")
    base_url = models.CharField(max_length=500, blank=True, help_text="Endpoint address.")
    api_key = models.TextField(blank=True, help_text="Encrypted under MEMORYHUB_MFA_KEY; shown to nobody.")
    prompt_price = models.DecimalField(
        max_digits=11, decimal_places=6, null=True, blank=True, help_text="US dollars for a million tokens read."
    )
    completion_price = models.DecimalField(
        max_digits=11, decimal_places=6, null=True, blank=True, help_text="US dollars for a million tokens written."
    )
    daily_tokens = models.PositiveBigIntegerField(null=True, blank=True, help_text="Cap: read and written in a day.")
    daily_cost = models.DecimalField(
        max_digits=11, decimal_places=2, null=True, blank=True, help_text="Cap: US dollars in a day."
    )
    sees_pictures = models.BooleanField(
        default=False,
        db_default=False,
        help_text="The model in force, its own or the hub's, is asked to describe pictures.",
    )
    version = models.PositiveIntegerField(default=1, help_text="Rises with each change.")
    updated_at = models.DateTimeField()
    columns = Columns(waived="settings of an application, written by staff; its key is encrypted")

    objects = LanguageModelQuerySet.as_manager()

    class Meta:
        default_permissions = ("change",)
        verbose_name = _("language model")
        verbose_name_plural = _("language models")
        constraints = [
            # Its own key is for its own endpoint: never for one that the hub's environment names.
            models.CheckConstraint(condition=Q(api_key="") | ~Q(base_url=""), name="model_key_with_its_address"),
        ]

    def __str__(self) -> str:
        return f"Language model of {self.tenant_id}"


class DailySpending(models.Model):
    """What a tenant's model calls of one day used, by the tenant's own clock: the daily caps are held against it."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    day = models.DateField(help_text="In the tenant's time zone.")
    tokens = models.PositiveBigIntegerField(default=0, help_text="Read and written.")
    cost = models.DecimalField(
        max_digits=14, decimal_places=6, default=0, help_text="US dollars, where prices are set."
    )
    columns = Columns(waived="sums of a tenant's day")

    class Meta:
        default_permissions = ()
        constraints = [
            # Serves adding to it, and reading a tenant's day.
            models.UniqueConstraint(fields=["tenant", "day"], name="daily_spending_once_a_day"),
        ]

    def __str__(self) -> str:
        return f"Spending of {self.day}"
