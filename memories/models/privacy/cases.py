"""Privacy cases: what people ask of what is kept about them, from receipt to receipt; and the exports made for them."""

from datetime import datetime
from typing import Any, Self

from django.db import models
from django.db.models import BooleanField, Exists, ExpressionWrapper, F, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, COUNTS, MACHINE, STAFF, TEXT, VALUE, Column, Columns
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent, Tenant
from memories.models.people.tombstones import ReturnPolicy


class CaseType(models.TextChoices):
    ERASURE = "erasure", _("Erasure")
    ACCESS = "access", _("Access")
    PORTABILITY = "portability", _("Portability")
    RECTIFICATION = "rectification", _("Rectification")
    RESTRICTION = "restriction", _("Restriction")


class CaseState(models.TextChoices):
    RECEIVED = "received", _("Received")
    VERIFIED = "verified", _("Verified")
    SCOPED = "scoped", _("Scoped")
    APPROVED = "approved", _("Approved")
    RUNNING = "running", _("Running")
    VERIFYING = "verifying", _("Verifying")
    COMPLETED = "completed", _("Completed")
    REFUSED = "refused", _("Refused")
    ON_HOLD = "on_hold", _("On hold")
    FAILED = "failed", _("Failed")


# Nothing more happens in these.
CLOSED = (CaseState.COMPLETED, CaseState.REFUSED)
# While such a case is past the identity check and not closed, nothing is written or told of the person.
RESTRICTING = (CaseType.ERASURE, CaseType.RESTRICTION)
EXPORTING = (CaseType.ACCESS, CaseType.PORTABILITY)


class Asker(models.TextChoices):
    SUBJECT = "subject", _("The person")
    REPRESENTATIVE = "representative", _("A representative")
    GUARDIAN = "guardian", _("A parent or guardian")
    AUTHORITY = "authority", _("An authority")
    CONTROLLER = "controller", _("Our own organization")


class IdentityCheck(models.TextChoices):
    """How somebody made sure who asks; never what they were shown."""

    SIGNED_IN = "signed_in", _("Signed in to the application")
    CALL_BACK = "call_back", _("Called or wrote back to a known address")
    IN_PERSON = "in_person", _("Met in person")
    DOCUMENT = "document", _("Saw a document; no copy is kept")
    MANDATE = "mandate", _("Saw the representative's mandate")
    SHELL = "shell", _("By someone with access to the server")


class RefusalGround(models.TextChoices):
    IDENTITY = "identity", _("The requester cannot be identified")
    UNFOUNDED = "unfounded", _("Manifestly unfounded")
    EXCESSIVE = "excessive", _("Excessive because it is repetitive")
    OBLIGATION = "obligation", _("A legal obligation to keep the data")
    CLAIMS = "claims", _("Needed for legal claims")
    EXPRESSION = "expression", _("Freedom of expression and information")
    INTEREST = "interest", _("Public interest or research")
    WITHDRAWN = "withdrawn", _("Withdrawn by the requester")


class PrivacyCaseQuerySet(LeasedQuerySet["PrivacyCase"]):
    def open(self) -> Self:
        return self.exclude(state__in=CLOSED)

    def unanswered(self, now: datetime) -> Self:
        """What is open, and what is completed but not handed over: the requester waits for both."""
        return self.filter(~Q(state__in=CLOSED) | waits_for_handover(now)).with_handover(now)

    def with_handover(self, now: datetime) -> Self:
        """Each case with `to_hand_over`."""
        waits = ExpressionWrapper(waits_for_handover(now), output_field=BooleanField())
        return self.annotate(to_hand_over=waits)

    def restricting(self) -> Self:
        """Those that keep their person under restriction; one whose erasure was put on hold goes on doing so."""
        checked = Q(verified_at__isnull=False)
        return self.open().filter(checked, type__in=RESTRICTING)


class PrivacyCase(Leased):
    """A data-subject request. Past an erasure it tells of nobody: the person is gone and free texts are emptied."""

    # Whether its export waits to be handed over; only on rows read with_handover() it can be true.
    to_hand_over = False
    IN_WORK = Q(state__in=[CaseState.RUNNING, CaseState.VERIFYING])

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="privacy_cases", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser,
        verbose_name=_("end user"),
        null=True,
        on_delete=models.SET_NULL,
        related_name="privacy_cases",
        db_index=False,
    )
    # conf.pepper's digest of the id that was asked for: a second request finds the first after an erasure.
    subject = models.BinaryField(max_length=32, editable=False)
    type = models.CharField(_("type"), max_length=13, choices=CaseType.choices)
    state = models.CharField(_("state"), max_length=9, choices=CaseState.choices, default=CaseState.RECEIVED)
    # Raised by every verb: who decides on what they did not see is told to look again.
    version = models.PositiveIntegerField(default=1, editable=False)

    asked_by = models.CharField(_("asked by"), max_length=14, choices=Asker.choices, default=Asker.SUBJECT)
    language = models.CharField(max_length=10, blank=True, db_default="", help_text="Of the file; empty: the person's.")
    channel = models.CharField(_("channel"), max_length=40, blank=True, help_text="email, phone, letter, api, …")
    reference = models.CharField(_("reference"), max_length=255, blank=True, help_text="A ticket's number.")
    received_at = models.DateTimeField(_("received"))
    due_at = models.DateTimeField(_("due"))
    opened_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    opened_by = models.CharField(max_length=36, blank=True)

    verified_at = models.DateTimeField(null=True)
    verified_how = models.CharField(max_length=9, choices=IdentityCheck.choices, blank=True)
    verified_kind = models.CharField(max_length=8, choices=ActorKind.choices, blank=True)
    verified_by = models.CharField(max_length=36, blank=True)

    scoped_at = models.DateTimeField(null=True)
    preview = models.JSONField(default=dict, help_text="Store → rows when it was scoped; mentions: of others' rows.")
    policy = models.CharField(max_length=9, choices=ReturnPolicy.choices, default=ReturnPolicy.FLAG)

    approved_at = models.DateTimeField(null=True)
    approved_kind = models.CharField(max_length=8, choices=ActorKind.choices, blank=True)
    approved_by = models.CharField(max_length=36, blank=True)

    extended_at = models.DateTimeField(null=True)
    extension_reason = models.TextField(blank=True, max_length=2000)
    extension_notice_on = models.DateField(null=True, help_text="When who asked was told of it.")

    refusal = models.CharField(max_length=11, choices=RefusalGround.choices, blank=True)
    refusal_reason = models.TextField(blank=True, max_length=2000)

    held_from = models.CharField(max_length=9, choices=CaseState.choices, blank=True, help_text="Its state before.")
    held_at = models.DateTimeField(null=True)
    hold_reason = models.TextField(blank=True, max_length=2000)
    hold_review_on = models.DateField(null=True)

    # Of the run: whoever holds the lease works on it; another goes on where that one died.
    step = models.CharField(max_length=20, blank=True)
    counts = models.JSONField(default=dict, help_text="Store → rows erased or exported so far.")
    # What the verification looks for, encrypted; emptied at the end.
    needles = models.BinaryField(default=bytes, editable=False)
    findings = models.JSONField(default=dict, help_text="What the verification read and found, in counts and places.")
    started_at = models.DateTimeField(null=True)

    told = models.TextField(blank=True, max_length=2000, help_text="Recipients who were told (Art. 19).")
    outcome = models.TextField(blank=True, max_length=2000, help_text="What was corrected, of a rectification.")
    receipt = models.JSONField(default=dict)
    signature = models.CharField(max_length=128, blank=True)
    completed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    columns = Columns(
        id=VALUE, type=CODE, state=CODE, asked_by=CODE, channel=TEXT, reference=TEXT, received_at=VALUE,
        due_at=VALUE, opened_kind=CODE, verified_at=VALUE, verified_how=CODE, verified_kind=CODE, scoped_at=VALUE,
        preview=COUNTS, policy=CODE, approved_at=VALUE, approved_kind=CODE, extended_at=VALUE, extension_reason=TEXT,
        extension_notice_on=VALUE, refusal=CODE, refusal_reason=TEXT, held_from=CODE, held_at=VALUE,
        hold_reason=TEXT, hold_review_on=VALUE, counts=COUNTS, findings=COUNTS, failure=CODE, started_at=VALUE,
        told=TEXT, outcome=TEXT, receipt=CODE, completed_at=VALUE, created_at=VALUE, lease_token=MACHINE,
        lease_until=MACHINE, attempts=MACHINE,
        subject=Column(waived=CODE.waived, omitted="a keyed hash of the person's id, which is exported"),
        version=MACHINE, opened_by=STAFF, verified_by=STAFF, approved_by=STAFF,
        step=Column(waived=CODE.waived, omitted=MACHINE.omitted),
        language=Column(waived=CODE.waived, omitted="that of the export, which `about` names"),
        needles=Column(erased=True, omitted="encrypted: the ids and texts that an erasure looks for"),
        signature=Column(waived=CODE.waived, omitted="proves the receipt to whoever has it"),
    )  # fmt: skip

    objects = PrivacyCaseQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("privacy case")
        verbose_name_plural = _("privacy cases")
        permissions = [("approve_privacycase", "Can approve privacy cases")]
        constraints = [
            # A duplicate of a case needs an identity check of its own.
            models.CheckConstraint(
                name="case_identity_checked",
                condition=Q(state__in=["received", "refused"])
                | Q(state="on_hold", held_from="received")
                | Q(verified_at__isnull=False),
            ),
            models.CheckConstraint(
                name="case_approved_once_verified", condition=Q(approved_at=None) | Q(verified_at__isnull=False)
            ),
            models.CheckConstraint(
                name="case_erased_once_approved",
                condition=~Q(type="erasure", state__in=["approved", "running", "verifying", "completed", "failed"])
                | Q(approved_at__isnull=False),
            ),
            # Of an application's request, who checked the identity is the first of the two.
            models.CheckConstraint(
                name="case_two_people",
                condition=Q(approved_at=None)
                | Q(approved_kind="command")
                | (
                    Q(approved_kind="operator")
                    & ~Q(approved_by=F("opened_by"))
                    & (Q(opened_kind="operator") | ~Q(approved_by=F("verified_by")))
                ),
            ),
            models.CheckConstraint(
                name="case_held_from_somewhere",
                condition=Q(state="on_hold", held_at__isnull=False, hold_review_on__isnull=False) & ~Q(held_from="")
                | ~Q(state="on_hold") & Q(held_from=""),
            ),
        ]
        indexes = [
            # Serves the board: what is open of a tenant, by its due date.
            models.Index(fields=["tenant", "state", "due_at"], name="case_board_idx"),
            # Serves a person's cases, and what keeps them restricted.
            models.Index(fields=["end_user"], name="case_person_idx"),
            # Serves the workers: what runs and nobody works on.
            models.Index(
                fields=["lease_until"], name="case_running_idx", condition=Q(state__in=["running", "verifying"])
            ),
        ]

    def __str__(self) -> str:
        return f"Privacy case {self.id}"

    def find_person(self) -> EndUser | None:
        """Whom it is about by now, or whom they were merged into since; None once they are erased. One statement."""
        named = EndUser.objects.filter(privacy_cases=self)
        people = EndUser.objects.select_related("tenant")
        return people.filter(pk=Subquery(named.values_list(Coalesce("merged_into", "pk")))).first()


def waits_for_handover(now: datetime) -> Q:
    """Cases whose export is ready: nobody fetched it yet, and it has not expired."""
    ready = PrivacyExport.objects.filter(case=OuterRef("pk"), state=ExportState.READY, expires_at__gt=now)
    return Q(Exists(ready), state=CaseState.COMPLETED)


class ExportState(models.TextChoices):
    MAKING = "making", _("In progress")
    READY = "ready", _("Ready")
    TAKEN = "taken", _("Downloaded")
    EXPIRED = "expired", _("Expired")


class PrivacyExportQuerySet(models.QuerySet["PrivacyExport"]):
    def empty(self, **changes: Any) -> int:
        """Delete the pieces of these exports and change the rows, in the caller's transaction; how many there were."""
        found = list(self.values_list("pk", flat=True))
        if not found:
            return 0
        PrivacyExportPiece.objects.filter(export__in=found).delete()
        return PrivacyExport.objects.filter(pk__in=found).update(**changes)


class PrivacyExport(OfParent):
    """A ZIP file for who asked; it goes with its one download, after a week, or with the person."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    case = models.ForeignKey(PrivacyCase, on_delete=models.CASCADE, related_name="exports")
    profile = models.CharField(max_length=11, choices=[(one.value, one.label) for one in EXPORTING])
    state = models.CharField(max_length=7, choices=ExportState.choices, default=ExportState.MAKING)
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes.")
    # Of the one-time link only the SHA-256 of its token; it stays, so that a link says that it was used.
    token_digest = models.BinaryField(max_length=32, null=True, editable=False)
    made_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    taken_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    objects = PrivacyExportQuerySet.as_manager()
    columns = Columns(
        id=VALUE, case=VALUE, profile=CODE, state=CODE, size=VALUE, made_at=VALUE, expires_at=VALUE, taken_at=VALUE,
        created_at=VALUE, token_digest=Column(waived=CODE.waived, omitted="guards a link"),
    )  # fmt: skip

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("export")
        verbose_name_plural = _("exports")
        constraints = [models.UniqueConstraint(fields=["token_digest", "tenant"], name="export_token_once")]
        indexes = [
            # Serves taking away what has expired.
            models.Index(fields=["expires_at"], name="export_expiry_idx", condition=Q(state="ready")),
        ]

    def __str__(self) -> str:
        return f"Export {self.id}"


class PrivacyExportPiece(OfParent):
    """Some megabytes of an export's file, so that no process holds all of it; they go when it is taken or expires."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    export = models.ForeignKey(PrivacyExport, on_delete=models.CASCADE, related_name="pieces", db_index=False)
    number = models.PositiveIntegerField(help_text="From 0, in the order of the file.")
    content = models.BinaryField(editable=False)
    columns = Columns(omitted="earlier copies of this file, listed in `exports`", content=TEXT)

    class Meta:
        ordering = ["export", "number"]
        verbose_name = _("piece of an export")
        verbose_name_plural = _("pieces of exports")
        default_permissions = ()
        # It also finds the pieces of an export.
        constraints = [models.UniqueConstraint(fields=["export", "number", "tenant"], name="export_piece_once")]

    def __str__(self) -> str:
        return f"Piece {self.number} of export {self.export_id}"
