"""Dreams: what a model made of a person's new episodes in their memory files, edit by edit, and reflections, which
propose facts."""

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, INSIDE, MACHINE, STAFF, TEXT, VALUE, Columns
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.memories.episodes import Episode
from memories.models.memories.files import LONGEST_PATH
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant

# Why a dream failed whose person was erased, merged, cleared or restricted meanwhile.
PERSON_CHANGED = "person_changed"
# Longer texts of an edit are refused, and stored up to here.
LONGEST_EDIT = 8_000


class DreamQuerySet(LeasedQuerySet["Dream"]):
    def of(self, tenant: Tenant, end_user: EndUser) -> Self:
        """The dreams about one person: every read starts here."""
        return self.filter(tenant=tenant, end_user=end_user)

    def running(self) -> Self:
        """Those that a worker has or is to take."""
        return self.filter(state=Dream.State.RUNNING)

    def open(self) -> Self:
        """Those after which nothing new is dreamt about these files: running ones, and ones that wait for approval."""
        return self.filter(state__in=OPEN)

    def doubt(self, episodes: QuerySet[Episode] | Collection[uuid.UUID], *, now: datetime) -> int:
        """Note of those that read one of these episodes, which go or are taken back, that somebody is to look at what
        they wrote or are to write; returns how many.

        In the transaction that locked the people, and before the episodes are deleted.
        """
        return self.doubtful(episodes).update(doubted_at=now, version=F("version") + 1)

    def doubtful(self, episodes: QuerySet[Episode] | Collection[uuid.UUID]) -> Self:
        """Those that doubt() would note."""
        read = DreamedEpisode.objects.filter(episode__in=episodes).values("dream")
        wrote = DreamEdit.objects.filter(state__in=[DreamEdit.State.APPLIED, DreamEdit.State.WAITING])
        rows = self.filter(pk__in=read, kind=Dream.Kind.FILES, doubted_at=None)
        return rows.filter(Exists(wrote.filter(dream=OuterRef("pk"))))

    def abandon(self) -> int:
        """End those that are open: nothing of them is applied, and what they read is new again; returns how many.

        In the transaction that locked the people, who are not who they were.
        """
        ids = list(self.open().values_list("pk", flat=True))
        DreamedEpisode.objects.filter(dream__in=ids).delete()
        DreamEdit.objects.filter(dream__in=ids, state=DreamEdit.State.WAITING).update(state=DreamEdit.State.DECLINED)
        ended = {"state": Dream.State.FAILED, "failure": PERSON_CHANGED, "finished_at": Now()}
        return Dream.objects.filter(pk__in=ids).update(
            **ended, lease_token=None, lease_until=None, version=F("version") + 1
        )


class Dream(Leased):
    """One dream, or one reflection, about a person for one agent; the row is the queue: whoever holds its lease works
    on it."""

    class Kind(models.TextChoices):
        FILES = "files", _("Memory files")
        # It edits no file: what it finds in many episodes waits in the review queue.
        REFLECTION = "reflection", _("Reflection")

    class State(models.TextChoices):
        RUNNING = "running", _("Running")
        WAITING = "waiting", _("Waiting for approval")
        APPLIED = "applied", _("Applied")
        # The model proposed nothing, or nothing of it could be applied.
        UNCHANGED = "unchanged", _("Nothing changed")
        DECLINED = "declined", _("Declined")
        # The files are what they were before it, and its episodes are new again.
        RESTORED = "restored", _("Taken back")
        FAILED = "failed", _("Failed")

    class Trigger(models.TextChoices):
        SCHEDULE = "schedule", _("Schedule")
        HAND = "hand", _("By hand")

    IN_WORK = Q(state=State.RUNNING)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="dreams", db_index=False
    )
    agent_id = models.CharField(
        _("agent"), max_length=255, blank=True, help_text="Whose episodes and files; empty: of those without an agent."
    )
    kind = models.CharField(_("kind"), max_length=10, choices=Kind.choices, default=Kind.FILES)
    trigger = models.CharField(_("started by"), max_length=8, choices=Trigger.choices)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices, blank=True, help_text="Who asked for it.")
    actor_id = models.CharField(max_length=36, blank=True)
    state = models.CharField(_("status"), max_length=9, choices=State.choices, default=State.RUNNING)
    episodes = models.PositiveIntegerField(_("episodes"), default=0, help_text="How many it read.")
    proposed = models.PositiveIntegerField(default=0, help_text="Of a reflection: how many facts it proposed.")
    summary = models.TextField(blank=True, help_text="What changed, in lines of each file; made by code.")
    extractor = models.CharField(max_length=120, blank=True, help_text="llm:<model>.")
    prompt_version = models.CharField(max_length=40, blank=True)
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True, help_text="US dollars.")
    version = models.PositiveIntegerField(default=1, help_text="Rises with each decision.")
    started_at = models.DateTimeField(_("started"))
    finished_at = models.DateTimeField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True, help_text="When somebody last decided about it.")
    doubted_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Since when somebody is to look at it: episodes that it read were deleted, redacted or rolled back.",
    )
    columns = Columns(
        id=VALUE, agent_id=TEXT, kind=CODE, trigger=CODE, actor_kind=CODE, state=CODE, episodes=VALUE,
        proposed=VALUE, summary=TEXT, failure=CODE, extractor=CODE, prompt_version=CODE, calls=VALUE,
        prompt_tokens=VALUE, completion_tokens=VALUE, cost=VALUE, version=VALUE, started_at=VALUE,
        finished_at=VALUE, decided_at=VALUE, doubted_at=VALUE, lease_token=MACHINE, lease_until=MACHINE,
        attempts=MACHINE, actor_id=STAFF,
    )  # fmt: skip

    objects = DreamQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "-id"]
        default_permissions = ("view", "change")
        verbose_name = _("dream")
        verbose_name_plural = _("dreams")
        constraints = [
            # One of a kind at a time: two would read the same episodes.
            models.UniqueConstraint(
                fields=["end_user", "tenant", "agent_id", "kind"],
                name="dream_open_once",
                condition=Q(state__in=["running", "waiting"]),
            ),
        ]
        indexes = [
            # Serves whether a person is due, and their list.
            models.Index(fields=["end_user", "agent_id", "-started_at"], name="dream_newest_idx"),
            # Serves the admin's list, and the nightly pass that deletes old ones.
            models.Index(fields=["tenant", "-started_at"], name="dream_of_tenant_idx"),
            # Serves the list of those that somebody is to look at; few are.
            models.Index(fields=["doubted_at"], name="dream_doubted_idx", condition=Q(doubted_at__isnull=False)),
            # Serves the worker.
            models.Index(fields=["lease_until"], name="dream_running_idx", condition=Q(state="running")),
        ]

    def __str__(self) -> str:
        return f"Dream {self.id}"


OPEN = (Dream.State.RUNNING, Dream.State.WAITING)


class DreamEdit(models.Model):
    """One edit that the model proposed: applied, refused and why, or waiting for somebody."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting for approval")
        APPLIED = "applied", _("Applied")
        REFUSED = "refused", _("Refused")
        DECLINED = "declined", _("Declined")
        UNDONE = "undone", _("Undone")

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    dream = models.ForeignKey(Dream, on_delete=models.CASCADE, related_name="edits", db_index=False)
    number = models.PositiveIntegerField(help_text="Its place in the answer, from 1.")
    path = models.CharField(max_length=LONGEST_PATH, blank=True)
    old_text = models.TextField(blank=True, help_text="Empty: the new text is added at the end, or begins the file.")
    new_text = models.TextField(blank=True, help_text="Empty: the old text goes.")
    state = models.CharField(max_length=8, choices=State.choices)
    code = models.CharField(max_length=40, blank=True, help_text="Why it was refused.")
    file_version = models.PositiveIntegerField(null=True, blank=True, help_text="The version of the file that has it.")
    columns = Columns(
        number=VALUE, path=TEXT, old_text=TEXT, new_text=TEXT, state=CODE, code=CODE, file_version=VALUE, id=INSIDE,
        dream=INSIDE,
    )  # fmt: skip

    class Meta:
        ordering = ["number"]
        default_permissions = ()
        verbose_name = _("edit of a dream")
        verbose_name_plural = _("edits of dreams")
        constraints = [
            # Serves the edits of a dream in their order.
            models.UniqueConstraint(fields=["dream", "tenant", "number"], name="dream_edit_once"),
        ]

    def __str__(self) -> str:
        return f"Edit {self.number} of dream {self.dream_id}"


class DreamedEpisode(models.Model):
    """An episode that was dreamt of: with all of them it is the cursor. Each episode at most once."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="dreamed", db_index=False)
    # Old dreams are deleted; what they read stays read.
    dream = models.ForeignKey(Dream, on_delete=models.SET_NULL, null=True, related_name="read", db_index=False)
    columns = Columns(omitted="which exported episodes were read, so that none is read twice")

    class Meta:
        default_permissions = ()
        verbose_name = _("episode that was dreamt of")
        verbose_name_plural = _("episodes that were dreamt of")
        constraints = [
            # Makes it impossible that an episode is dreamt of twice.
            models.UniqueConstraint(fields=["episode", "tenant"], name="dreamed_episode_once"),
        ]
        indexes = [
            # Serves what a dream read, and giving it back.
            models.Index(fields=["dream"], name="dreamed_episode_dream_idx"),
        ]

    def __str__(self) -> str:
        return f"Episode {self.episode_id} of dream {self.dream_id}"
