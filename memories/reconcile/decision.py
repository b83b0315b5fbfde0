"""The decision table: what becomes of a candidate beside the existing facts.

In this order: refusals, an operator's word, trust, the same text, the same key, then the verdicts on near facts.
"""

from collections.abc import Iterable, Sequence

from memories.facts.decision import CERTAIN
from memories.facts.refusals import RefusalOutcome
from memories.facts.timeline import Interval
from memories.models import Fact, Status, Trust
from memories.reconcile.changes import MOST_DUPLICATES, FactChanges, Reason, is_trusted_enough
from memories.reconcile.existing_facts import Comparison, states_value
from memories.reconcile.fact_rows import TextTaken
from memories.reconcile.gate import Accepted


def decide(changes: FactChanges, candidates: Iterable[Accepted]) -> None:
    """Decide one candidate after the other, so that later ones see what earlier ones wrote; each is counted once.

    The candidate that was said last comes last: of two values for one key it is the newer.
    """
    times_of = changes.writer.times_of
    for candidate in sorted(candidates, key=lambda candidate: (times_of(candidate.cited)[-1:], candidate.cited[-1:])):
        try:
            _decide(changes, candidate)
        except TextTaken:
            changes.existing.add_twin(candidate)
            _decide(changes, candidate)


def _decide(changes: FactChanges, candidate: Accepted) -> None:
    compared = changes.existing.compare(candidate)
    refusal = changes.existing.refusal(candidate)
    if refusal == RefusalOutcome.HOLD:
        word = compared.opposed_word or changes.existing.corrected(candidate)
        changes.hold(candidate, compared.suggestion, Reason.REFUSED_BEFORE, against=word)
    elif refusal == RefusalOutcome.DROP:
        changes.refuse("dropped_after_refusal")
    elif compared.repeats_word:
        changes.count("operator_word")
    elif not compared.repeats and (word := compared.opposed_word):
        opposed = word in compared.opposes
        changes.hold(candidate, compared.suggestion, Reason.OPERATORS_WORD, against=word, opposed=opposed)
    elif not compared.repeats and (refused := compared.near_refused):
        changes.hold(candidate, compared.suggestion, Reason.NEAR_REFUSED, against=refused)
    elif candidate.status == Status.PENDING:
        _suggest(changes, candidate, compared)
    else:
        _assert(changes, candidate, compared)


def _suggest(changes: FactChanges, candidate: Accepted, compared: Comparison) -> None:
    """It may join another suggestion, and changes nothing that is active."""
    outranking = _outranking(candidate, compared.opposes)
    if compared.repeats:
        changes.count("outranked")
    elif outranking:
        changes.hold(candidate, compared.suggestion, Reason.OUTRANKED, against=outranking, opposed=True)
    else:
        changes.suggest(candidate, compared.suggestion, against=next(iter(compared.opposes), None))


def _assert(changes: FactChanges, candidate: Accepted, compared: Comparison) -> None:
    """Somebody who is believed stated it: same text, then same key, then the verdicts (rules.md, 5.1 to 5.3)."""
    suggestion, opposes = compared.suggestion, compared.opposes
    refined = next((fact for fact in compared.refines if changes.existing.may_replace(fact)), None)
    place = changes.existing.place(candidate, opposes, moment=changes.writer.times_of(candidate.cited)[-1])
    stronger = next((fact for fact in opposes if not _wins(candidate, fact)), None)
    if place:
        _insert(changes, candidate, compared, place)
    elif compared.repeats:
        changes.repeat(compared.repeats[0], candidate)
    elif outranking := _outranking(candidate, opposes or compared.refines[:1]):
        changes.hold(candidate, suggestion, Reason.OUTRANKED, against=outranking, opposed=bool(opposes))
    elif stronger:
        changes.hold(candidate, suggestion, Reason.LESS_SURE, against=stronger, opposed=True)
    elif suggestion and changes.existing.is_contested(suggestion, opposes):
        changes.join(candidate, suggestion)
    elif refined and not opposes and suggestion is None:
        changes.refine(refined, candidate)
    else:
        _establish(changes, candidate, compared)


def _establish(changes: FactChanges, candidate: Accepted, compared: Comparison) -> None:
    """Make it a fact in place of those that it opposes and may replace; if nobody judged a near one, ask whether the
    two are one."""
    if compared.suggestion and not is_trusted_enough(candidate, compared.suggestion):
        changes.count("outranked")
        return
    fact = changes.establish(candidate, compared.suggestion)
    for opposed in compared.opposes:
        if changes.existing.may_replace(opposed):
            changes.supersede(opposed, by=fact)
        else:
            changes.stand_beside(opposed, fact)
    for near in compared.unjudged[:MOST_DUPLICATES]:
        changes.ask(Reason.NOT_JUDGED, fact=fact, known=near)


def _insert(changes: FactChanges, candidate: Accepted, compared: Comparison, place: Interval) -> None:
    """Something else was said later, and arrived before: the candidate is kept as what held until then. It joins the
    fact beside it that states the same; otherwise it comes between the two, and supersedes only what is older."""
    same = next((fact for fact in place.neighbours if states_value(fact, candidate)), None)
    before = place.before
    if same:
        changes.join_older(same, candidate, place)
    elif outranking := _outranking(candidate, place.neighbours):
        changes.hold(candidate, compared.suggestion, Reason.OUTRANKED, against=outranking, opposed=True)
    elif before and before.protected:
        changes.hold(candidate, compared.suggestion, Reason.OPERATORS_WORD, against=before, opposed=True)
    elif compared.suggestion:
        changes.join(candidate, compared.suggestion)
    else:
        changes.insert(candidate, place)


def _outranking(candidate: Accepted, facts: Sequence[Fact]) -> Fact | None:
    """The first of the facts with more trust."""
    return next((fact for fact in facts if not is_trusted_enough(candidate, fact)), None)


def _wins(candidate: Accepted, fact: Fact) -> bool:
    """Against the highest confidence ever stated for the fact, reinforcement excluded; on a tie the newer wins.

    The person's own correction or decision always wins, and so does what the person is certain of.
    """
    certain = candidate.trust == Trust.USER and candidate.confidence >= CERTAIN
    return candidate.decisive or certain or candidate.confidence >= fact.stated_confidence
