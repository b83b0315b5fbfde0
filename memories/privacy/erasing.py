"""The erasure of a person, step by step; each a few short transactions, and each does nothing where it was done before.

1. `begin`: what is at work on the person is thrown away (fencing.py).
2. `note`: what the verification will look for is put by, encrypted, and the ledger, kept apart from the database, told.
3. `stores`: what every store of the registry holds goes, some thousand rows at a time.
4. `people`: the person and the names that lead to them go, tombstones take their place: one transaction.
5. `vacuum`: the dead rows are cleared away, with what the planner sampled of them.
6. `verify`: other code looks for what must not be there any more; then the receipt is issued.

The case's row says at which step it is. Whoever takes it up again begins there.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from django.db import IntegrityError
from django.db.models import F
from django.db.models.functions import Now

from memories import conf
from memories.models import CaseState, EndUser, PrivacyCase, Tombstone
from memories.privacy import ledger, receipts, registry, verification
from memories.privacy.erasure import clearing
from memories.privacy.erasure.case_leases import FOUND, Work, fail, finish, keep, record
from memories.privacy.erasure.fencing import end_exports, fence, lock_cases, lock_people
from memories.privacy.erasure.patience import patiently
from memories.privacy.searching import needles
from memories.privacy.stores.keeping import STEP, Keeping, called, ids_behind, names_of
from memories.privacy.stores.requests import REQUESTS, TEXTS, empty

BEGIN, NOTE, STORES, PEOPLE, VACUUM, VERIFY, DONE = "begin", "note", "stores", "people", "vacuum", "verify", "done"
# Staff may write of the person until the last transaction; not that often.
TRIES = 10

logger = logging.getLogger(__name__)


def steps(work: Work, *, now: datetime) -> Iterator[str]:
    """Take them; yields after each transaction. Errors: LeaseLost, those of the ledger and the verification."""
    acts: dict[str, Callable[[], Iterator[str]]] = {
        BEGIN: lambda: _begin(work),
        NOTE: lambda: _note(work, now=now),
        STORES: lambda: _stores(work),
        PEOPLE: lambda: _people(work, now=now),
        VACUUM: lambda: _vacuum(work),
        VERIFY: lambda: _verify(work),
    }
    names = list(acts)
    at = names.index(work.case.step) if work.case.step in names else 0
    for name in names[at:]:
        yield from acts[name]()


def _begin(work: Work) -> Iterator[str]:
    person = work.case.find_person()

    def act() -> None:
        keep(work, step=NOTE, attempts=0)
        if person:
            fence(person, case_id=work.case.pk)

    patiently(act)
    yield BEGIN


def _note(work: Work, *, now: datetime) -> Iterator[str]:
    """The ledger first: an erasure that it does not know would be undone by a restore."""
    person = work.case.find_person()
    ledger.append(work.case, digests_of(work.case, person), now=now)
    sought = needles.collect(person) if person else needles.of_nobody(work.case.tenant_id)
    patiently(partial(keep, work, step=STORES, attempts=0, needles=sought))
    yield NOTE


def _stores(work: Work) -> Iterator[str]:
    yield from _empty_all(work, work.case.find_person())
    patiently(partial(keep, work, step=PEOPLE, attempts=0))
    yield STORES


def _empty_all(work: Work, person: EndUser | None) -> Iterator[str]:
    for store in registry.all_stores():
        while person and store is not registry.PEOPLE and _erase_some(work, store, person):
            yield store.model


def _erase_some(work: Work, store: Keeping, person: EndUser) -> int:
    def act() -> tuple[int, Counter[str]]:
        keep(work)
        gone = store.erase(person, STEP)
        counts = work.counts + Counter({store.model: gone})
        if gone:
            keep(work, counts=dict(counts), attempts=0)
        return gone, counts

    # Counted once the transaction is through: it may be tried several times.
    gone, work.counts = patiently(act)
    return gone


def _people(work: Work, *, now: datetime) -> Iterator[str]:
    person = work.case.find_person()
    for tried in range(TRIES):
        try:
            work.counts = patiently(partial(_end, work, person, now))
            break
        except IntegrityError:
            # Somebody wrote of the person meanwhile, so the database lets go of nobody.
            if tried == TRIES - 1:
                raise
        yield from _empty_all(work, person)
    yield PEOPLE


def _end(work: Work, person: EndUser | None, now: datetime) -> Counter[str]:
    """The last transaction, short, for whoever comes under the id waits for it. That nothing else refers to the person
    is checked by the foreign keys at its commit; an export refers to the case alone."""
    keep(work)
    case, counts = work.case, Counter(work.counts)
    _bury(case, digests_of(case, person), now=now, anew=person is not None)
    if person:
        people, words = ids_behind(person), called(person)
        cases = lock_cases(people, but=case.pk)
        lock_people(people)
        _part(cases, words, people, case)
        for store in (*REQUESTS, registry.PEOPLE):
            while gone := store.erase(person, STEP):
                counts[store.model] += gone
    keep(work, counts=dict(counts), step=VACUUM, attempts=0)
    record(work, "erase", counts, now=now)
    return counts


def _part(cases: list[PrivacyCase], words: set[str], people: list[uuid.UUID], own: PrivacyCase) -> None:
    """Cases stay, about nobody. What they say of the person goes; of the own one the receipt tells first who was
    told."""
    end_exports(people, but=own.pk)
    for case in cases:
        empty(case, words)
    empty(PrivacyCase.objects.get(pk=own.pk), words, texts=())


def _bury(case: PrivacyCase, digests: list[bytes], *, now: datetime, anew: bool) -> None:
    """`anew`: in the place of older tombstones; a case that found nobody leaves what was decided when they went."""
    stones = [
        Tombstone(tenant=case.tenant, digest=digest, policy=case.policy, case_uuid=case.pk, created_at=now)
        for digest in digests
    ]
    if not anew:
        Tombstone.objects.bulk_create(stones, ignore_conflicts=True)
        return
    told = ["policy", "case_uuid", "created_at"]
    Tombstone.objects.bulk_create(stones, update_conflicts=True, unique_fields=["tenant", "digest"], update_fields=told)


def digests_of(case: PrivacyCase, person: EndUser | None) -> list[bytes]:
    """Of the id that was asked for, and of every id that leads to the person; in one order for everybody."""
    names = names_of(person) if person else []
    return sorted({bytes(case.subject), *(conf.digest_of_person(case.tenant_id, name) for name in names)})


def _vacuum(work: Work) -> Iterator[str]:
    for table in clearing.touched(work.counts):
        patiently(partial(keep, work))
        clearing.vacuum(table)
    patiently(partial(keep, work, step=VERIFY, attempts=0))
    yield VACUUM


def _verify(work: Work) -> Iterator[str]:
    """Other code than the deleter's looks, outside of any transaction: it reads every table."""
    patiently(partial(keep, work, state=CaseState.VERIFYING, version=F("version") + 1))
    work.case.refresh_from_db()
    # Of somebody who was gone before it began there is nothing to look for.
    findings = verification.verify(work.case) if work.case.needles else None
    if findings and findings.hits:
        fail(work, FOUND, findings=findings.as_json())
    else:
        patiently(partial(_complete, work, findings.as_json() if findings else {}))
        _write_files(work.case)
    yield VERIFY


def _complete(work: Work, findings: dict[str, Any]) -> None:
    keep(work)
    case = work.case
    # As it is by now, locked by the line above: somebody may have noted who was told.
    case.refresh_from_db()
    # By the database's clock, when all is gone: whoever began before that may still see the rows (rewriting.py).
    now = PrivacyCase.objects.annotate(clock=Now()).values_list("clock", flat=True).get(pk=case.pk)
    case.findings, case.completed_at = findings, now
    receipts.issue(case, now=now)
    emptied = dict.fromkeys(TEXTS, "")
    finish(
        work, now=now, verb="complete", step=DONE, findings=findings, receipt=case.receipt, signature=case.signature,
        needles=b"", **emptied,
    )  # fmt: skip


def _write_files(case: PrivacyCase) -> None:
    """Beside the row, for who has no access to the admin; they can be written again from it at any time."""
    try:
        receipts.write_files(case)
    except OSError as error:
        logger.warning("The files of receipt %s could not be written: %s", case.pk, type(error).__name__)
