"""Operators: the staff who sign in to the admin (never the people being remembered)."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.ids import new_id
from memories.models.tenants import Tenant


class Language(models.TextChoices):
    """What the admin speaks; an operator who chose none gets what their browser asks for."""

    ENGLISH = "en", "English"
    CHINESE = "zh-hans", "简体中文"


class Operator(AbstractUser):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    language = models.CharField(_("language"), max_length=16, blank=True, default="", choices=Language.choices)
    # Its own field: who was limited to a tenant that is gone is not let into all the others.
    all_tenants = models.BooleanField(_("all tenants"), default=True, help_text=_("Sees the memories of every tenant."))
    tenants = models.ManyToManyField(
        Tenant,
        verbose_name=_("tenants"),
        blank=True,
        related_name="operators",
        help_text=_("Sees the memories of these alone, unless of all tenants."),
    )

    class Meta(AbstractUser.Meta):
        ordering = ["username"]
        verbose_name = _("operator")  # type: ignore[assignment]  # Django's own class says str
        verbose_name_plural = _("operators")  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.username
