"""Operators: the staff who sign in to the admin, their saved filters, and the failed sign-ins that lock a name out."""

from datetime import timedelta
from typing import Self

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import Columns
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.people.tenants import Tenant

# How long the link of an invitation works.
INVITATION_VALID = timedelta(days=3)


class Language(models.TextChoices):
    """What the admin speaks; an operator who chose none gets what their browser asks for."""

    ENGLISH = "en", "English"
    CHINESE = "zh-hans", "简体中文"


class Operator(AbstractUser):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    time_zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    language = models.CharField(_("language"), max_length=16, blank=True, default="", choices=Language.choices)
    # Its own field: who was limited to a tenant that is gone is not let into all the others.
    all_tenants = models.BooleanField(
        _("all tenants"), default=True, help_text=_("Can see the memories of every tenant.")
    )
    tenants = models.ManyToManyField(
        Tenant,
        verbose_name=_("tenants"),
        blank=True,
        related_name="operators",
        help_text=_("Can see only the memories of these tenants, unless “all tenants” is on."),
    )

    mail_cases = models.BooleanField(_("mail about privacy cases"), default=False)
    mail_queues = models.BooleanField(_("mail about long queues"), default=False)

    # The SHA-256 of the secret in the one-time link of an open invitation. It sets the password once, until then.
    invitation = models.BinaryField(max_length=32, null=True, unique=True, editable=False)
    invited_until = models.DateTimeField(null=True, editable=False)
    columns = Columns(waived="staff, not people being remembered")

    # Of one request: lists are narrowed to it. No column.
    tenant_in_view: Tenant | None = None

    class Meta(AbstractUser.Meta):
        ordering = ["username"]
        verbose_name = _("operator")  # type: ignore[assignment]  # Django's own class says str
        verbose_name_plural = _("operators")  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.username


class OperatorMailQuerySet(LeasedQuerySet["OperatorMail"]):
    def waiting(self) -> Self:
        return self.filter(sent_at=None)


class OperatorMail(Leased):
    """A reminder for an operator by mail: of what, and whether it was sent."""

    class Kind(models.TextChoices):
        CASE_OPENED = "case_opened", _("a privacy case is opened")
        CASE_DUE = "case_due", _("a privacy case is near its day")
        LONG_QUEUE = "long_queue", _("extraction falls behind")
        LONG_REVIEW = "long_review", _("review falls behind")

    IN_WORK = Q(sent_at=None)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operator = models.ForeignKey(Operator, on_delete=models.CASCADE, related_name="+", db_index=False)
    tenant = models.ForeignKey(Tenant, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=11, choices=Kind.choices, editable=False)
    about = models.UUIDField(null=True, editable=False, help_text="The privacy case.")
    once = models.CharField(max_length=80, editable=False, help_text="An operator is reminded of it once.")
    created_at = models.DateTimeField(editable=False)
    sent_at = models.DateTimeField(null=True, editable=False)
    columns = Columns(waived="of what staff were reminded: ids, codes and times")

    objects = OperatorMailQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["operator", "tenant", "once"], name="operator_mail_once", nulls_distinct=False
            ),
        ]
        indexes = [
            # Serves the look for what is to be sent.
            models.Index(fields=["created_at"], name="operator_mail_waiting_idx", condition=Q(sent_at=None)),
        ]

    def __str__(self) -> str:
        return f"Mail {self.pk}"


class FailedSignIns(models.Model):
    """How often signing in failed for one name, from one address, or in one browser, since a moment.

    Of which one says a keyed hash: people type passwords where a name belongs, and no table lists who tried.
    """

    class SignInKind(models.TextChoices):
        NAME = "name", _("Name")
        ADDRESS = "address", _("Address")
        BROWSER = "browser", _("Browser")

    id = models.BigAutoField(primary_key=True)
    kind = models.CharField(max_length=8, choices=SignInKind.choices)
    digest = models.BinaryField(max_length=32)
    began_at = models.DateTimeField()
    failures = models.PositiveIntegerField()
    columns = Columns(waived="counts by keyed hashes, of who tries to sign in; gone within hours")

    class Meta:
        constraints = [
            # Serves the upsert at every failure, and the look-up before every try.
            models.UniqueConstraint(fields=["kind", "digest"], name="failed_sign_ins_once"),
        ]

    def __str__(self) -> str:
        return f"{self.failures} failed sign-ins of one {self.kind}"


class SavedFilter(models.Model):
    """The filters of one list under a name; what was searched for is no part of them."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operator = models.ForeignKey(Operator, on_delete=models.CASCADE, related_name="saved_filters", editable=False)
    model = models.CharField(max_length=40, editable=False)
    name = models.CharField(_("name"), max_length=60)
    choices = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(editable=False)
    columns = Columns(waived="a name by staff and the choices of a list's filters; nothing searched for")

    class Meta:
        ordering = ["name"]
        verbose_name = _("saved filter")
        verbose_name_plural = _("saved filters")
        # Everybody's own: there is nothing to permit.
        default_permissions = ()
        constraints = [
            # Serves the tabs over a list, too.
            models.UniqueConstraint(fields=["operator", "model", "name"], name="saved_filter_once"),
        ]

    def __str__(self) -> str:
        return f"Saved filter {self.pk}"
