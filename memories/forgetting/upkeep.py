"""Upkeep at night, where it is switched on (rules.md, 7.5): a model reviews facts that nobody confirmed for long, and
merges facts that say much the same.

It follows a decay pass, in the same row: under a lease, one at a time per tenant. There is one call per person and
night with no transaction open, then a short transaction that skips facts that changed meanwhile. Each try is noted
before the call: a person whose facts kill the worker costs the others no night.
"""

import time
from collections import Counter
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memories import conf
from memories.exceptions import DecayRunning, ModelError, PersonRestricted
from memories.forgetting import upkeep_answers, upkeep_candidates, upkeep_rows
from memories.forgetting.decay_passes import Work
from memories.forgetting.upkeep_candidates import UpkeepSheet
from memories.llm import client
from memories.llm.calls import Completion
from memories.llm.prompts import fact_upkeep
from memories.llm.prompts.fact_upkeep import FactUpkeep
from memories.models import DecayPass, EndUser, ModelUse, Tenant
from memories.queue import background_calls, circuit_breaker, leases, nightly, own_models, spending
from memories.queue.spending import Spent

UPKEEP_TASK = "memories.tasks.keep_up"
# People that a model reviewed, facts removed, facts made of others, failed calls, refused items of answers.
COUNTED = ("reviewed", "stale", "merged", "upkeep_failures", "upkeep_refused")
# So many people are looked up at a time.
_PAGE = 50


def reason_disabled(rules: conf.Rules, tenant: Tenant) -> str:
    """Why there is no upkeep; empty when there is."""
    if not (rules.staleness_review or rules.merge_crowded):
        return _("Upkeep is off: neither “Staleness review” nor “Merge crowded categories” is enabled.")
    config = own_models.config_of(tenant.pk)
    return "" if client.is_configured(config) else _("Upkeep needs a language model.")


def follow(work: Work, state: DecayPass.PassState) -> None:
    """Open the upkeep of a nightly pass that the brake did not hold; in the pass's last transaction."""
    is_nightly = work.row.trigger == DecayPass.Trigger.SCHEDULE and state == DecayPass.PassState.DONE
    if is_nightly and not reason_disabled(work.rules, work.row.tenant):
        begin(work.row)


def begin(row: DecayPass) -> None:
    """Open the upkeep of a finished pass; it replaces one that another night left open. In the caller's transaction."""
    others = DecayPass.objects.in_upkeep().filter(tenant=row.tenant_id).exclude(pk=row.pk)
    leases.revoke(others, upkeep_open=False)
    DecayPass.objects.filter(pk=row.pk).update(upkeep_open=True, attempts=0, failure="")


def is_due() -> bool:
    """Whether upkeep waits for a worker."""
    return DecayPass.objects.in_upkeep().free().exists()


def enqueue() -> None:
    """Send a worker the task that carries it on."""
    async_task(UPKEEP_TASK)


def run(*, row: DecayPass, now: datetime) -> bool:
    """Do the upkeep of a finished pass in this process; False when the endpoint is paused and a worker is to go on.

    Errors: DecayRunning, when somebody else has claimed it; LeaseLost.
    """
    with transaction.atomic():
        begin(row)
        work = claim(row)
    if work is None:
        raise DecayRunning
    _work(work, now=now)
    row.refresh_from_db()
    return not row.upkeep_open


def run_slice(*, now: datetime, seconds: float) -> bool:
    """Carry on upkeep that nobody holds, for about so long; True when more is left that can be done now.

    While the model's endpoint is paused everything waits. Errors: LeaseLost.
    """
    return nightly.run_slice(DecayPass.objects.in_upkeep(), claim, partial(_work, now=now), seconds=seconds)


def claim(row: DecayPass) -> Work | None:
    """Take the upkeep under a lease that outlasts a model call; None when it is over, or somebody else holds it."""
    lasts = timedelta(seconds=conf.rules(row.tenant).lease_seconds)
    work = nightly.claim(DecayPass.objects.in_upkeep(), row, given_up={"upkeep_open": False}, lasts=lasts)
    if work:
        work.counts = Counter(dict.fromkeys(COUNTED, 0) | work.row.counts)
    return work


def _work(work: Work, until: float | None = None, *, now: datetime) -> bool:
    """False when the time was up; else it is done, or the endpoint is paused."""
    while people := _next_people(work, now=now):
        for person in people:
            if not _review(work, person, now=now):
                leases.release(work)
                return True
            if until is not None and time.monotonic() > until:
                leases.release(work)
                return False
    with transaction.atomic():
        leases.release(work, upkeep_open=False)
        nightly.record(work.row, "upkeep", {name: work.counts[name] for name in COUNTED}, now=now)
    return True


def _next_people(work: Work, *, now: datetime) -> list[EndUser]:
    left = work.rules.upkeep_people - work.counts["reviewed"]
    if left <= 0 or reason_disabled(work.rules, work.row.tenant):
        return []
    return upkeep_candidates.people(tenant=work.row.tenant, rules=work.rules, now=now, limit=min(left, _PAGE))


def _review(work: Work, person: EndUser, *, now: datetime) -> bool:
    """Gather, ask, commit; False when the endpoint takes no calls now."""
    sheet = upkeep_candidates.gather(person=person, rules=work.rules, now=now)
    if not sheet.facts:
        _note(person, upkeep_tried_at=now, upkept_at=now)
        return True
    config = own_models.config_of(work.row.tenant_id)
    tenant, lease = work.row.tenant, timedelta(seconds=work.rules.lease_seconds)
    if not background_calls.may_ask(tenant, config, lease=lease, now=now):
        return False
    _note(person, upkeep_tried_at=now)
    work.counts["reviewed"] += 1
    try:
        completion = client.complete(
            messages=sheet.messages,
            answer=fact_upkeep.ANSWER,
            # One call may have probed the endpoint.
            max_calls=max(1, work.rules.max_model_calls - 1),
            before_call=partial(_renew, work, person),
            config=config,
        )
    except ModelError as error:
        background_calls.count(tenant, config, error, now=now)
        # The person is reviewed another night.
        work.counts["upkeep_failures"] += 1
        leases.renew(work)
        background_calls.note_failure(error, config, about=person.pk)
    except PersonRestricted:
        circuit_breaker.release_probe(config.tenant_id)
    else:
        background_calls.count(tenant, config, completion, now=now)
        circuit_breaker.close(config.tenant_id)
        _commit(work, person, sheet, completion, config=config, now=now)
    return True


def _renew(work: Work, person: EndUser) -> None:
    """Before each HTTP call. Errors: LeaseLost; PersonRestricted, also when they were erased."""
    leases.renew(work)
    present = EndUser.objects.filter(pk=person.pk, generation=person.generation, restricted_at=None)
    if not present.exists():
        raise PersonRestricted


def _commit(
    work: Work,
    person: EndUser,
    sheet: UpkeepSheet,
    completion: Completion[FactUpkeep],
    *,
    config: conf.LLMConfig,
    now: datetime,
) -> None:
    decisions = upkeep_answers.judge(completion.answer, sheet.facts, work.rules)
    spent = Spent(completion.prompt_tokens, completion.completion_tokens)
    with transaction.atomic():
        if upkeep_rows.lock_person(person):
            writer = upkeep_rows.UpkeepWriter(
                person, work.rules, nightly.actor_of(work.row), work.row.pk, completion.extractor, now
            )
            writer.apply(decisions)
            _note(person, upkept_at=now)
            work.counts.update(writer.done)
            leases.renew(work)
        spending.note(
            work.row.tenant,
            ModelUse.Purpose.UPKEEP,
            calls=completion.calls,
            spent=spent,
            prices=config.prices,
            now=now,
        )


def _note(person: EndUser, **moments: datetime) -> None:
    EndUser.objects.filter(pk=person.pk).update(**moments)
