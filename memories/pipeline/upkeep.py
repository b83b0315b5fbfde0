"""Upkeep at night, where it is switched on: a model says which facts that nobody confirmed for long no longer hold, and
merges those that say much the same (rules.md, 7.5).

One call per person and night, with no transaction open; then one short one that takes nothing that has changed
meanwhile. Who was tried is noted before the call: a person whose facts kill the worker costs nobody else the night.
"""

import time
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django_q.tasks import async_task

from memories.exceptions import DecayRunning, ModelError, PersonRestricted
from memories.llm import client
from memories.llm.calls import Completion
from memories.llm.prompts import fact_upkeep
from memories.llm.prompts.fact_upkeep import FactUpkeep
from memories.models import DecayPass, EndUser, ModelUse
from memories.pipeline import (
    endpoint,
    pass_leases,
    spending,
    upkeep_answers,
    upkeep_candidates,
    upkeep_passes,
    upkeep_rows,
)
from memories.pipeline.decay_passes import Work
from memories.pipeline.spending import Spent
from memories.pipeline.upkeep_candidates import Sheet

UPKEEP_TASK = "memories.tasks.keep_up"
# People of one look into the tenant's facts.
_PAGE = 50


def work_on(*, now: datetime, seconds: float) -> bool:
    """Carry on upkeep that nobody works on, for about so long; True when more is left that may be done now.

    While the model's endpoint rests all is left for later. Errors: LeaseLost.
    """
    until = time.monotonic() + seconds
    for row in upkeep_passes.unfinished():
        work = upkeep_passes.claim(row)
        if work and not _work(work, now=now, until=until):
            return True
    return False


def is_due() -> bool:
    """Whether upkeep waits for somebody."""
    return bool(upkeep_passes.unfinished())


def wake() -> None:
    """Have a worker carry it on."""
    async_task(UPKEEP_TASK)


def keep_up(*, row: DecayPass, now: datetime) -> bool:
    """Do the upkeep of a finished pass in this process; False when the endpoint rests and a worker is to go on.

    Errors: DecayRunning, when somebody else has taken it; LeaseLost.
    """
    with transaction.atomic():
        upkeep_passes.begin(row)
        work = upkeep_passes.claim(row)
    if work is None:
        raise DecayRunning
    _work(work, now=now)
    row.refresh_from_db()
    return not row.upkeep_open


def _work(work: Work, *, now: datetime, until: float | None = None) -> bool:
    """False when the time was up; else it is done, or the endpoint rests."""
    while people := _next_people(work, now=now):
        for person in people:
            if not _look_at(work, person, now=now):
                pass_leases.release(work)
                return True
            if until is not None and time.monotonic() > until:
                pass_leases.release(work)
                return False
    with transaction.atomic():
        upkeep_passes.finish(work, now=now)
    return True


def _next_people(work: Work, *, now: datetime) -> list[EndUser]:
    left = work.rules.upkeep_people - work.counts["reviewed"]
    if left <= 0 or upkeep_passes.hindrance(work.rules):
        return []
    return upkeep_candidates.people(tenant=work.row.tenant, rules=work.rules, now=now, limit=min(left, _PAGE))


def _look_at(work: Work, person: EndUser, *, now: datetime) -> bool:
    """Gather, ask, commit; False when nobody may be asked now."""
    sheet = upkeep_candidates.gather(person=person, rules=work.rules, now=now)
    if not sheet.facts:
        _note(person, upkeep_tried_at=now, upkept_at=now)
        return True
    if not _may_ask(work):
        return False
    _note(person, upkeep_tried_at=now)
    work.counts["reviewed"] += 1
    try:
        completion = client.complete(
            messages=sheet.messages,
            answer=fact_upkeep.ANSWER,
            # One may have gone to ask whether the endpoint is back.
            max_calls=max(1, work.rules.max_model_calls - 1),
            before_call=partial(_renew, work, person),
        )
    except ModelError as error:
        _note_failure(work, person, error)
    except PersonRestricted:
        endpoint.not_asked()
    else:
        endpoint.answered()
        _commit(work, person, sheet, completion, now=now)
    return True


def _may_ask(work: Work) -> bool:
    """Whether the endpoint takes questions; after an outage it is asked one that has nobody's data first."""
    with transaction.atomic():
        admitted = endpoint.admit(lease=timedelta(seconds=work.rules.lease_seconds))
    return admitted and (not endpoint.is_down() or endpoint.ask())


def _renew(work: Work, person: EndUser) -> None:
    """Before each HTTP call. Errors: LeaseLost; PersonRestricted, also when they were erased."""
    pass_leases.keep(work)
    present = EndUser.objects.filter(pk=person.pk, generation=person.generation, restricted_at=None)
    if not present.exists():
        raise PersonRestricted


def _note_failure(work: Work, person: EndUser, error: ModelError) -> None:
    """The person's turn comes another night; failures of different people in a row are the endpoint's."""
    work.counts["upkeep_failures"] += 1
    pass_leases.keep(work)
    if error.endpoint_wide:
        endpoint.failed(person.pk, retry_after=error.retry_after)
    else:
        endpoint.answered()


def _commit(work: Work, person: EndUser, sheet: Sheet, completion: Completion[FactUpkeep], *, now: datetime) -> None:
    judged = upkeep_answers.judge(completion.answer, sheet.facts, work.rules)
    spent = Spent(completion.prompt_tokens, completion.completion_tokens)
    with transaction.atomic():
        if upkeep_rows.hold(person):
            keeper = upkeep_rows.Keeper(person, work.rules, work.actor, work.row.pk, completion.extractor, now)
            keeper.apply(judged)
            _note(person, upkept_at=now)
            work.counts.update(keeper.done)
            pass_leases.keep(work)
        spending.note(work.row.tenant, ModelUse.Purpose.UPKEEP, calls=completion.calls, spent=spent, now=now)


def _note(person: EndUser, **moments: datetime) -> None:
    EndUser.objects.filter(pk=person.pk).update(**moments)
