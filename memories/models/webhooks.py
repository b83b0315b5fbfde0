"""Webhooks: where a tenant is told of events, and each event as one endpoint is told it.

A delivery is a row of an outbox: it is written in the transaction of the change and holds ids, codes and times alone.
"""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from memories.models.columns import CODE, Columns
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant

LONGEST_NAME = 100


class Event(models.TextChoices):
    """What an endpoint can be told."""

    FACT_CREATED = "fact.created", _("A fact is in use")
    FACT_UPDATED = "fact.updated", _("A fact in use says something else")
    FACT_SUPERSEDED = "fact.superseded", _("A fact is replaced by another")
    FACT_FORGOTTEN = "fact.forgotten", _("A fact is not used any more")
    EPISODE_CREATED = "episode.created", _("An episode is made")
    SESSION_EXTRACTED = "session.extracted", _("New turns of a session are read")
    REVIEW_OPENED = "review.opened", _("Something waits for review")
    CASE_OPENED = "case.opened", _("A privacy case is opened")
    CASE_DUE = "case.due", _("A privacy case is due soon, or overdue")
    PERSON_ERASED = "person.erased", _("An end user is erased")
    BUDGET_REACHED = "budget.reached", _("A daily cap of the language model is reached")
    SKILL_PROPOSED = "skill.proposed", _("A skill waits for review")
    SKILL_WITHDRAWN = "skill.withdrawn", _("A skill is withdrawn")
    TEST = "test", _("A test")


# What an endpoint is told only when somebody asks for it.
BY_HAND = (Event.TEST,)


class WebhookEndpointQuerySet(models.QuerySet["WebhookEndpoint"]):
    def enabled(self) -> Self:
        return self.filter(disabled_at=None)


class WebhookEndpoint(models.Model):
    class Reason(models.TextChoices):
        """Why an endpoint is told nothing."""

        OPERATOR = "operator", _("An operator disabled it")
        FAILING = "failing", _("It failed for three days")
        GONE = "gone", _("It answered 410: it is gone")
        OFF_BOARDED = "off_boarded", _("The tenant is off-boarded")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(_("name"), max_length=LONGEST_NAME)
    url = models.CharField(_("address"), max_length=500)
    events = ArrayField(models.CharField(max_length=20), verbose_name=_("events"))
    content = models.BooleanField(_("with content"), default=False)
    secret = models.TextField(editable=False, help_text="Encrypted under MEMORYHUB_MFA_KEY.")
    former_secret = models.TextField(blank=True, editable=False, help_text="The one before; likewise.")
    former_until = models.DateTimeField(null=True, editable=False, help_text="So long both secrets sign.")
    disabled_at = models.DateTimeField(null=True, editable=False)
    disabled_for = models.CharField(max_length=11, blank=True, choices=Reason.choices, editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="In a row.")
    failing_since = models.DateTimeField(null=True, editable=False)
    paused_until = models.DateTimeField(null=True, editable=False, help_text="Nothing is sent before, after a failure.")
    version = models.PositiveIntegerField(default=1, editable=False, help_text="Rises with each change by a person.")
    created_at = models.DateTimeField(_("created"), editable=False)
    columns = Columns(waived="settings of an application, written by staff; its secrets are encrypted")

    objects = WebhookEndpointQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ("view", "change")
        verbose_name = _("webhook")
        verbose_name_plural = _("webhooks")
        constraints = [
            # Serves the statement that writes deliveries, too.
            models.UniqueConstraint(fields=["tenant", "url"], name="webhook_url_once"),
        ]

    def __str__(self) -> str:
        return f"Webhook {self.pk}"


class WebhookDeliveryQuerySet(LeasedQuerySet["WebhookDelivery"]):
    def waiting(self) -> Self:
        return self.filter(state=WebhookDelivery.State.WAITING)

    def due(self) -> Self:
        """What can be sent now, by the database's clock, unless a worker has it. What is about people under restriction
        waits until that ends."""
        endpoint = Q(endpoint__disabled_at=None) & (
            Q(endpoint__paused_until=None) | Q(endpoint__paused_until__lte=Now())
        )
        return self.waiting().free().filter(endpoint, end_user__restricted_at=None)


class WebhookDelivery(Leased):
    """An event for one endpoint. Its id is the webhook-id, the same for each attempt."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        DELIVERED = "delivered", _("Delivered")
        FAILED = "failed", _("Failed")

    IN_WORK = Q(state=State.WAITING)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    endpoint = models.ForeignKey(WebhookEndpoint, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    end_user = models.ForeignKey(
        EndUser,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="Whose memory it is about; of an erasure and of a case nobody's.",
    )
    event = models.CharField(_("event"), max_length=20, choices=Event.choices, editable=False)
    data = models.JSONField(default=dict, editable=False, help_text="Ids, codes and times, never content.")
    once = models.CharField(
        max_length=80, blank=True, editable=False, help_text="An endpoint is told once what has this; empty: each time."
    )
    state = models.CharField(_("state"), max_length=9, choices=State.choices, default=State.WAITING, editable=False)
    status = models.PositiveSmallIntegerField(null=True, editable=False, help_text="Of the last answer, if one came.")
    occurred_at = models.DateTimeField(_("occurred"), editable=False)
    tried_at = models.DateTimeField(null=True, editable=False, help_text="First attempt.")
    ended_at = models.DateTimeField(null=True, editable=False, help_text="When it was delivered, or given up.")
    columns = Columns(
        omitted="of which events other systems were told: ids, codes and times", failure=CODE, event=CODE,
        data=CODE, once=CODE, state=CODE,
    )  # fmt: skip

    objects = WebhookDeliveryQuerySet.as_manager()

    class Meta:
        ordering = ["-occurred_at", "-id"]
        default_permissions = ()
        verbose_name = _("delivery")
        verbose_name_plural = _("deliveries")
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "endpoint", "once"], name="webhook_event_once", condition=~Q(once="")
            ),
        ]
        indexes = [
            # Serves the look for what is due at the endpoints that are not left alone.
            models.Index(
                fields=["endpoint", "lease_until", "occurred_at"], name="webhook_due_idx", condition=Q(state="waiting")
            ),
            # Serves the log of an endpoint.
            models.Index(fields=["endpoint", "-occurred_at", "-id"], name="webhook_log_idx"),
            # Serves the removal of old ones.
            models.Index(fields=["ended_at"], name="webhook_ended_idx", condition=Q(ended_at__isnull=False)),
            # Serves erasures.
            models.Index(fields=["end_user"], name="webhook_person_idx", condition=Q(end_user__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"Delivery {self.pk}"
