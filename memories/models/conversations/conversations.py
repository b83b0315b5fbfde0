"""Sessions and their turns; the queue row that says when a session's new turns are due for extraction; working memory:
what of a session has left its window, the running summary of that, and when to look again."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Self, TypeVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Exists, F, Func, OuterRef, Q, Value
from django.db.models.functions import Least, Now
from django.utils.translation import gettext_lazy as _

from memories.conf import pepper
from memories.models.columns import (
    CODE,
    DERIVED,
    INSIDE,
    KEY,
    MACHINE,
    OWN_CODE,
    OWN_TEXT,
    OWN_VALUE,
    TEXT,
    VALUE,
    Column,
    Columns,
)
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.people.agents import Agent
from memories.models.people.people import EndUser
from memories.models.people.tenants import MemoryOf, OfParent, Tenant

_GUESSED = "what the hub guesses of exported text: places in it, a doubt"


class Role(models.TextChoices):
    USER = "user", _("User")
    ASSISTANT = "assistant", _("Assistant")
    SYSTEM = "system", _("System")
    TOOL = "tool", _("Tool")


class Author(models.TextChoices):
    """Whose words a turn holds, whatever role it came in (rules.md, 1.6)."""

    PERSON = "person", _("Person")
    # A harness's frame, an order, an example, a document, a tool's result.
    APPLICATION = "application", _("Application")
    # A model's words; in a user's turn: those that come back.
    MODEL = "model", _("Model")
    OTHER = "other", _("Somebody else")


# Constant in the statements that ask for it, so that the partial index serves them.
UNEMBEDDED = Q(embedded_number__lt=F("turn_count"))


class SessionQuerySet(models.QuerySet["Session"]):
    def unembedded(self) -> Self:
        """Sessions with turns that no embedder has looked at."""
        return self.filter(UNEMBEDDED)


class Session(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="sessions", db_index=False
    )
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="sessions", db_index=False)
    agent_id = models.CharField(max_length=255, blank=True, help_text="Lower-cased; empty when no agent was named.")
    external_id = models.CharField(max_length=255, help_text="The caller's own id (session_id in the API).")
    # Kept here, as the key can be gone before its turns are read, and other keys can write to the session.
    memory_of = models.CharField(
        max_length=6,
        blank=True,
        choices=MemoryOf.choices,
        editable=False,
        help_text="Whose memory it becomes, as the key chose that opened it; empty: as the tenant says.",
    )
    turn_count = models.PositiveIntegerField(_("turns"), default=0)
    token_count = models.PositiveBigIntegerField(_("tokens"), default=0)
    round_count = models.PositiveIntegerField(default=0, help_text="User turns.")
    created_at = models.DateTimeField()
    last_turn_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True, help_text="When the caller ended it; a new turn reopens it.")
    embedded_number = models.PositiveIntegerField(
        default=0, editable=False, help_text="Turns up to here have a vector in the serving space, or need none."
    )
    # What retention deleted still counts: numbers are given once.
    deleted_number = models.PositiveIntegerField(
        default=0, editable=False, help_text="Turns up to here were deleted, as their time was over."
    )
    deleted_tokens = models.PositiveBigIntegerField(default=0, editable=False, help_text="Tokens of these turns.")
    deleted_rounds = models.PositiveIntegerField(default=0, editable=False, help_text="User turns among these.")
    # What an index in a process notices: a turn that was redacted or left keeps its place.
    redactions = models.PositiveIntegerField(
        default=0, editable=False, help_text="How often what a turn says was deleted, or turns were left or came back."
    )
    deleted_runs_number = models.PositiveIntegerField(
        default=0, editable=False, help_text="Runs that read turns up to here were deleted, as their time was over."
    )
    columns = Columns(
        id=OWN_VALUE, agent_id=OWN_TEXT, external_id=OWN_TEXT, memory_of=CODE, turn_count=VALUE, token_count=VALUE,
        round_count=VALUE, created_at=OWN_VALUE, last_turn_at=OWN_VALUE, ended_at=OWN_VALUE,
        embedded_number=MACHINE, deleted_number=MACHINE, deleted_tokens=MACHINE, deleted_rounds=MACHINE,
        redactions=MACHINE, deleted_runs_number=MACHINE,
    )  # fmt: skip

    objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("session")
        verbose_name_plural = _("sessions")
        constraints = [
            # Serves the look-up at every ingest; an absent agent is the empty string, so it is unique too.
            models.UniqueConstraint(fields=["end_user", "agent_id", "external_id"], name="session_once_per_agent"),
        ]
        indexes = [
            # Serves GET /sessions of a person, newest first.
            models.Index(fields=["end_user", "-created_at", "-id"], name="session_newest_idx"),
            # Serves the admin's list of a tenant.
            models.Index(fields=["tenant", "-last_turn_at"], name="session_tenant_recent_idx"),
            # Serves the embedder once a second: what was said last goes first.
            models.Index(fields=["-last_turn_at"], name="session_unembedded_idx", condition=UNEMBEDDED),
            # Serves contexts, which leave them out for other agents; empty but where keys choose it.
            models.Index(fields=["end_user"], name="session_of_agent_alone_idx", condition=Q(memory_of=MemoryOf.AGENT)),
        ]

    def __str__(self) -> str:
        return f"Session {self.id}"

    def owner(self, tenant: Tenant) -> str:
        """The agent whose memory it becomes; empty: it becomes the person's own."""
        return self.agent_id if (self.memory_of or tenant.memory_of) == MemoryOf.AGENT else ""


_QueueRow = TypeVar("_QueueRow", bound="QueueRow")


class QueueRowQuerySet(LeasedQuerySet[_QueueRow]):
    def unclaimed(self) -> Self:
        """Rows that no live lease holds and that are not parked."""
        return self.free().filter(parked_at=None)

    def due(self) -> Self:
        """Rows whose time has come; those of people under restriction wait until it is lifted."""
        # Not a join: whoever locks these rows locks nothing else.
        restricted = Session.objects.filter(pk=OuterRef("pk"), end_user__restricted_at__isnull=False)
        return self.unclaimed().filter(~Exists(restricted), due_at__lte=Now())

    def failed(self) -> Self:
        """Rows that wait for another attempt, or are parked."""
        return (self.unclaimed() | self.filter(parked_at__isnull=False)).exclude(failure="")

    def revive(self) -> int:
        """Make the rows due now, with their attempts counted anew; how many."""
        return self.update(parked_at=None, attempts=0, failure="", due_at=Now(), woken_at=None)


class QueueRow(OfParent, Leased):
    """One row per session that is its own queue: due, claimed, postponed or parked (queue/queue_rows.py)."""

    IN_WORK = Q(due_at__isnull=False, parked_at=None)

    due_at = models.DateTimeField(null=True, help_text="When a worker may begin; empty: nothing to do.")
    woken_at = models.DateTimeField(null=True, help_text="When the last wake-up was sent.")
    parked_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True


class SessionQueueQuerySet(QueueRowQuerySet["SessionQueue"]):
    def due(self) -> Self:
        """As of all; those of agents whose extraction is switched off wait until it is on."""
        off = Agent.objects.silenced().filter(tenant=OuterRef("tenant"), agent_id=OuterRef("agent_id"))
        return super().due().filter(~Exists(Session.objects.filter(Exists(off), pk=OuterRef("pk"))))

    def unarmed(self) -> Self:
        """Rows with user turns to extract that nobody armed: they came while extraction was switched off."""
        return self.filter(due_at=None, parked_at=None, pending_user=True)


class SessionQueue(QueueRow):
    """One row per session: this row, not the task queue, is what is waiting to be extracted."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, primary_key=True, related_name="queue")
    first_pending_at = models.DateTimeField(null=True, help_text="When the oldest turn not yet extracted arrived.")
    pending_rounds = models.PositiveIntegerField(default=0)
    pending_tokens = models.PositiveIntegerField(default=0)
    pending_user = models.BooleanField(default=False, help_text="A user turn waits.")
    pending_reply = models.BooleanField(default=False, help_text="An assistant turn waits.")
    round_open = models.BooleanField(default=False, help_text="The last user turn has no reply yet.")
    signals = ArrayField(models.CharField(max_length=20), default=list)
    extracted_number = models.PositiveIntegerField(default=0, help_text="The watermark: turns up to here are done.")
    batch_limit = models.PositiveIntegerField(
        null=True, help_text="How many fed turns the next batch may hold, after one that was too long."
    )
    columns = Columns(
        due_at=VALUE, first_pending_at=VALUE, signals=TEXT, extracted_number=VALUE, attempts=VALUE, parked_at=VALUE,
        failure=CODE, lease_token=MACHINE, lease_until=MACHINE, woken_at=MACHINE, session=INSIDE,
        pending_rounds=MACHINE, pending_tokens=MACHINE, pending_user=MACHINE, pending_reply=MACHINE,
        round_open=MACHINE, batch_limit=MACHINE,
    )  # fmt: skip

    objects = SessionQueueQuerySet.as_manager()

    class Meta:
        verbose_name = _("session queue")
        verbose_name_plural = _("session queues")
        indexes = [
            # Serves the sweep once a second and the age of the oldest overdue work.
            models.Index(
                fields=["due_at"], name="session_queue_due_idx", condition=Q(due_at__isnull=False, parked_at=None)
            ),
            # Serves the look for sessions to arm, and is empty but after extraction was switched off.
            models.Index(
                fields=["first_pending_at"],
                name="session_queue_unarmed_idx",
                condition=Q(due_at=None, parked_at=None, pending_user=True),
            ),
            # Serves the count of parked batches.
            models.Index(fields=["parked_at"], name="session_queue_parked_idx", condition=Q(parked_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"Queue of session {self.session_id}"


class WorkingMemory(QueueRow):
    """One row per session; the window is the turns beyond `left_number`, trimmed to its limits when it is read."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, primary_key=True, related_name="working_memory")
    summary = models.TextField(blank=True, help_text="Of the turns that have left the window.")
    extractor = models.CharField(max_length=120, blank=True)
    prompt_version = models.CharField(max_length=40, blank=True)
    left_number = models.PositiveIntegerField(default=0, help_text="Turns up to here have left the window.")
    left_tokens = models.PositiveBigIntegerField(
        default=0, help_text="Tokens of these turns, and of turns of branches that the client left."
    )
    left_rounds = models.PositiveIntegerField(default=0, help_text="User turns among these.")
    episode_number = models.PositiveIntegerField(
        default=0, help_text="Turns up to here are in an episode, or need none."
    )
    episodes_made = models.PositiveIntegerField(default=0, help_text="Also those that were deleted since.")
    over_since = models.DateTimeField(null=True, help_text="When the window became too full.")
    unarmed = models.BooleanField(default=False, help_text="Turns came while there was no model, and nobody armed it.")
    updated_at = models.DateTimeField(null=True, help_text="When the summary was last written.")
    columns = Columns(
        summary=TEXT, extractor=CODE, prompt_version=CODE, left_number=VALUE, parked_at=VALUE, failure=CODE,
        updated_at=VALUE, lease_token=MACHINE, lease_until=MACHINE, attempts=MACHINE, due_at=MACHINE,
        woken_at=MACHINE, session=INSIDE, left_tokens=MACHINE, left_rounds=MACHINE, episode_number=MACHINE,
        episodes_made=MACHINE, over_since=MACHINE, unarmed=MACHINE,
    )  # fmt: skip

    objects = QueueRowQuerySet.as_manager()

    class Meta:
        verbose_name = _("working memory")
        verbose_name_plural = _("working memories")
        indexes = [
            # Serves the sweep once a second.
            models.Index(
                fields=["due_at"], name="working_memory_due_idx", condition=Q(due_at__isnull=False, parked_at=None)
            ),
            # Serves the look for rows to arm, and is empty but after the model was switched off.
            models.Index(fields=["session"], name="working_memory_unarmed_idx", condition=Q(unarmed=True)),
            # Serves the count of parked ones.
            models.Index(fields=["parked_at"], name="working_memory_parked_idx", condition=Q(parked_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"Working memory of session {self.session_id}"


AUTHOR_OF_ROLE: Mapping[str, str] = {Role.USER: Author.PERSON, Role.ASSISTANT: Author.MODEL}
# What a message repeats that is one of the session's turns again.
REPEATED = ("role", "content", "parts", "tool_call_id")
# What is trimmed from a text before it is embedded; a text of these alone has nothing to be found by.
BLANKS = " \t\n\r\f\v\u00a0\u3000\u200b\ufeff"


def trimmed(field: str) -> Func:
    """The text of the field without BLANKS around it, as `text.strip(BLANKS)` gives it."""
    return Func(F(field), Value(BLANKS), function="btrim", output_field=models.TextField())


def speaker(alias: str = "turn") -> str:
    """`Turn.speaker` in SQL, for statements written by hand."""
    return (
        f"CASE WHEN {alias}.role = 'user' AND {alias}.author NOT IN ('', 'person') "
        f"THEN {alias}.author ELSE {alias}.role END"
    )


# Turns with role user that are not the person's.
NOT_THE_PERSONS = Q(role=Role.USER) & ~Q(author__in=["", Author.PERSON])


def sent_at(turn: str = "") -> Least:
    """When a turn was sent, as `Turn.sent_at`; `turn` is the look-up of it, like `turn__`. LEAST leaves out a null."""
    return Least(f"{turn}timestamp", f"{turn}created_at")


SENT_AT = sent_at()


def moment_sent(alias: str = "") -> str:
    """`Turn.sent_at` in SQL, for statements written by hand; without an alias of the columns by their names."""
    dot = f"{alias}." if alias else ""
    return f"least({dot}timestamp, {dot}created_at)"


class TurnQuerySet(models.QuerySet["Turn"]):
    def after(self, number: int) -> Self:
        return self.filter(number__gt=number).order_by("number")

    def current(self) -> Self:
        """Turns of the conversation as it is now: none of a branch that the client left."""
        return self.filter(left_at=None)

    def readable(self) -> Self:
        """Turns that extraction reads: those of the conversation as it is now, and what the person said on a branch
        that the client left."""
        return self.filter(Q(left_at=None) | Q(role=Role.USER, author__in=["", Author.PERSON]))

    def said(self) -> Self:
        """The person's own turns; `Turn.is_said` in SQL."""
        return self.filter(role=Role.USER, author__in=["", Author.PERSON])

    def of_author(self, author: str) -> Self:
        """Turns that hold this author's words; `Turn.known_author` in SQL."""
        roles = [role for role in Role.values if AUTHOR_OF_ROLE.get(role, Author.APPLICATION) == author]
        return self.filter(Q(author=author) | Q(author="", role__in=roles))

    def searchable(self) -> Self:
        """Turns that a search may find: current, with text, not hidden, of no system; `Turn.is_searchable` in SQL."""
        spoken = self.current().exclude(role=Role.SYSTEM).exclude(metadata__contains={"hide_from_ui": True})
        return spoken.alias(spoken=trimmed("content")).exclude(spoken="").exclude(own=[])


class Turn(models.Model):
    """One message, stored as it was posted; `number` is the server's and has no gaps within a session."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="turns", db_index=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns", db_index=False)
    number = models.PositiveIntegerField()
    role = models.CharField(max_length=9, choices=Role.choices)
    author = models.CharField(
        _("author"),
        max_length=11,
        blank=True,
        choices=Author.choices,
        help_text=_("Whose words it holds. Empty: it was stored before the hub asked; by its role."),
    )
    content = models.TextField(blank=True, help_text="The text; of list content, its text parts as paragraphs.")
    own = models.JSONField(
        null=True,
        blank=True,
        editable=False,
        help_text="Start and end of each part of the text that is its author's own; empty: all of it.",
    )
    is_doubtful = models.BooleanField(
        default=False,
        editable=False,
        help_text="What it says may not be the person's: nothing of it is believed alone.",
    )
    parts = models.JSONField(null=True, blank=True, help_text="List content as posted; empty for plain text.")
    name = models.CharField(max_length=255, blank=True)
    tool_calls = models.JSONField(null=True, blank=True)
    tool_call_id = models.CharField(max_length=255, blank=True, help_text="Of a tool turn: the call that it answers.")
    metadata = models.JSONField(default=dict, blank=True)
    external_id = models.CharField(max_length=255, null=True, blank=True)
    token_count = models.PositiveIntegerField()
    terms = models.BinaryField(
        null=True,
        editable=False,
        help_text="Hashes of the words with their counts (scoring.terms); empty: not searched.",
    )
    flagged = models.BooleanField(
        null=True,
        editable=False,
        help_text="An assistant's or a tool's that speaks to a model: no context recalls it. Empty: not judged yet.",
    )
    timestamp = models.DateTimeField(null=True, blank=True, help_text="The client's time; never decides the order.")
    # No foreign key: its check would cost every post, and keys are revoked, not deleted.
    key_id = models.UUIDField(null=True, editable=False, help_text="Of the API key that posted it.")
    created_at = models.DateTimeField()
    redacted_at = models.DateTimeField(
        null=True, editable=False, help_text="When what it said, or a part of it, was deleted."
    )
    left_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When the client went on from an earlier message without it; empty: part of the conversation.",
    )
    follows = models.PositiveIntegerField(
        null=True,
        editable=False,
        help_text="The number of the turn that it follows, on a branch; empty: the one before it.",
    )
    answer_key = models.BinaryField(
        max_length=16,
        null=True,
        editable=False,
        help_text="Keyed hash of an answer that the gateway passed on, and of what it answers: a request that holds "
        "both goes on with the session.",
    )
    digest = models.BinaryField(
        max_length=32,
        null=True,
        editable=False,
        help_text="Keyed hash of what a redacted one said: the same message is not stored again.",
    )
    columns = Columns(
        id=OWN_VALUE, session=OWN_VALUE, number=OWN_VALUE, role=OWN_CODE, author=CODE, content=OWN_TEXT,
        parts=OWN_TEXT, name=OWN_TEXT, tool_calls=TEXT, tool_call_id=TEXT, metadata=OWN_TEXT, external_id=OWN_TEXT,
        token_count=VALUE, timestamp=OWN_VALUE, created_at=OWN_VALUE, redacted_at=VALUE, left_at=VALUE,
        own=Column(waived="places in the text", omitted=_GUESSED), is_doubtful=Column(omitted=_GUESSED),
        terms=DERIVED, flagged=Column(omitted="a judgement of exported text, made by the hub for itself"),
        key_id=KEY, follows=MACHINE,
        answer_key=Column(erased=True, omitted="a keyed hash of an answer, by which the hub knows its conversation"),
        digest=DERIVED,
    )  # fmt: skip

    objects = TurnQuerySet.as_manager()

    class Meta:
        ordering = ["session", "number"]
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        constraints = [
            # Serves reading a session in order, and holds "no number twice" under races.
            models.UniqueConstraint(fields=["session", "number", "tenant"], name="turn_number_once"),
            # Serves the look-up of doubles at ingest.
            models.UniqueConstraint(
                fields=["session", "external_id", "tenant"],
                name="turn_external_id_once",
                condition=Q(external_id__isnull=False),
            ),
        ]
        indexes = [
            # Serves counting and erasing one person's turns, and contexts that tell what was said last.
            models.Index(F("end_user"), SENT_AT.desc(), name="turn_said_idx"),
            # Serves the window of a long session: what the system said stands at its start, as a rule.
            models.Index(fields=["session", "-number"], name="turn_of_system_idx", condition=Q(role="system")),
            # Serves windows and comparisons with what a client sends again; most sessions have none of these.
            models.Index(fields=["session", "number"], name="turn_left_idx", condition=Q(left_at__isnull=False)),
            # Serves the look for the session that a request goes on with.
            models.Index(
                fields=["end_user", "answer_key"], name="turn_answer_idx", condition=Q(answer_key__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"Turn {self.id}"

    @property
    def sent_at(self) -> datetime:
        """When it was sent: the client's time, but never after it arrived; in SQL LEAST(timestamp, created_at)."""
        return self.timestamp if self.timestamp and self.timestamp < self.created_at else self.created_at

    @property
    def is_said(self) -> bool:
        """Whether it is the person's own word."""
        return self.role == Role.USER and self.author in ("", Author.PERSON)

    @property
    def speaker(self) -> str:
        """Who speaks: the role, but of a user's turn that is not the person's the author."""
        return self.author if self.role == Role.USER and not self.is_said else self.role

    @property
    def known_author(self) -> str:
        """The author; of a turn that has none, by its role."""
        return self.author or AUTHOR_OF_ROLE.get(self.role, Author.APPLICATION)

    @property
    def own_text(self) -> str:
        """The parts of the text that are its author's own, as paragraphs."""
        if self.own is None:
            return self.content
        return "\n\n".join(self.content[start:end] for start, end in self.own)

    @property
    def content_digest(self) -> bytes:
        """What stands for what it says once that is deleted (32 bytes); tells nothing without the pepper."""
        repeated = json.dumps([getattr(self, name) for name in REPEATED], sort_keys=True)
        return pepper.digest("turn", self.session_id.bytes, repeated.encode())

    @property
    def is_searchable(self) -> bool:
        """Whether a search may find it, and so whether it needs a vector; `TurnQuerySet.searchable()` in Python."""
        hidden = self.metadata.get("hide_from_ui") is True
        return self.left_at is None and self.role != Role.SYSTEM and not hidden and bool(self.own_text.strip(BLANKS))
