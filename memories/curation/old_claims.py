"""Correcting or forgetting a fact hunts the old claim: the other memories of the person that still say it, and how
each is mended; and the turns that say it, which can be redacted.

Every mend is the verb of its kind, so it is one change set with an undo of its own. Of a file the version before is
restored on its page, and of a diary the entry.
"""

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.curation import episodes, plain
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.files import FileWriter, NewContent, delete_files, holding_file, write_file
from memories.curation.graph.deciding import forget_triple
from memories.curation.profile.sections import write_profile_section
from memories.curation.review.suggestions import reject_fact
from memories.curation.running_summaries import rewrite_summary, version_of_summary
from memories.curation.turns import redact_turn
from memories.exceptions import InvalidInput, NotFound
from memories.kinds import PLAIN, Kind
from memories.models import (
    ChangeSet,
    EndUser,
    Episode,
    EpisodeStatus,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRevision,
    GraphTriple,
    MemoryFile,
    ProfileSection,
    Status,
    WorkingMemory,
)
from memories.models.memories.episodes import LISTS, TEXTS
from memories.models.memories.files import Encoding
from memories.models.memories.graph import TripleStatus
from memories.retrieval.outdated import turns_still_saying
from memories.text.claims import OldClaim

# Kept with the revision; the pages translate it.
REASON = "It said what was corrected."
# Of each kind so many are looked at, the newest first: more than any person of the benchmarks has.
MOST_READ = 10_000
# Longer files are notes of many things: they are searched on their own pages.
MOST_FILES, LONGEST_FILE = 200, 20_000


class OccurrenceKind(StrEnum):
    """What says the claim. All plain kinds go by their names (memories/kinds/), as the diary does."""

    SECTION = "section"
    EPISODE = "episode"
    PENDING = "pending"
    FACT = "fact"
    SUMMARY = "summary"
    FILE = "file"
    TRIPLE = "triple"
    DIARY = "diary"


PLAIN_KINDS: Mapping[str, Kind] = {kind.name: kind for kind in PLAIN}
OCCURRENCE_KINDS: tuple[str, ...] = tuple(dict.fromkeys([*OccurrenceKind, *PLAIN_KINDS]))


class Mend(StrEnum):
    REPLACE = "replace"
    # A suggestion is rejected; lines of an episode are cut out; others go to the trash.
    DROP = "drop"


DROPPABLE = frozenset(OCCURRENCE_KINDS) - {OccurrenceKind.SECTION, OccurrenceKind.SUMMARY}
# A triple's names are those of entities, and nobody rewrites what an agent noted for itself.
REPLACEABLE = frozenset(OCCURRENCE_KINDS) - {OccurrenceKind.TRIPLE} - PLAIN_KINDS.keys()


@dataclass(frozen=True)
class Occurrence:
    """A text of a memory in which the old claim still occurs, with the version that was seen and the text that would
    mend it. `field`: the list of an episode whose lines they are; empty: what the memory says."""

    kind: str
    id: uuid.UUID
    version: int
    text: str
    proposed: str
    row: Any
    field: str = ""

    @property
    def has_words(self) -> bool:
        """Whether the new words could be put in the place of the old ones."""
        return self.proposed != self.text

    @property
    def is_droppable(self) -> bool:
        return self.kind in DROPPABLE

    @property
    def is_replaceable(self) -> bool:
        return self.kind in REPLACEABLE


def correction_of(fact: Fact) -> ChangeSet | None:
    """The newest correction of the fact that nobody undid."""
    return fact.change_sets.filter(verb="correct", undone_at=None).order_by("-id").first()


def claim_of(fact: Fact) -> OldClaim | None:
    """What the fact said before it was forgotten or corrected; None when neither happened, its words did not change, or
    they are not kept any more."""
    if fact.status == Status.TRASHED:
        is_forgotten = FactRefusal.objects.filter(tenant=fact.tenant_id, fact=fact.pk).exists()
        return OldClaim(fact.content, "") if is_forgotten else None
    correction = correction_of(fact)
    revision = correction and FactRevision.objects.filter(change_set=correction.pk, fact=fact.pk).first()
    if not revision:
        return None
    old, new = (str(state.get("content", "")) for state in (revision.before, revision.after))
    return OldClaim(old, new) if old and new and old != new else None


def occurrences(fact: Fact, claim: OldClaim, kinds: Collection[str] = tuple(OccurrenceKind)) -> list[Occurrence]:
    """The other memories of these kinds of the fact's person in which it still occurs, those of the profile first; each
    field of an episode by itself."""
    person = fact.end_user
    found = (
        *_sections(person), *_facts(fact), *_episodes(person), *_summaries(person),
        *_files(person), *_triples(person), *_of_plain_kinds(person),
    )  # fmt: skip
    occurring = (
        (one, "\n".join(line for line in one.lines if claim.is_in(line))) for one in found if one.kind in kinds
    )
    return [
        Occurrence(
            one.kind, one.row.pk, one.version, text, _reworded(claim, text, one.kind), row=one.row, field=one.field
        )
        for one, text in occurring
        if text
    ]


def _reworded(claim: OldClaim, text: str, kind: str) -> str:
    """In the new words, line by line: whole or not at all."""
    if kind not in REPLACEABLE:
        return text
    mended = [claim.reworded(line) for line in text.split("\n")] if kind == OccurrenceKind.EPISODE else []
    if not mended:
        return claim.reworded(text)
    return text if any(map(claim.is_in, mended)) else "\n".join(mended)


def redact_turns(fact: Fact, turns: Collection[uuid.UUID], *, actor: Actor, now: datetime) -> int:
    """Cut out of these turns of the person what they say of the old claim; returns how many said it.

    The fact goes with the last turn that it rests on, and then nobody knows its claim any more: such turns come last.
    Errors: those of redact_turn().
    """
    saying = [one for one in turns_still_saying(fact.end_user, fact.pk) if one.turn.pk in set(turns)]
    cited = set(FactEvidence.objects.filter(fact=fact).values_list("turn", flat=True))
    for one in sorted(saying, key=lambda one: one.turn.pk in cited):
        redact_turn(turn_id=one.turn.pk, tenant=None, passages=one.sentences, actor=actor, now=now)
    return len(saying)


def mend(
    *,
    end_user: EndUser,
    claim: OldClaim,
    kind: str,
    row_id: uuid.UUID,
    how: Mend,
    text: str,
    expected_version: int,
    actor: Actor,
    now: datetime,
    field: str = "",
) -> None:
    """Give one memory of the person the text, or reject or forget it; of a `field` only the lines that say it.

    Errors: those of its verb; NotFound for another person's; InvalidInput without a text.
    """
    text = text.strip()
    if how == Mend.REPLACE and not text:
        raise InvalidInput.at("text", _("Enter the corrected text."))
    row = _row_of(kind, row_id, end_user, how=how, field=field)
    given: dict[str, Any] = {"expected_version": expected_version, "actor": actor, "now": now}
    if field:
        lines = _lines_without(getattr(row, field), claim, text.splitlines() if how == Mend.REPLACE else [])
        episodes.edit_episode(episode_id=row_id, tenant=None, changes={field: lines}, **given)
    elif kind == OccurrenceKind.FILE:
        _mend_file(row, text if how == Mend.REPLACE else None, given)
    elif how == Mend.DROP:
        _drop(kind, row_id, given)
    else:
        _replace(kind, row, text, given)


def _row_of(kind: str, row_id: uuid.UUID, person: EndUser, *, how: Mend, field: str) -> Any:
    """The person's memory, if it can be mended so. Errors: NotFound."""
    if kind == OccurrenceKind.SUMMARY:
        rows: QuerySet[Any] = WorkingMemory.objects.filter(session__end_user=person)
    else:
        rows = _MODELS[kind]._default_manager.filter(end_user=person)
    row = rows.filter(pk=row_id).first()
    is_possible = kind in (DROPPABLE if how == Mend.DROP else REPLACEABLE)
    if row is None or not is_possible or (field and (kind != OccurrenceKind.EPISODE or field not in LISTS)):
        raise NotFound
    return row


def _replace(kind: str, row: Any, text: str, given: dict[str, Any]) -> None:
    if kind == OccurrenceKind.EPISODE:
        episodes.edit_episode(episode_id=row.pk, tenant=None, changes={"summary": text}, **given)
    elif kind == OccurrenceKind.SECTION:
        place = {"section": row.section, "agent_id": row.agent_id}
        write_profile_section(end_user=row.end_user, summary=text, reason=REASON, **place, **given)
    elif kind == OccurrenceKind.SUMMARY:
        rewrite_summary(session_id=row.pk, summary=text, **given)
    else:
        correct_fact(fact_id=row.pk, tenant=None, content=text, reason=REASON, **given)


def _drop(kind: str, row_id: uuid.UUID, given: dict[str, Any]) -> None:
    if kind == OccurrenceKind.EPISODE:
        episodes.forget_episode(episode_id=row_id, tenant=None, **given)
    elif kind == OccurrenceKind.PENDING:
        reject_fact(fact_id=row_id, reason=REASON, **given)
    elif kind == OccurrenceKind.TRIPLE:
        forget_triple(triple_id=row_id, reason=REASON, **given)
    elif kind in PLAIN_KINDS:
        # It has one version.
        plain.delete(PLAIN_KINDS[kind], row_id=row_id, actor=given["actor"], now=given["now"])
    else:
        forget_fact(fact_id=row_id, tenant=None, reason=REASON, **given)


def _mend_file(shown: MemoryFile, text: str | None, given: dict[str, Any]) -> None:
    """Give the file the text, with the ends of lines that it has; without one delete it."""
    writer = FileWriter(given["actor"], given["now"], reason=REASON)
    with holding_file(shown, expected_version=given["expected_version"]) as file:
        place: dict[str, Any] = {"end_user": file.end_user, "agent_id": file.agent_id, "path": file.path}
        if file.trashed_at:
            raise NotFound
        if text is None:
            delete_files(**place, writer=writer)
            return
        # A browser sends each end of a line as two characters, and strip() took what surrounds the text.
        first, _text, rest = file.content.partition(file.content.strip())
        text = text.replace("\r\n", "\n")
        if "\r\n" in file.content:
            text = text.replace("\n", "\r\n")
        write_file(**place, content=NewContent.of(f"{first}{text}{rest}".encode(), ""), writer=writer)


_MODELS: dict[str, type[Model]] = {
    OccurrenceKind.SECTION: ProfileSection,
    OccurrenceKind.EPISODE: Episode,
    OccurrenceKind.PENDING: Fact,
    OccurrenceKind.FACT: Fact,
    OccurrenceKind.FILE: MemoryFile,
    OccurrenceKind.TRIPLE: GraphTriple,
    **{name: kind.model for name, kind in PLAIN_KINDS.items()},
}


class _Text(NamedTuple):
    """A text of a memory: those of its lines that say the claim are shown. Most have one, which is all of it."""

    kind: str
    row: Any
    version: int
    lines: Sequence[str]
    field: str = ""


def _sections(person: EndUser) -> Iterator[_Text]:
    for row in ProfileSection.objects.written().filter(end_user=person).order_by("agent_id", "section"):
        yield _Text(OccurrenceKind.SECTION, row, row.version, [row.summary])


def _facts(fact: Fact) -> Iterator[_Text]:
    rows = Fact.objects.of(fact.tenant, fact.end_user).filter(status__in=Status.LIVE).exclude(pk=fact.pk)
    columns = ("content", "category", "agent_id", "status", "version", "created_at")
    for row in rows.only(*columns).order_by("-created_at", "-id")[:MOST_READ]:
        kind = OccurrenceKind.PENDING if row.status == Status.PENDING else OccurrenceKind.FACT
        yield _Text(kind, row, row.version, [row.content])


def _episodes(person: EndUser) -> Iterator[_Text]:
    rows = Episode.objects.filter(end_user=person, status__in=EpisodeStatus.LIVE).order_by("-created_at", "-id")
    for row in rows.only("version", "status", "created_at", *TEXTS)[:MOST_READ]:
        yield _Text(OccurrenceKind.EPISODE, row, row.version, [row.summary])
        for field in LISTS:
            yield _Text(OccurrenceKind.EPISODE, row, row.version, getattr(row, field), field)


def _summaries(person: EndUser) -> Iterator[_Text]:
    rows = WorkingMemory.objects.filter(session__end_user=person).exclude(summary="").select_related("session")
    for row in rows.order_by("-updated_at", "pk")[:MOST_READ]:
        yield _Text(OccurrenceKind.SUMMARY, row, version_of_summary(row.summary), [row.summary])


def _files(person: EndUser) -> Iterator[_Text]:
    rows = MemoryFile.objects.of(person.tenant, person).filter(trashed_at=None, expires_at=None)
    rows = rows.filter(encoding=Encoding.UTF_8, size__lte=LONGEST_FILE)
    for row in rows.order_by("-updated_at", "-id")[:MOST_FILES]:
        yield _Text(OccurrenceKind.FILE, row, row.version, [row.content])


def _triples(person: EndUser) -> Iterator[_Text]:
    """Those that were stated and still hold; one of a fact follows its fact."""
    rows = GraphTriple.objects.filter(tenant=person.tenant, end_user=person, fact=None, valid_to=None)
    rows = rows.exclude(status=TripleStatus.TRASHED).select_related("subject", "object")
    for row in rows.order_by("-created_at", "-id")[:MOST_READ]:
        text = f"{row.subject.name} {row.predicate.replace('_', ' ')} {row.object.name}"
        yield _Text(OccurrenceKind.TRIPLE, row, row.version, [text])


def _of_plain_kinds(person: EndUser) -> Iterator[_Text]:
    for name, kind in PLAIN_KINDS.items():
        for row in kind.rows.of(person.tenant, person).present().order_by("-created_at", "-id")[:MOST_READ]:
            # With its topic.
            yield _Text(name, row, 1, [row.text])


def _lines_without(lines: Sequence[str], claim: OldClaim, mended: Sequence[str]) -> list[str]:
    """The lines with `mended` in the place of those that say the claim."""
    first = next((place for place, line in enumerate(lines) if claim.is_in(line)), len(lines))
    kept = [line for line in lines if not claim.is_in(line)]
    return [*kept[:first], *(line.strip() for line in mended if line.strip()), *kept[first:]]
