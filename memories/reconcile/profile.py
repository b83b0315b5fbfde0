"""The profile: sections that a model's answer rewrites, unless an operator wrote them.

Each rewrite is a revision; the turns of its run that support it are the evidence. Each sentence is tested as support.py
and slips.py do. A sentence that nobody with enough trust stated is left out, and the whole text waits for a person. So
it does if an old sentence would go of which the person says nothing; the old sentence stays. A text without a word of
the person's is none. One that rests on older turns than the stored one, and arrives later, does not replace it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max
from pydantic import ValidationError

from memories import audit
from memories.audit import Actor
from memories.facts import review_items
from memories.facts.review_items import REASON_OF_TRUST, ReviewQuestion
from memories.llm.prompts import memory_update
from memories.models import (
    SENT_AT,
    ActorKind,
    ExtractionRun,
    ProfileRevision,
    ProfileSection,
    ReviewItem,
    Section,
    Trust,
    Turn,
)
from memories.models.folding import fold
from memories.reconcile.gate import BatchEvidence
from memories.text import sentences, uploads
from memories.text.cleaning import clean_lines
from memories.text.injection import detection
from memories.text.reading import endings, slips
from memories.text.secrets.redaction import redact_text
from memories.text.support import has_word_of
from memories.text.transcript import TranscriptTurn
from memories.trust import is_believed, rank

LONGEST_SUMMARY = 4_000
# So many of a section's newest proposals are compared with a new one.
_COMPARED = 50


@dataclass(frozen=True)
class RewriteBasis:
    """What a rewrite rests on: its run, the evidence of the run's turns, whether the tenant trusts its assistant."""

    run: ExtractionRun
    evidence: BatchEvidence
    trusts_assistant: bool
    now: datetime

    def supporting(self, text: str) -> list[TranscriptTurn]:
        """The person's turns that support it; of a text in other words than theirs, all of them."""
        users = [turn for turn in self.evidence.fed.values() if turn.is_certain]
        return [turn for turn in users if has_word_of(turn.text, text)] or users

    def last_stated(self, text: str) -> datetime:
        """When the last of what it rests on was stated."""
        resting = self.supporting(text) or self.evidence.fed.values()
        return max((min(turn.at, self.run.started_at) for turn in resting), default=self.run.started_at)

    def believes(self, trust: Trust) -> bool:
        return is_believed(trust, trusts_assistant=self.trusts_assistant)


@dataclass(frozen=True)
class _SectionText:
    """A new text of a section: what may be written, its trust, and why the whole waits, with the lowest trust of what
    is left out."""

    written: str
    trust: Trust
    reason: ReviewItem.Reason | None
    held: Trust = Trust.USER


def rewrite(*, basis: RewriteBasis, answer: Mapping[str, Any], shown: Mapping[str, int]) -> Counter[str]:
    """Write the sections that `answer` changes, of the run's agent or the person's own; returns counts of what was done
    and refused.

    `shown` are the versions that the model was shown, missing ones 0: a later text is not overwritten. The caller's
    transaction holds the person's row, so no two writers create the same section.
    """
    counts: Counter[str] = Counter()
    wanted = {section: _summary(answer.get(section)) for section in Section.values}
    whose = {"tenant": basis.run.tenant, "end_user": basis.run.end_user, "agent_id": basis.run.owner}
    locked = ProfileSection.objects.select_for_update(of=("self",)).select_related("extraction")
    rows = {row.section: row for row in locked.filter(**whose)}
    for section, summary in wanted.items():
        row = rows.get(section) or ProfileSection(**whose, section=section, version=0)
        if summary and fold(summary) != fold(row.summary):
            is_stale = row.version != shown.get(section, 0)
            counts.update(_take(row, summary, is_stale=is_stale, basis=basis))
    return counts


def prepare(evidence: BatchEvidence, answer: Mapping[str, Any]) -> None:
    """Judge the sentences before the transaction: comparing meanings takes time, and the results are cached."""
    for section in Section.values:
        summary = _summary(answer.get(section))
        for start, end in sentences.spans(summary[:LONGEST_SUMMARY]):
            evidence.source_texts.trust_of(summary[start:end])


def _take(row: ProfileSection, summary: str, *, is_stale: bool, basis: RewriteBasis) -> list[str]:
    """Write, propose or refuse the text; returns what was done, as the run counts it."""
    if refused := _why_refused(row, summary, is_stale=is_stale, basis=basis):
        return [refused]
    parts = (summary[start:end] for start, end in sentences.spans(summary))
    # The person's trust in every sentence, and nothing in their turns speaks to a model.
    source_texts = basis.evidence.source_texts
    is_own = not basis.evidence.has_orders and all(source_texts.trust_of(part) == Trust.USER for part in parts)
    if flags := detection.flags(summary, "", "", is_own=is_own):
        worst = detection.INSTRUCTIONS if detection.INSTRUCTIONS in flags else flags[0]
        return [_propose(row, summary, ReviewItem.Reason(worst), Trust.USER, basis)]
    if _says_nothing(summary, basis):
        return ["profile_says_nothing"]
    text = _supported(row, summary, basis)
    # Before the section changes: the proposal names the text that it would replace.
    held = [_propose(row, summary, text.reason, text.held, basis)] if text.reason else []
    if not text.written or fold(text.written) == fold(row.summary):
        return held
    _write(row, text, basis)
    return ["profile_sections", *held]


def _why_refused(row: ProfileSection, summary: str, *, is_stale: bool, basis: RewriteBasis) -> str:
    """Why the text is not even looked at, as the run counts it; empty if it is."""
    if row.binding:
        return "operator_section"
    if is_stale:
        return "profile_changed_meanwhile"
    if (stored := _last_stated(row)) and basis.last_stated(summary) < stored:
        return "profile_older"
    return "profile_too_long" if len(summary) > LONGEST_SUMMARY else ""


def _says_nothing(summary: str, basis: RewriteBasis) -> bool:
    """Whether nobody has a word of it: "None", "No change.", 暂无 is what models write who have nothing to write."""
    source_texts = basis.evidence.source_texts
    if source_texts.has_own_word(summary):
        return False
    return all(source_texts.trust_of(sentence) == Trust.USER for sentence in _sentences(summary))


def _last_stated(row: ProfileSection) -> datetime | None:
    """When the last of what the stored text rests on was said; None if anything may replace it.

    What staff put back or released has no moment of its own.
    """
    if not row.summary or row.actor_kind not in (ActorKind.RUN, ActorKind.KEY):
        return None
    if row.extraction is None:
        return row.updated_at
    turns = Turn.objects.filter(session=row.extraction.session_id, number__in=row.evidence)
    last = turns.aggregate(last=Max(SENT_AT))["last"]
    # Retention may have deleted them. All of them were said before the run began, whatever the clocks say.
    return min(last, row.extraction.started_at) if last else row.extraction.started_at


def _supported(row: ProfileSection, summary: str, basis: RewriteBasis) -> _SectionText:
    """The sentences that somebody who is believed stated, as they said it. Old ones stay if only a held sentence would
    replace them, and if the person says nothing about them."""
    new, old = _sentences(summary), _sentences(row.summary)
    trusts = {sentence: basis.evidence.source_texts.trust_of(sentence) for sentence in new}
    # What stands there already is not asked again.
    unsaid = [sentence for sentence in new if fold(sentence) not in map(fold, old)]
    slipped = {sentence for sentence in unsaid if slips.slip(sentence, basis.evidence.heard, by_words=True)}
    taken = [sentence for sentence in new if basis.believes(trusts[sentence]) and sentence not in slipped]
    held = [sentence for sentence in new if sentence not in taken]
    lost = [one for one in old if _is_lost(one, summary, taken, basis.evidence)]
    reason = _reason_to_wait([trusts[one] for one in held if not basis.believes(trusts[one])], slipped, lost)
    if reason is None:
        return _SectionText(summary, _lowest(trusts.values()), None)
    replaced = [one for one in old if has_word_of(" ".join(held), one) and not has_word_of(" ".join(taken), one)]
    stays = [one for one in old if one in lost or one in replaced]
    trust = _lowest([*(trusts[sentence] for sentence in taken), *([Trust(row.trust)] if stays else [])])
    text = " ".join([*taken, *(one for one in stays if one not in taken)]) if taken else ""
    # The old sentences may make it too long.
    written = text if len(text) <= LONGEST_SUMMARY else ""
    return _SectionText(written, trust, reason, _lowest(trusts[sentence] for sentence in held))


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences.spans(text)]


def _is_lost(sentence: str, summary: str, taken: Iterable[str], evidence: BatchEvidence) -> bool:
    """Whether an old sentence would go although the person says nothing about it, nor anything in its place."""
    if endings.is_kept(sentence, summary) or endings.is_spoken_of(sentence, evidence.heard):
        return False
    return not any(endings.is_in_place_of(sentence, one) for one in taken)


def _reason_to_wait(doubted: list[Trust], slipped: set[str], lost: list[str]) -> ReviewItem.Reason | None:
    if doubted:
        return REASON_OF_TRUST[_lowest(doubted)]
    if slipped:
        return ReviewItem.Reason.NOT_AS_SAID
    return ReviewItem.Reason.REMOVAL if lost else None


def _lowest(trusts: Iterable[Trust]) -> Trust:
    return min(trusts, key=rank, default=Trust.USER)


def _summary(item: Any) -> str:
    """The new text of a section, cleaned; empty when it is to stay as it is."""
    try:
        section = memory_update.SectionRewrite.model_validate(item)
    except ValidationError:
        return ""
    if not section.should_update:
        return ""
    # Cut before the costly scrubbing, but not so short that a text that is too long would pass.
    return redact_text(uploads.scrub(clean_lines(section.summary[: 2 * LONGEST_SUMMARY])))[0]


def _write(row: ProfileSection, text: _SectionText, basis: RewriteBasis) -> None:
    before = copy(row)
    row.summary, row.actor_kind = text.written, ActorKind.RUN
    row.extraction, row.prompt_version = basis.run, basis.run.prompt_version
    row.trust, row.evidence = text.trust, [turn.number for turn in basis.supporting(text.written)]
    row.version += 1
    row.updated_at = basis.now
    row.save()
    audit.revise_section(row=row, verb="extract", actor=Actor.run(basis.run), before=before, now=basis.now)


def _propose(row: ProfileSection, summary: str, reason: ReviewItem.Reason, trust: Trust, basis: RewriteBasis) -> str:
    """Propose the text, unless it waits already or was rejected; returns what was done."""
    proposed = ProfileRevision.objects.of(row).filter(version=None)
    if fold(summary) in map(fold, proposed.values_list("after", flat=True)[:_COMPARED]):
        return "profile_proposed_before"
    proposal = ProfileRevision.objects.create(
        tenant_id=row.tenant_id,
        end_user=row.end_user,
        agent_id=row.agent_id,
        section=row.section,
        version=None,
        verb="extract",
        actor_kind=ActorKind.RUN,
        actor_id=str(basis.run.pk),
        before=row.summary,
        after=summary,
        trust=trust,
        evidence=sorted(basis.evidence.fed),
        extraction=basis.run,
        created_at=basis.now,
    )
    review_items.ask(ReviewQuestion(reason, proposed_section=proposal), run=basis.run, now=basis.now)
    return "profile_held"
