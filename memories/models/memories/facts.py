"""Facts: statements about a person, each with its evidence and its revisions."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Cast
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.categories import CATEGORIES, MemoryType, choices
from memories.models.columns import CODE, DERIVED, OWN_TEXT, OWN_VALUE, REWORDED, TEXT, VALUE, Columns
from memories.models.conversations.runs import ExtractionRun
from memories.models.folding import text_digest
from memories.models.ids import new_id
from memories.models.memories import visibility
from memories.models.memories.visibility import MemoryScope, Status
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant
from memories.scoring import terms
from memories.scoring.decay import DecayInput, decay_score, forget_at
from memories.trust import Source, Trust

if TYPE_CHECKING:
    from memories.models.memories.evidence import FactEvidence, FactRelation

# Rows of one statement.
STEP = 500
# Begins the key of a fact that is the value of a profile's field (profiles/fields.py).
OF_PROFILE = "profile."
UNIT = [MinValueValidator(0.0), MaxValueValidator(1.0)]


def is_field_key(key: str) -> bool:
    """Whether a fact with this key is, or was, a value of a profile."""
    return key.startswith(OF_PROFILE)


# Facts that search may find and that have no vector of their present text.
UNEMBEDDED = Q(status__in=[Status.ACTIVE, Status.PENDING]) & (
    Q(embedded_hash=None) | ~Q(embedded_hash=F("content_hash"))
)


def faded(now: datetime) -> Q:
    """What the decay pass takes (rules.md, 7.3): protected facts have no date, and are left alone if they had."""
    fading = visibility.active(now) & Q(forget_at__lte=now, pinned=False, locked=False, binding=False)
    return fading & ~Q(key__startswith=OF_PROFILE)


class FactQuerySet(models.QuerySet["Fact"]):
    def of(self, tenant: Tenant, end_user: EndUser) -> Self:
        """The facts of one person: every read of memories starts here."""
        return self.filter(tenant=tenant, end_user=end_user)

    def twins_of(self, fact: "Fact", **same: Any) -> Self:
        """The other live facts of its person with its text, or with this instead."""
        live = self.filter(tenant=fact.tenant_id, end_user=fact.end_user_id, status__in=Status.LIVE)
        return live.filter(**same or {"content_hash": bytes(fact.content_hash)}).exclude(pk=fact.pk).order_by("pk")

    def active(self, *, now: datetime) -> Self:
        return self.filter(visibility.active(now))

    def held_at(self, moment: datetime) -> Self:
        return self.filter(visibility.held_at(moment))

    def faded(self, *, now: datetime) -> Self:
        return self.filter(faded(now))

    def expired(self, *, now: datetime) -> Self:
        """What it takes besides: a stated date holds for pinned facts, too, but no job changes a locked one."""
        return self.filter(status__in=[Status.ACTIVE, Status.PENDING], expires_at__lte=now, locked=False)

    def discarded(self, *, now: datetime) -> Self:
        """What is in the trash since then, or longer."""
        return self.filter(status=Status.TRASHED, trashed_at__lte=now)

    def reflected(self) -> Self:
        """What reflections proposed: made of episodes, and not of single turns."""
        return self.filter(prompt_version__startswith="reflections-")

    def unembedded(self) -> Self:
        """Facts whose present text no embedder has looked at."""
        return self.filter(UNEMBEDDED)

    def saying(self, text: str) -> Self:
        """Facts whose content, quote or structured data contains the text, in any case."""
        parts = self.annotate(parts_as_text=Cast("structured", models.TextField()))
        return parts.filter(Q(content__icontains=text) | Q(raw__icontains=text) | Q(parts_as_text__icontains=text))

    def unquote(self) -> None:
        """Empty their quotes, and what they are found by with these; in a transaction, after the person's lock."""
        ids = list(self.exclude(raw="").order_by("pk").values_list("pk", flat=True))
        for start in range(0, len(ids), STEP):
            locked = Fact.objects.select_for_update(of=("self",), no_key=True).order_by("pk")
            facts = list(locked.filter(pk__in=ids[start : start + STEP]))
            for fact in facts:
                fact.raw = ""
                fact.set_text(fact.content)
            Fact.objects.bulk_update(facts, ["raw", "terms"])

    def public_beside(self, tenant: Tenant, end_user: EndUser) -> Self:
        return self.filter(visibility.public_beside(tenant.pk, end_user.pk))

    def visible_to(self, person: EndUser, *, agent_id: str, roles: Sequence[str]) -> Self:
        """Facts that this agent may see when it asks about the person for these roles (rules.md, 5.8)."""
        return self.for_agent(agent_id).open_to(person, roles=roles)

    def open_to(self, person: EndUser, *, roles: Sequence[str]) -> Self:
        """The same for all agents."""
        return self.filter(visibility.for_names_of(person.pk), visibility.for_roles(roles))

    def latest_for(self, agent_id: str) -> Self:
        """What the agent is told of these facts of a person: of two with one key, what was said last."""
        return self.filter(visibility.latest(agent_id, self)) if agent_id else self

    def for_agent(self, agent_id: str) -> Self:
        return self.filter(visibility.for_agent(agent_id))


class Fact(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="facts", db_index=False)
    agent_id = models.CharField(_("agent"), max_length=255, blank=True, help_text="Empty: the person's own.")
    category = models.CharField(_("category"), max_length=12, choices=choices)
    content = models.TextField(max_length=2000)
    content_hash = models.BinaryField(max_length=32, editable=False, help_text="SHA-256 of the folded content.")
    terms = models.BinaryField(null=True, editable=False, help_text="Hashes of the content's words with their counts.")
    raw = models.TextField(_("quote"), blank=True, help_text="The quote it rests on.")
    structured = models.JSONField(_("structured data"), null=True, blank=True)
    triples = models.JSONField(
        _("triples"), null=True, editable=False, help_text="What its text says, in parts: rows of the graph follow."
    )
    external_id = models.CharField(
        _("external id"), max_length=255, blank=True, help_text="Your own id, or the one in the document it came with."
    )
    document = models.JSONField(
        null=True, editable=False, help_text="What that document says besides, as it is told to who asks for it again."
    )
    key = models.CharField(_("key"), max_length=100, blank=True, help_text="What it is about, e.g. home_city.")
    value = models.CharField(_("value"), max_length=500, blank=True)
    confidence = models.FloatField(_("confidence"), validators=UNIT)
    stated_confidence = models.FloatField(validators=UNIT, help_text="Highest stated one, without reinforcement.")
    importance = models.FloatField(_("importance"), default=0.5, validators=UNIT)
    tags = ArrayField(models.CharField(max_length=100), verbose_name=_("tags"), default=list, blank=True)
    source = models.CharField(_("source"), max_length=20, choices=Source.choices)
    source_error = models.TextField(
        _("what was wrong"), blank=True, max_length=2000, help_text="Of a correction: what was wrong."
    )
    trust = models.CharField(_("trust"), max_length=9, choices=Trust.choices)
    extractor = models.CharField(max_length=120, help_text="llm:<model>, operator, api, import.")
    prompt_version = models.CharField(max_length=40, blank=True)
    extraction = models.ForeignKey(
        ExtractionRun, null=True, blank=True, on_delete=models.SET_NULL, related_name="facts"
    )
    flags = ArrayField(
        models.CharField(max_length=40), verbose_name=_("flags"), default=list, blank=True, help_text="Why it is held."
    )
    status = models.CharField(_("status"), max_length=10, choices=Status.choices, default=Status.ACTIVE)
    pinned = models.BooleanField(_("pinned"), default=False)
    locked = models.BooleanField(_("locked"), default=False)
    binding = models.BooleanField(
        _("confirmed by operator"),
        default=False,
        help_text="An operator's word: no job and no key changes or removes it.",
    )
    mentions = models.PositiveIntegerField(_("mentions"), default=1)
    version = models.PositiveIntegerField(default=1)
    scope = models.CharField(_("scope"), max_length=7, choices=MemoryScope.choices, default=MemoryScope.PRIVATE)
    allowed_users = ArrayField(models.CharField(max_length=255), verbose_name=_("users"), default=list, blank=True)
    allowed_roles = ArrayField(models.CharField(max_length=100), verbose_name=_("roles"), default=list, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    first_observed_at = models.DateTimeField()
    last_confirmed_at = models.DateTimeField()
    last_recalled_at = models.DateTimeField(null=True, blank=True)
    valid_from = models.DateTimeField()
    valid_to = models.DateTimeField(_("valid until"), null=True, blank=True)
    superseded_by = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="older")
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    trashed_at = models.DateTimeField(null=True, blank=True)
    decay_score = models.FloatField()
    forget_at = models.DateTimeField(null=True, blank=True, help_text="When it will have faded; empty: never.")
    embedded_hash = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="The content_hash that the serving space has a vector of."
    )
    columns = Columns(
        id=OWN_VALUE, agent_id=OWN_TEXT, category=CODE, content=OWN_TEXT, raw=OWN_TEXT, structured=TEXT,
        triples=TEXT, external_id=TEXT, document=TEXT, key=OWN_TEXT, value=OWN_TEXT, confidence=VALUE,
        stated_confidence=VALUE, importance=VALUE, tags=TEXT, source=CODE, source_error=TEXT, trust=CODE,
        extractor=CODE, prompt_version=CODE, extraction=VALUE, flags=CODE, status=CODE, pinned=VALUE, locked=VALUE,
        binding=VALUE, mentions=VALUE, version=VALUE, scope=CODE, allowed_roles=TEXT, created_at=VALUE,
        updated_at=VALUE, first_observed_at=OWN_VALUE, last_confirmed_at=OWN_VALUE, last_recalled_at=VALUE,
        valid_from=OWN_VALUE, valid_to=OWN_VALUE, superseded_by=VALUE, expires_at=VALUE, trashed_at=VALUE,
        decay_score=VALUE, forget_at=VALUE, content_hash=DERIVED, terms=DERIVED, allowed_users=REWORDED,
        embedded_hash=DERIVED,
    )  # fmt: skip

    # Lists that the API's lookups read along.
    cited: list["FactEvidence"]
    stated_relations: list["FactRelation"]
    replaced: list["Fact"]
    # Relations that facts which the caller sees state to this one: set where an answer shows them.
    relations_to_it: list["FactRelation"]

    # How many turns still say what a change took out of it: whoever changed it has counted them.
    still_said_by: int | None = None

    objects = FactQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("fact")
        verbose_name_plural = _("facts")
        constraints = [
            # One row per text and person, also under races; agents keep their private ones apart.
            models.UniqueConstraint(
                fields=["end_user", "agent_id", "content_hash"],
                name="fact_text_once",
                condition=Q(status__in=[Status.ACTIVE, Status.PENDING]),
            ),
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="fact_confidence_0_1"),
            models.CheckConstraint(condition=Q(importance__range=(0, 1)), name="fact_importance_0_1"),
            models.CheckConstraint(condition=~Q(content=""), name="fact_content_not_empty"),
        ]
        indexes = [
            # Serves GET /facts and contexts: one person's facts of a status.
            models.Index(fields=["end_user", "status", "-created_at", "-id"], name="fact_of_end_user_idx"),
            # Serves the admin's list of a tenant.
            models.Index(fields=["tenant", "status", "-created_at"], name="fact_of_tenant_idx"),
            # Serves contexts and searches: whether anything of a person was changed.
            models.Index(fields=["end_user"], name="fact_changed_idx", condition=Q(status="active") & Q(version__gt=1)),
            # Serves the admin's list of all tenants, newest first.
            models.Index(fields=["-created_at", "-id"], name="fact_newest_idx"),
            # Serves the tabs over that list for the few facts that somebody marked or has to look at, and their counts.
            models.Index(
                fields=["-created_at", "-id"],
                name="fact_marked_idx",
                condition=Q(pinned=True) | Q(locked=True) | Q(binding=True) | Q(status="pending"),
            ),
            # Serves the conflict rule of reconciliation: same (category, key).
            models.Index(
                fields=["end_user", "category", "key"], name="fact_key_idx", condition=Q(status="active") & ~Q(key="")
            ),
            # Serves contexts and searches of an agent: what it says of a key takes the place of what the person does.
            models.Index(
                fields=["end_user", "agent_id", "category", "key"],
                name="fact_of_agent_idx",
                condition=Q(status="active") & ~Q(agent_id="") & ~Q(key=""),
            ),
            # Serves contexts and searches of everybody in the tenant, and is empty but where operators publish facts.
            models.Index(fields=["tenant"], name="fact_public_idx", condition=Q(scope="public") & Q(status="active")),
            # Serves the decay pass: only what is due.
            models.Index(
                fields=["tenant", "forget_at", "id"],
                name="fact_forget_at_idx",
                condition=Q(status="active") & Q(forget_at__isnull=False),
            ),
            # Serve it for what expires, and for what has been in the trash long enough.
            models.Index(
                fields=["tenant", "expires_at", "id"],
                name="fact_expires_idx",
                condition=Q(status__in=["active", "pending"]) & Q(expires_at__isnull=False),
            ),
            models.Index(fields=["tenant", "trashed_at", "id"], name="fact_trash_idx", condition=Q(status="trashed")),
            # Serves the embedder once a second. No verb has to mark a fact: its hash changes with its text.
            models.Index(fields=["-updated_at"], name="fact_unembedded_idx", condition=UNEMBEDDED),
            # Serves the tag filter.
            GinIndex(fields=["tags"], name="fact_tags_idx"),
            # Serves finding the facts that name a reader who gets another id or is erased; few name any.
            GinIndex(fields=["allowed_users"], name="fact_readers_idx", condition=~Q(allowed_users=[])),
        ]

    def __str__(self) -> str:
        return f"Fact {self.id} ({self.category})"

    @property
    def type(self) -> MemoryType:
        return CATEGORIES[self.category].type

    @property
    def protected(self) -> bool:
        """No job changes, merges or supersedes it, and it does not fade."""
        return self.binding or self.pinned or self.locked

    @property
    def is_of_profile(self) -> bool:
        """Whether it is the value of a field of a profile that the tenant defined: such a one does not fade."""
        return is_field_key(self.key)

    @property
    def is_persons_word(self) -> bool:
        """Whether the person stated it on their own page, and no operator keeps it besides."""
        return self.binding and self.source == Source.PERSON and not (self.pinned or self.locked)

    @property
    def confirmed_by(self) -> Promise:
        """Who made it binding."""
        return _("Confirmed by the person") if self.is_persons_word else _("Confirmed by operator")

    def can_be_superseded_by(self, other: "Fact") -> bool:
        """Whether the other can take its place: the person's own gives way to no agent's, as all agents are told it."""
        return other.agent_id in ("", self.agent_id)

    def set_text(self, content: str) -> None:
        """Take this text, with the hash that keeps it unique and the terms that it is found by: its own, and what its
        quote and structured data add, so these are set before."""
        self.content = content
        self.content_hash = text_digest(content)
        self.terms = terms.pack(content, beside=terms.quoted(self.raw, self.structured))

    def set_times(
        self,
        *,
        now: datetime,
        rules: conf.Rules,
        stated_at: Iterable[datetime] = (),
        valid_from: datetime | None = None,
    ) -> None:
        """Set the times that a new fact starts with, and its decay: it arrives `now`, and is dated by when what it
        rests on was stated (`stated_at`; empty: now). `valid_from` if it is stated; nothing is dated after it arrives.
        """
        moments = [min(moment, now) for moment in stated_at] or [now]
        self.created_at = self.updated_at = now
        self.first_observed_at, self.last_confirmed_at = min(moments), max(moments)
        self.valid_from = min(valid_from or self.first_observed_at, now)
        self.refresh_decay(now=now, rules=rules)

    def confirm(self, by: float) -> None:
        """Raise its confidence, without the digits that sums of fractions leave."""
        self.confidence = round(min(1.0, self.confidence + by), 6)

    def extend_times(self, stated_at: Iterable[datetime]) -> None:
        """Date it by further statements of the same, which can be older than those that it has."""
        moments = [self.first_observed_at, self.last_confirmed_at, *stated_at]
        self.first_observed_at, self.last_confirmed_at = min(moments), max(moments)
        self.valid_from = min(self.valid_from, self.first_observed_at)

    @property
    def last_reinforced(self) -> datetime:
        """Since when it fades: the later of its last mention and its last recall."""
        return max(self.last_confirmed_at, self.last_recalled_at or self.last_confirmed_at)

    def refresh_decay(self, *, now: datetime, rules: conf.Rules) -> None:
        """Set decay_score and forget_at from the base values and the tenant's numbers; save with them."""
        self.forget_at, self.decay_score = None, self.importance
        if self.protected or self.is_of_profile:
            return
        memory = DecayInput(self.importance, self.last_reinforced, self.mentions, self.category, self.created_at)
        self.decay_score = decay_score(memory, rules, now=now)
        self.forget_at = forget_at(memory, rules, below=rules.forget_below)
