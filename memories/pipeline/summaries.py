"""The profile: sections that a model's answer rewrites, unless an operator wrote them.

Each rewriting is a revision; its run, with the range of turns that it read, is the evidence.
"""

from collections import Counter
from collections.abc import Mapping
from copy import copy
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from memories import audit
from memories.audit import Actor
from memories.llm.prompts import memory_update
from memories.models import ActorKind, ExtractionRun, ProfileRevision, ProfileSection, ReviewItem, Section
from memories.models.folding import fold
from memories.pipeline import review_items, suspicion, uploads
from memories.pipeline.cleaning import clean_lines
from memories.pipeline.redaction import redact_text
from memories.pipeline.review_items import Question

LONGEST_SUMMARY = 4_000
# Of a section, the newest proposals that a further one is compared with.
_COMPARED = 50


def rewrite(*, run: ExtractionRun, answer: Mapping[str, Any], shown: Mapping[str, int], now: datetime) -> Counter[str]:
    """Write the sections that `answer` wants changed; returns counts of what was done and refused.

    `shown` are the versions that the model was shown, missing ones 0: what somebody wrote since is not overwritten.
    The caller's transaction holds the person's row, which also keeps two first writers of a section apart.
    """
    counts: Counter[str] = Counter()
    wanted = {section: _summary(answer.get(section)) for section in Section.values}
    known = {row.section: row for row in ProfileSection.objects.select_for_update().filter(end_user=run.end_user)}
    for section, summary in wanted.items():
        row = known.get(section) or _blank(run, section)
        if summary and fold(summary) != fold(row.summary):
            is_stale = row.version != shown.get(section, 0)
            counts[_take(row, summary, is_stale=is_stale, run=run, now=now)] += 1
    return counts


def _take(row: ProfileSection, summary: str, *, is_stale: bool, run: ExtractionRun, now: datetime) -> str:
    """Write, propose or refuse the text; returns what was done, as the run counts it."""
    if row.binding:
        return "operator_section"
    if is_stale:
        return "profile_changed_meanwhile"
    if len(summary) > LONGEST_SUMMARY:
        return "profile_too_long"
    flags = suspicion.flags(summary, "", "")
    if not flags:
        _write(row, summary, run=run, now=now)
        return "profile_sections"
    if _is_proposed(row, summary):
        return "profile_proposed_before"
    _propose(row, summary, flags, run=run, now=now)
    return "profile_held"


def _summary(item: Any) -> str:
    """The new text of a section, cleaned; empty when it is to stay as it is."""
    try:
        section = memory_update.ProfileSection.model_validate(item)
    except ValidationError:
        return ""
    if not section.should_update:
        return ""
    # Cut before the costly scrubbing, and still recognised as too long after it.
    return redact_text(uploads.scrub(clean_lines(section.summary[: 2 * LONGEST_SUMMARY])))[0]


def _blank(run: ExtractionRun, section: str) -> ProfileSection:
    return ProfileSection(tenant=run.tenant, end_user=run.end_user, section=section, version=0)


def _write(row: ProfileSection, summary: str, *, run: ExtractionRun, now: datetime) -> None:
    before = copy(row)
    row.summary, row.actor_kind = summary, ActorKind.RUN
    row.extraction, row.prompt_version = run, run.prompt_version
    row.version += 1
    row.updated_at = now
    row.save()
    audit.revise_section(row=row, verb="extract", actor=Actor.run(run), before=before, now=now)


def _is_proposed(row: ProfileSection, summary: str) -> bool:
    """Whether the same text waits already, or was turned down."""
    proposed = ProfileRevision.objects.filter(end_user=row.end_user, section=row.section, version=None)
    return fold(summary) in map(fold, proposed.values_list("after", flat=True)[:_COMPARED])


def _propose(row: ProfileSection, summary: str, flags: tuple[str, ...], *, run: ExtractionRun, now: datetime) -> None:
    """Keep the text for a person to decide; what the section says stays."""
    proposal = ProfileRevision.objects.create(
        end_user=row.end_user,
        section=row.section,
        version=None,
        verb="extract",
        actor_kind=ActorKind.RUN,
        actor_id=str(run.pk),
        before=row.summary,
        after=summary,
        extraction=run,
        created_at=now,
    )
    worst = suspicion.INSTRUCTIONS if suspicion.INSTRUCTIONS in flags else flags[0]
    review_items.ask(Question(ReviewItem.Reason(worst), proposed_section=proposal), run=run, now=now)
