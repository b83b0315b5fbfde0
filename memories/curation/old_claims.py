"""A correction hunts the old claim: the other memories of the person that still say it, and how each is mended.

Every mend is the verb of its kind, so it is one change set with an undo of its own.
"""

import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation import episodes
from memories.curation.change_sets import LIVE
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.profile.sections import write_profile_section
from memories.curation.review.suggestions import reject_fact
from memories.curation.running_summaries import rewrite_summary, version_of_summary
from memories.exceptions import InvalidInput, NotFound
from memories.models import ChangeSet, EndUser, Episode, Fact, FactRevision, ProfileSection, Status, WorkingMemory
from memories.text.claims import OldClaim

# Kept with the revision; the pages translate it.
REASON = "It said what was corrected."
# Of each kind so many are looked at, the newest first: more than any person of the benchmarks has.
MOST_READ = 10_000


class StillSaidIn(StrEnum):
    SECTION = "section"
    EPISODE = "episode"
    PENDING = "pending"
    FACT = "fact"
    SUMMARY = "summary"


class Mend(StrEnum):
    REPLACE = "replace"
    # A suggestion is rejected; a fact and an episode are forgotten.
    DROP = "drop"


DROPPABLE = (StillSaidIn.PENDING, StillSaidIn.FACT, StillSaidIn.EPISODE)


@dataclass(frozen=True)
class StillSaid:
    """A memory that still says the old claim, with the version that was seen and the text that would mend it."""

    kind: StillSaidIn
    id: uuid.UUID
    version: int
    text: str
    proposed: str
    row: Any

    @property
    def has_words(self) -> bool:
        """Whether the new words could be put in the place of the old ones."""
        return self.proposed != self.text

    @property
    def is_droppable(self) -> bool:
        return self.kind in DROPPABLE


def correction_of(fact: Fact) -> ChangeSet | None:
    """The newest correction of the fact that nobody undid."""
    return fact.change_sets.filter(verb="correct", undone_at=None).order_by("-id").first()


def claim_of(correction: ChangeSet) -> OldClaim | None:
    """What the fact said before the correction; None when its words did not change, or are not kept any more."""
    revision = FactRevision.objects.filter(change_set=correction.pk, fact=correction.fact_id).first()
    if revision is None:
        return None
    old, new = (str(state.get("content", "")) for state in (revision.before, revision.after))
    return OldClaim(old, new) if old and new and old != new else None


def still_said(fact: Fact, claim: OldClaim, kinds: Collection[StillSaidIn] = tuple(StillSaidIn)) -> list[StillSaid]:
    """The other memories of these kinds of the fact's person that still say it, those of the profile first."""
    found = (*_sections(fact.end_user), *_facts(fact), *_episodes(fact.end_user), *_summaries(fact.end_user))
    return [
        StillSaid(kind, row.pk, version, text, claim.reworded(text), row)
        for kind, row, version, text, all_of_it in found
        if kind in kinds and claim.is_in(all_of_it)
    ]


def mend(
    *,
    end_user: EndUser,
    claim: OldClaim,
    kind: StillSaidIn,
    row_id: uuid.UUID,
    how: Mend,
    text: str,
    expected_version: int,
    actor: Actor,
    now: datetime,
) -> None:
    """Give one memory of the person the text, or reject or forget it.

    Errors: those of its verb; NotFound for another person's; InvalidInput without a text.
    """
    text = text.strip()
    if how == Mend.REPLACE and not text:
        raise InvalidInput.at("text", _("Enter the corrected text."))
    row = _rows_of(kind, end_user).filter(pk=row_id).first()
    if row is None or (how == Mend.DROP and kind not in DROPPABLE):
        raise NotFound
    seen: dict[str, Any] = {"expected_version": expected_version, "actor": actor, "now": now}
    if how == Mend.DROP:
        _drop(kind, row_id, seen)
    elif kind == StillSaidIn.EPISODE:
        words = {"summary": text, **_lists_of(row, claim)}
        episodes.edit_episode(episode_id=row_id, tenant=None, changes=words, **seen)
    elif kind == StillSaidIn.SECTION:
        place = {"section": row.section, "agent_id": row.agent_id}
        write_profile_section(end_user=end_user, summary=text, reason=REASON, **place, **seen)
    elif kind == StillSaidIn.SUMMARY:
        rewrite_summary(session_id=row_id, summary=text, **seen)
    else:
        correct_fact(fact_id=row_id, tenant=None, content=text, reason=REASON, **seen)


def _drop(kind: StillSaidIn, row_id: uuid.UUID, seen: dict[str, Any]) -> None:
    if kind == StillSaidIn.EPISODE:
        episodes.forget_episode(episode_id=row_id, tenant=None, **seen)
    elif kind == StillSaidIn.PENDING:
        reject_fact(fact_id=row_id, reason=REASON, **seen)
    else:
        forget_fact(fact_id=row_id, tenant=None, reason=REASON, **seen)


def _rows_of(kind: StillSaidIn, person: EndUser) -> QuerySet[Any]:
    if kind == StillSaidIn.SECTION:
        return ProfileSection.objects.filter(end_user=person)
    if kind == StillSaidIn.EPISODE:
        return Episode.objects.filter(end_user=person)
    if kind == StillSaidIn.SUMMARY:
        return WorkingMemory.objects.filter(session__end_user=person)
    return Fact.objects.filter(end_user=person)


# StillSaidIn, row, version, the text that is shown, and all its texts together.
_Said = tuple[StillSaidIn, Any, int, str, str]


def _sections(person: EndUser) -> Iterator[_Said]:
    for row in ProfileSection.objects.written().filter(end_user=person).order_by("agent_id", "section"):
        yield StillSaidIn.SECTION, row, row.version, row.summary, row.summary


def _facts(fact: Fact) -> Iterator[_Said]:
    rows = Fact.objects.of(fact.tenant, fact.end_user).filter(status__in=LIVE).exclude(pk=fact.pk)
    columns = ("content", "category", "agent_id", "status", "version", "created_at")
    for row in rows.only(*columns).order_by("-created_at", "-id")[:MOST_READ]:
        kind = StillSaidIn.PENDING if row.status == Status.PENDING else StillSaidIn.FACT
        yield kind, row, row.version, row.content, row.content


def _episodes(person: EndUser) -> Iterator[_Said]:
    rows = Episode.objects.filter(end_user=person, status__in=episodes.LIVE).order_by("-created_at", "-id")
    for row in rows.only("version", "status", "created_at", *episodes.TEXTS)[:MOST_READ]:
        texts = (row.summary, *row.key_topics, *row.actions_taken, *row.outcomes)
        yield StillSaidIn.EPISODE, row, row.version, row.summary, "\n".join(texts)


def _summaries(person: EndUser) -> Iterator[_Said]:
    rows = WorkingMemory.objects.filter(session__end_user=person).exclude(summary="").select_related("session")
    for row in rows.order_by("-updated_at", "pk")[:MOST_READ]:
        yield StillSaidIn.SUMMARY, row, version_of_summary(row.summary), row.summary, row.summary


def _lists_of(episode: Episode, claim: OldClaim) -> dict[str, Any]:
    """Topics, actions and outcomes in the new words."""
    lists = {name: getattr(episode, name) for name in episodes.TEXTS if name != "summary"}
    return {name: [claim.reworded(line) for line in lines] for name, lines in lists.items()}
