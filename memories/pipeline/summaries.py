"""The profile: sections that a model's answer rewrites, unless an operator wrote them."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from memories.llm.prompts import memory_update
from memories.models import ActorKind, ExtractionRun, ProfileSection, Section
from memories.pipeline import uploads
from memories.pipeline.cleaning import clean_lines
from memories.pipeline.redaction import redact_text

LONGEST_SUMMARY = 4_000


def rewrite(*, run: ExtractionRun, answer: Mapping[str, Any], now: datetime) -> Counter[str]:
    """Write the sections that `answer` wants changed; returns counts of what was done and refused.

    The caller's transaction holds the person's row, which also keeps two first writers of a section apart.
    """
    counts: Counter[str] = Counter()
    wanted = {section: _summary(answer.get(section)) for section in Section.values}
    known = {row.section: row for row in ProfileSection.objects.select_for_update().filter(end_user=run.end_user)}
    for section, summary in wanted.items():
        row = known.get(section) or _blank(run, section)
        if not summary or summary == row.summary:
            continue
        if row.binding or len(summary) > LONGEST_SUMMARY:
            counts["operator_section" if row.binding else "profile_too_long"] += 1
            continue
        _write(row, summary, run=run, now=now)
        counts["profile_sections"] += 1
    return counts


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
    row.summary, row.actor_kind = summary, ActorKind.RUN
    row.extraction, row.prompt_version = run, run.prompt_version
    row.version += 1
    row.updated_at = now
    row.save()
