"""What becomes of a candidate beside what is known: refusals, an operator's word, trust, text, key, then judgements."""

from collections.abc import Iterable, Sequence

from memories.models import Fact, Status, Trust
from memories.pipeline.desk import MOST_DUPLICATES, Desk, Reason, is_trusted_enough
from memories.pipeline.fact_rows import TextTaken
from memories.pipeline.gate import Accepted
from memories.pipeline.known import Standing
from memories.pipeline.rules_extraction import SUGGESTED

# A person who says it as plainly as this always wins (rules.md, 5.2).
CERTAIN = 0.95


def place(desk: Desk, candidates: Iterable[Accepted]) -> None:
    """One by one, so that what the earlier ones wrote is known to the later ones; each is counted once.

    What rests on the newest turn comes last: of two values for one key it is the newer.
    """
    for candidate in sorted(candidates, key=lambda candidate: candidate.cited[-1:]):
        try:
            _place(desk, candidate)
        except TextTaken:
            desk.known.look_again(candidate)
            _place(desk, candidate)


def _place(desk: Desk, candidate: Accepted) -> None:
    standing = desk.known.standing(candidate)
    if desk.known.refuses(candidate):
        _say_again(desk, candidate, standing)
    elif standing.repeats_word:
        desk.count("operator_word")
    elif not standing.repeats and (word := standing.opposed_word):
        opposed = word in standing.opposes
        desk.hold(candidate, standing.suggestion, Reason.OPERATORS_WORD, known=word, opposed=opposed)
    elif not standing.repeats and (refused := standing.near_refused):
        desk.hold(candidate, standing.suggestion, Reason.NEAR_REFUSED, known=refused)
    elif candidate.status == Status.PENDING:
        _suggest(desk, candidate, standing)
    else:
        _assert(desk, candidate, standing)


def _say_again(desk: Desk, candidate: Accepted, standing: Standing) -> None:
    """Refused for good (rules.md, 5.5): only a person's own word is heard, and by a person.

    What simple rules took for worth suggesting is not such a word.
    """
    if candidate.trust == Trust.USER and SUGGESTED not in candidate.flags:
        word = standing.opposed_word or desk.known.set_right(candidate)
        desk.hold(candidate, standing.suggestion, Reason.REFUSED_BEFORE, known=word)
    else:
        desk.refuse("dropped_after_refusal")


def _suggest(desk: Desk, candidate: Accepted, standing: Standing) -> None:
    """It may join another suggestion, and changes nothing that is active."""
    outranking = _outranking(candidate, standing.opposes)
    if standing.repeats:
        desk.count("outranked")
    elif outranking:
        desk.hold(candidate, standing.suggestion, Reason.OUTRANKED, known=outranking, opposed=True)
    else:
        desk.suggest(candidate, standing.suggestion, known=next(iter(standing.opposes), None))


def _assert(desk: Desk, candidate: Accepted, standing: Standing) -> None:
    """Said by somebody who is believed: same text, then same key, then as it was judged (rules.md, 5.1 to 5.3)."""
    suggestion, opposes = standing.suggestion, standing.opposes
    stronger = next((fact for fact in opposes if not _wins(candidate, fact)), None)
    if standing.repeats:
        desk.repeat(standing.repeats[0], candidate)
    elif outranking := _outranking(candidate, opposes or standing.refines[:1]):
        desk.hold(candidate, suggestion, Reason.OUTRANKED, known=outranking, opposed=bool(opposes))
    elif stronger:
        desk.hold(candidate, suggestion, Reason.LESS_SURE, known=stronger, opposed=True)
    elif suggestion and desk.known.is_contested(suggestion, opposes):
        desk.join(candidate, suggestion)
    elif standing.refines and not opposes and suggestion is None:
        desk.refine(standing.refines[0], candidate)
    else:
        _establish(desk, candidate, standing)


def _establish(desk: Desk, candidate: Accepted, standing: Standing) -> None:
    """Make it a fact in the place of what it opposes; where nobody judged, ask whether it is one at all."""
    if standing.suggestion and not is_trusted_enough(candidate, standing.suggestion):
        desk.count("outranked")
        return
    fact = desk.establish(candidate, standing.suggestion)
    for rival in standing.opposes:
        desk.supersede(rival, by=fact)
    for near in standing.unjudged[:MOST_DUPLICATES]:
        desk.ask(Reason.NOT_JUDGED, fact=fact, known=near)


def _outranking(candidate: Accepted, facts: Sequence[Fact]) -> Fact | None:
    """The first of the facts that is of more trust."""
    return next((fact for fact in facts if not is_trusted_enough(candidate, fact)), None)


def _wins(candidate: Accepted, fact: Fact) -> bool:
    """Against the highest confidence ever stated for the fact, reinforcement excluded; on a tie the newer wins.

    A correction or a decision of the person's own always does, and so does what the person is certain of.
    """
    certain = candidate.trust == Trust.USER and candidate.confidence >= CERTAIN
    return candidate.decisive or certain or candidate.confidence >= fact.stated_confidence
