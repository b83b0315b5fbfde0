"""The only place that makes extracted facts: candidates meet what is known, in the transaction that holds the claim."""

from datetime import datetime
from types import MappingProxyType

from memories import conf
from memories.llm.prompts.memory_update import MemoryUpdate
from memories.models import ExtractionRun
from memories.pipeline import capacity, known, placing, references, review_items, summaries
from memories.pipeline.batches import Batch
from memories.pipeline.desk import Desk, Outcome
from memories.pipeline.fact_rows import Writer
from memories.pipeline.gate import Admitted
from memories.pipeline.judgement import Verdicts


def apply(
    *,
    run: ExtractionRun,
    batch: Batch,
    answer: MemoryUpdate,
    admitted: Admitted,
    near: Verdicts = MappingProxyType({}),
    now: datetime,
) -> Outcome:
    """Write what the gate `admitted` of the answer, and what it says of known facts.

    `near` are the judgements on what lies near the candidates. Inside the caller's transaction, after debounce.hold().
    """
    named, refusals = references.judge(answer, batch)
    ids = [reference.shown.fact_id for reference in named]
    bearing = known.recall(run=run, candidates=admitted.candidates, near=near, named=ids, now=now)
    desk = Desk(Writer(run, batch.turn_ids, now), bearing)
    placing.place(desk, admitted.candidates)
    references.apply(desk, named)
    if desk.grew:
        capacity.keep_within(desk, conf.rules(run.tenant).capacity)
    if desk.over:
        review_items.settle(desk.over, now=now)
    sections = summaries.rewrite(run=run, answer=answer.profile, shown=batch.shown_profile, now=now)
    return Outcome(desk.outcome.done + sections, admitted.refusals + refusals + desk.outcome.refusals)
