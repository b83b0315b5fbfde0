"""Stores that a foreign key leads to: what was said, what was made of it, requests, and the person.

STORES has them in the order of an erasure: the rows that refer to a row go before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from memories.kinds import EMBEDDED, PLAIN
from memories.models import (
    EndUser,
    GroupEvidence,
    GroupFact,
    GroupMember,
    IdempotencyRecord,
    MemoryGroup,
    PrivacyCase,
    SkillEvidence,
    SkillText,
)
from memories.privacy.stores.store import STEP, Store, ids_behind, names_of
from memories.skills import founding

# Status of a kept answer whose person was erased: a request with its key is refused, and nothing of it is stored.
GONE = 410
# The operation that makes a group.
MADE = "addGroup"
CASE_TEXTS = ("channel", "extension_reason", "refusal_reason", "hold_reason", "told", "outcome")
# The number of a ticket says nothing about a person, unless it names them.
_REFERENCES = ("reference",)
_ERASES = Q(type="erasure", state__in=["running", "verifying"])


@dataclass(frozen=True)
class KeptAnswers(Store):
    """Kept answers: the body goes, and the key stays refused until its day is over."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = list(self.rows_of(person).order_by("pk").values_list("pk", flat=True)[:limit])
        links = IdempotencyRecord.end_users.through._default_manager.filter(idempotencyrecord__in=found)
        links._raw_delete(links.db)
        _empty_answers(found)
        return len(found)


def _empty_answers(records: Iterable[int]) -> None:
    IdempotencyRecord.objects.filter(pk__in=records).update(status=GONE, etag="", body=b"", fact=None)


@dataclass(frozen=True)
class Cases(Store):
    """Privacy cases: they stay as codes and times, and their texts go. The texts of the case that erases go in the
    transaction that completes it: they say who was told."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        names = names_of(person)
        return sum(empty_texts(case, names) for case in self._with_texts(person).order_by("pk")[:limit])

    def verify(self, person: EndUser) -> int:
        names = names_of(person)
        return sum(bool(_texts_to_empty(case, names)) for case in self._with_texts(person))

    def _with_texts(self, person: EndUser) -> QuerySet[PrivacyCase]:
        rows = PrivacyCase.objects.filter(end_user__in=ids_behind(person)).exclude(_ERASES)
        return rows.exclude(**dict.fromkeys((*CASE_TEXTS, *_REFERENCES), ""))


def empty_texts(case: PrivacyCase, names: set[str], *, texts: tuple[str, ...] = CASE_TEXTS) -> bool:
    """Empty these texts of a locked case, and references that hold one of the names; whether there were any."""
    filled = _texts_to_empty(case, names, texts)
    for field in filled:
        setattr(case, field, "")
    if filled:
        case.save(update_fields=filled)
    return bool(filled)


def _texts_to_empty(case: PrivacyCase, names: set[str], texts: tuple[str, ...] = CASE_TEXTS) -> list[str]:
    references = [one for one in _REFERENCES if any(name in getattr(case, one).casefold() for name in names)]
    return [field for field in (*texts, *references) if getattr(case, field)]


@dataclass(frozen=True)
class GroupStatements(Store):
    """What the person said in groups. An erasure takes what others said about them, too: it goes with the fact."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        people = ids_behind(person)
        for path in ("end_user", "fact__about"):
            found = list(self._keys(path, people).values_list("pk", flat=True)[:limit])
            if found:
                rows = GroupEvidence.objects.filter(pk__in=found)
                gone: int = rows._raw_delete(rows.db)
                return gone
        return 0


@dataclass(frozen=True)
class GroupFacts(Store):
    """Facts of groups that are about the person, whoever said them, and those that nobody else said.

    What somebody else said, too, stays and rests on them. Evidence goes before: what has none left then goes. The group
    is locked: whoever states the same at this moment is waited for, or finds the fact gone.
    """

    def rows_of(self, person: EndUser) -> QuerySet[Any]:
        people = ids_behind(person)
        theirs = GroupEvidence.objects.filter(end_user__in=people).order_by().values("fact")
        others = GroupEvidence.objects.filter(fact=OuterRef("pk")).exclude(end_user__in=people)
        alone = GroupFact.objects.filter(pk__in=theirs).exclude(Exists(others)).order_by().values("pk")
        about = GroupFact.objects.filter(about__in=people).order_by().values("pk")
        return GroupFact.objects.filter(pk__in=about.union(alone))

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        list(
            MemoryGroup.objects.select_for_update()
            .filter(pk__in=list(self._going(person).order_by().values_list("group", flat=True).distinct()))
            .order_by("pk")
            .values_list("pk")
        )
        found = list(self._going(person).order_by("pk").values_list("pk", flat=True)[:limit])
        if not found:
            return 0
        rows = GroupFact.objects.filter(pk__in=found)
        gone: int = rows._raw_delete(rows.db)
        return gone

    def verify(self, person: EndUser) -> int:
        return self._going(person).count()

    def _going(self, person: EndUser) -> QuerySet[Any]:
        """What is about them, and what rests on nothing any more."""
        evidence = GroupEvidence.objects.filter(fact=OuterRef("pk"))
        left = GroupFact.objects.filter(~Exists(evidence), tenant=person.tenant_id).order_by().values("pk")
        about = GroupFact.objects.filter(about__in=ids_behind(person)).order_by().values("pk")
        return GroupFact.objects.filter(pk__in=about.union(left))


GROUP_FACTS = GroupFacts("memories.GroupFact", "about")


@dataclass(frozen=True)
class Groups(Store):
    """Groups of which nobody else is a member, and that hold nothing of anybody else: their names may be personal.

    The name goes, and the group stays: the application knows it by its id. So does the kept answer to who made the
    group, which tells of no person otherwise. Before the person's memberships.
    """

    def rows_of(self, person: EndUser) -> QuerySet[Any]:
        people = ids_behind(person)
        own = GroupMember.objects.filter(end_user__in=people).order_by().values("group")
        others = GroupMember.objects.filter(group=OuterRef("pk")).exclude(end_user__in=people)
        held = GroupFact.objects.filter(group=OuterRef("pk")).exclude(pk__in=GROUP_FACTS.rows_of(person).values("pk"))
        return MemoryGroup.objects.filter(pk__in=own).exclude(name="").exclude(Exists(others)).exclude(Exists(held))

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        rows = self.rows_of(person).select_for_update(of=("self",)).order_by("pk")
        found = list(rows.values_list("pk", flat=True)[:limit])
        kept = IdempotencyRecord.objects.filter(endpoint=MADE, api_key__tenant=person.tenant_id)
        quoted = [str(pk).encode() for pk in found]
        _empty_answers([one.pk for one in kept if any(pk in bytes(one.body) for pk in quoted)] if found else [])
        return MemoryGroup.objects.filter(pk__in=found).update(name="")


@dataclass(frozen=True)
class SkillTexts(Store):
    """Texts of skills that rest on the person's trajectories alone, of all versions.

    What others' trajectories show, too, stays and rests on them. Evidence goes before: what has none left then goes,
    all of it at once, for a version is one text (skills/founding.py).
    """

    def rows_of(self, person: EndUser) -> QuerySet[Any]:
        people = ids_behind(person)
        theirs = SkillEvidence.objects.filter(trajectory__end_user__in=people).order_by().values("text")
        others = SkillEvidence.objects.filter(text=OuterRef("pk")).exclude(trajectory__end_user__in=people)
        return SkillText.objects.filter(pk__in=theirs, is_own=False).exclude(Exists(others))

    def erase(self, person: EndUser, limit: int = STEP) -> int:  # noqa: ARG002 (as the class says)
        # The moment of the versions that are left, which no rule reads.
        return founding.settle(founding.unfounded(person.tenant_id), now=timezone.now())

    def verify(self, person: EndUser) -> int:
        unfounded = SkillText.objects.unfounded().filter(tenant=person.tenant_id)
        return unfounded.count() + self.rows_of(person).count()


REQUESTS: tuple[Store, ...] = (
    KeptAnswers("memories.IdempotencyRecord", "end_users", also=("fact__end_user",)),
    Store("memories.PrivacyExportPiece", "export__case__end_user"),
    Store("memories.PrivacyExport", "case__end_user"),
    Cases("memories.PrivacyCase", "end_user"),
)
# The last one, erased in the transaction that leaves tombstones.
PEOPLE = Store("memories.EndUser", "pk", loosens=(("memories.PrivacyCase", "end_user"),))
_NAME_THEIR_RUN = ("memories.Fact", "memories.ReviewItem", "memories.ProfileSection", "memories.ProfileRevision")
# What else than a fact a change set can be about.
_OF_OTHERS = ("item__end_user", "episode__end_user", "end_user", "merged")
STORES: tuple[Store, ...] = (
    Store("memories.TurnVector", "end_user"),
    *(Store(kind.embedded.vectors._meta.label, "end_user") for kind in EMBEDDED if kind.embedded),
    Store("memories.StoreItemVector", "item__end_user"),
    Store("memories.StoreItem", "end_user"),
    *REQUESTS,
    # Ids alone; what has not been sent is not sent any more. The erasure itself is told by a row about nobody.
    Store("memories.WebhookDelivery", "end_user"),
    Store("memories.PersonLink", "end_user"),
    Store("memories.LoggedContext", "end_user"),
    Store("memories.PolicyFinding", "end_user"),
    Store("memories.ImportedRow", "end_user"),
    Store("memories.SentBlock", "end_user"),
    Store("memories.Change", "change_set__fact__end_user", also=tuple(f"change_set__{path}" for path in _OF_OTHERS)),
    Store("memories.ChangeSet", "fact__end_user", also=_OF_OTHERS),
    Store("memories.ReviewNote", "item__end_user"),
    Store(
        "memories.ReviewItem",
        "end_user",
        also=("fact__end_user", "known__end_user", "proposed_section__end_user", "episode__end_user"),
    ),
    Store("memories.GraphTriple", "end_user", also=("fact__end_user", "turn__end_user")),
    Store("memories.GraphEntity", "end_user", loosens=(("memories.GraphEntity", "merged_into"),)),
    Store("memories.FactEvidence", "fact__end_user", also=("session__end_user",)),
    Store("memories.FactRevision", "fact__end_user"),
    Store("memories.FactRelation", "fact__end_user", also=("target__end_user",)),
    Store("memories.FactRefusal", "end_user"),
    Store("memories.Fact", "end_user", loosens=(("memories.Fact", "superseded_by"), ("memories.FactRefusal", "fact"))),
    Store("memories.DreamedEpisode", "episode__end_user", also=("dream__end_user",)),
    Store("memories.DreamEdit", "dream__end_user"),
    Store("memories.Dream", "end_user"),
    Store("memories.FileVersion", "file__end_user"),
    Store("memories.MemoryFile", "end_user"),
    *(Store(kind.model._meta.label, "end_user") for kind in PLAIN),
    Store("memories.SkillTrial", "end_user"),
    Store("memories.SkillEvidence", "trajectory__end_user"),
    SkillTexts("memories.SkillText", "evidence__trajectory__end_user"),
    Store("memories.TrajectoryStep", "trajectory__end_user"),
    Store("memories.Trajectory", "end_user"),
    GroupStatements("memories.GroupEvidence", "end_user"),
    GROUP_FACTS,
    Groups("memories.MemoryGroup", "members__end_user"),
    Store("memories.GroupMember", "end_user"),
    Store("memories.ProfileSection", "end_user"),
    Store("memories.ProfileRevision", "end_user"),
    Store("memories.Episode", "end_user"),
    Store("memories.ExtractionRun", "end_user", loosens=tuple((label, "extraction") for label in _NAME_THEIR_RUN)),
    Store("memories.Passage", "end_user"),
    Store("memories.Attachment", "end_user"),
    Store("memories.Turn", "end_user"),
    Store("memories.SeenText", "end_user"),
    Store("memories.WorkingMemory", "session__end_user"),
    Store("memories.SessionQueue", "session__end_user"),
    Store("memories.Session", "end_user"),
    PEOPLE,
)
