"""Reconcile: the only place that makes extracted facts. It holds candidates against existing facts, in the transaction
that holds the claim."""

from datetime import datetime
from types import MappingProxyType

from django.db.models import Q

from memories import conf
from memories.categories import CORRECTIVE
from memories.facts import review_items
from memories.llm.prompts.memory_update import MemoryUpdate
from memories.models import ExtractionRun, Fact, Status
from memories.reconcile import profile, references, relations
from memories.reconcile.batches import TurnBatch
from memories.reconcile.changes import FactChanges, Outcome, start
from memories.reconcile.gate import Admitted
from memories.reconcile.judgement import Verdicts
from memories.scoring.weighting import retention_score
from memories.trust import CORRECTIONS, rank

_BINDING = Q(binding=True) | Q(pinned=True) | Q(locked=True)
_WEIGHED = (
    "category", "key", "source", "trust", "confidence", "mentions", "binding", "pinned", "locked", "last_confirmed_at",
    "last_recalled_at", "created_at",
)  # fmt: skip


def apply(
    *,
    run: ExtractionRun,
    batch: TurnBatch,
    answer: MemoryUpdate,
    admitted: Admitted,
    near: Verdicts = MappingProxyType({}),
    now: datetime,
) -> Outcome:
    """Write the candidates that the gate `admitted`, and what the answer says of facts that it was shown.

    `near` are the verdicts on facts near the candidates. Inside the caller's transaction, after queue_rows.fence().
    """
    rules = conf.rules(run.tenant)
    named, refusals = references.judge(answer, batch)
    related, unrelated = relations.judge(admitted.candidates, batch)
    ids = [reference.shown.fact_id for reference in named]
    ids += [relation.shown.fact_id for relation in related if relation.shown]
    changes = start(run, batch, admitted.candidates, near=near, named=ids, now=now)
    references.apply(changes, named)
    relations.apply(changes, related)
    if changes.grew and rules.capacity:
        _archive_surplus(changes, rules.capacity)
    if changes.write.facts:
        review_items.close_answered_items(changes.write.facts, now=now)
    basis = profile.RewriteBasis(run, batch.evidence, rules.trust_assistant, now)
    sections = profile.rewrite(basis=basis, answer=answer.profile, shown=batch.shown_profile)
    done = changes.outcome
    return Outcome(done.done + sections, admitted.refusals + refusals + unrelated + done.refusals)


def _archive_surplus(changes: FactChanges, limit: int) -> None:
    """Archive what is worth least of a person's active facts beyond `limit` (rules.md, 5.6).

    Lower trust goes before higher, corrections after all others of their trust. An operator's word counts and stays, as
    no job may change it, and so does the value of a profile's field.
    """
    run, now = changes.run, changes.write.now
    facts = Fact.objects.of(run.tenant, run.end_user).active(now=now)
    # Nearly nobody has as many. To read and weigh all of them took an eighth of a batch's time.
    too_many = facts.count() - limit
    if too_many <= 0:
        return
    unkept = (fact for fact in facts.only(*_WEIGHED).order_by("pk") if not (fact.protected or fact.is_of_profile))
    least = sorted(unkept, key=lambda fact: _weight(fact, now))
    surplus = [fact.pk for fact in least[:too_many]]
    # Waiting for a lock here, after other locks, could end in a deadlock. The next batch archives a fact that somebody
    # changes at this moment.
    unbound = facts.filter(pk__in=surplus, status=Status.ACTIVE).exclude(_BINDING)
    for fact in list(unbound.order_by("pk").select_for_update(no_key=True, skip_locked=True)):
        # Else it would be asked for each of them whether a webhook wants to know.
        fact.tenant = run.tenant
        changes.archive(fact)


def _weight(fact: Fact, now: datetime) -> tuple[int, bool, float, datetime]:
    is_correction = fact.category in CORRECTIVE or fact.source in CORRECTIONS
    last = max(fact.last_confirmed_at, fact.last_recalled_at or fact.last_confirmed_at)
    value = retention_score(confidence=fact.confidence, last_used=last, mentions=fact.mentions, now=now)
    return rank(fact.trust), is_correction, value, fact.created_at
