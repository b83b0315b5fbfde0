"""The steps of an erasure: each a few short transactions, and each does nothing where it was done before.

1. `begin`: jobs at work on the person lose their leases, and new ones cannot begin.
2. `note`: the search terms of the verification are stored, encrypted, and the ledger beside the database is written.
3. `stores`: every store of the registry is emptied, some thousand rows at a time.
4. `people`: one transaction replaces the person and their aliases by tombstones.
5. `vacuum`: the dead rows are vacuumed, and the planner takes new samples.
6. `verify`: independent code (`verification.py`) looks for what must be gone; then the receipt is issued.

The row of the case names the next step. Whoever takes the case up again begins there.
"""

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.apps import apps
from django.db import DatabaseError, IntegrityError, connection
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from psycopg import sql

from memories import conf, outbox
from memories.db import tenancy
from memories.db.lock_timeouts import retry_while_locked
from memories.models import CaseState, Dream, EndUser, Event, PrivacyCase, SessionQueue, Tombstone, WorkingMemory
from memories.outbox import WebhookEvent
from memories.privacy import case_leases, ledger, receipts, registry, verification
from memories.privacy.case_leases import ClaimedCase
from memories.privacy.searching import search_terms
from memories.privacy.stores.linked import CASE_TEXTS, REQUESTS, empty_texts
from memories.privacy.stores.store import STEP, PersonalDataStore, external_ids_of, ids_behind, names_of
from memories.queue import leases
from memories.queue.leases import renew

BEGIN, NOTE, STORES, PEOPLE, VACUUM, VERIFY, DONE = "begin", "note", "stores", "people", "vacuum", "verify", "done"
# Staff can write about the person until the last transaction, but not that often.
TRIES = 10
# An erasure that waits for a lock makes others wait for the locks that it has: not for longer than this. Shorter than
# what PostgreSQL waits before it looks for a deadlock.
LOCK_TIMEOUT = "100ms"
# Seconds between two tries, about a minute in all; most locks are held for milliseconds.
PAUSES = [min(1.0, 0.02 * 2**tried) for tried in range(60)]
_T = TypeVar("_T")

logger = logging.getLogger(__name__)


def steps(work: ClaimedCase, *, now: datetime) -> Iterator[str]:
    """Take the steps that are left; yields after each transaction.

    Errors: LeaseLost, those of the ledger and the verification.
    """
    acts: dict[str, Callable[[], Iterator[str]]] = {
        BEGIN: lambda: _begin(work),
        NOTE: lambda: _note(work, now=now),
        STORES: lambda: _empty_stores(work),
        PEOPLE: lambda: _erase_people(work, now=now),
        VACUUM: lambda: _vacuum(work),
        VERIFY: lambda: _verify(work),
    }
    names = list(acts)
    at = names.index(work.case.step) if work.case.step in names else 0
    for name in names[at:]:
        yield from acts[name]()


def _retried(act: Callable[[], _T]) -> _T:
    """Run `act` in a transaction, again while others hold the locks that it needs. Errors: OperationalError."""
    return retry_while_locked(act, lock_timeout=LOCK_TIMEOUT, pauses=PAUSES)


def _begin(work: ClaimedCase) -> Iterator[str]:
    person = work.case.find_person()

    def act() -> None:
        renew(work, step=NOTE, attempts=0)
        if person:
            _stop_jobs(person, case_id=work.case.pk)

    _retried(act)
    yield BEGIN


def _stop_jobs(person: EndUser, *, case_id: uuid.UUID) -> None:
    """Change the person's generation: an extraction, an embedding or a summary that began before fails at its commit.

    The case is locked by its lease. The other locks are taken in the order of everybody else: cases, sessions, people.
    """
    people = ids_behind(person)
    _lock_other_cases(people, case_id)
    # Whoever posts to one of the sessions is waited for; after that none is due, and no lease is in force.
    queues = SessionQueue.objects.select_for_update(of=("self", "session")).filter(session__end_user__in=people)
    locked = [row.pk for row in queues.select_related("session").order_by("pk")]
    windows = WorkingMemory.objects.select_for_update(of=("self",)).filter(pk__in=locked)
    list(windows.order_by("pk").values_list("pk"))
    for model in (SessionQueue, WorkingMemory):
        leases.revoke(model._default_manager.filter(pk__in=locked), due_at=None, woken_at=None)
    _lock_people(people)
    _end_exports(people, case_id)
    Dream.objects.filter(end_user__in=people).abandon()
    restricted = {"restricted_at": Coalesce("restricted_at", Now()), "generation": F("generation") + 1}
    EndUser.objects.filter(pk__in=people).update(**restricted)


def _lock_other_cases(people: Sequence[uuid.UUID], case_id: uuid.UUID) -> list[PrivacyCase]:
    rows = PrivacyCase.objects.select_for_update(of=("self",), no_key=True).filter(end_user__in=people)
    return list(rows.exclude(pk=case_id).order_by("pk"))


def _lock_people(people: Sequence[uuid.UUID]) -> None:
    """Against new rows that refer to them, too; whoever begins a session at this moment is waited for."""
    list(EndUser.objects.select_for_update(of=("self",)).filter(pk__in=people).order_by("pk"))


def _end_exports(people: Sequence[uuid.UUID], case_id: uuid.UUID) -> None:
    """An export that is being made loses its lease, and so writes nothing."""
    leases.revoke(PrivacyCase.objects.leased().filter(end_user__in=people).exclude(pk=case_id))


def _note(work: ClaimedCase, *, now: datetime) -> Iterator[str]:
    """Write the ledger before the first row goes: a restore would undo an erasure that the ledger does not have."""
    person = work.case.find_person()
    ledger.append(work.case, digests_of(work.case, person), now=now)
    terms = search_terms.collect(person) if person else search_terms.of_nobody(work.case.tenant_id)
    _retried(partial(renew, work, step=STORES, attempts=0, needles=terms))
    yield NOTE


def digests_of(case: PrivacyCase, person: EndUser | None) -> list[bytes]:
    """Digests of the requested id and of every id that leads to the person, sorted."""
    names = external_ids_of(person) if person else []
    return sorted({bytes(case.subject), *(conf.digest_of_person(case.tenant_id, name) for name in names)})


def _empty_stores(work: ClaimedCase) -> Iterator[str]:
    yield from _empty_all(work, work.case.find_person())
    _retried(partial(renew, work, step=PEOPLE, attempts=0))
    yield STORES


def _empty_all(work: ClaimedCase, person: EndUser | None) -> Iterator[str]:
    for store in registry.all_stores():
        while person and store is not registry.PEOPLE and _erase_some(work, store, person):
            yield store.model


def _erase_some(work: ClaimedCase, store: PersonalDataStore, person: EndUser) -> int:
    def act() -> tuple[int, Counter[str]]:
        renew(work)
        gone = store.erase(person, STEP)
        counts = work.counts + Counter({store.model: gone})
        if gone:
            renew(work, counts=dict(counts), attempts=0)
        return gone, counts

    # Counted once the transaction is through: it may be tried several times.
    gone, work.counts = _retried(act)
    return gone


def _erase_people(work: ClaimedCase, *, now: datetime) -> Iterator[str]:
    person = work.case.find_person()
    for tried in range(TRIES):
        try:
            work.counts = _retried(partial(_replace_people, work, person, now))
            break
        except IntegrityError:
            # Somebody wrote about the person meanwhile, so the foreign keys keep the rows.
            if tried == TRIES - 1:
                raise
        yield from _empty_all(work, person)
    yield PEOPLE


def _replace_people(work: ClaimedCase, person: EndUser | None, now: datetime) -> Counter[str]:
    """The last transaction is short, for posts under the erased id wait for it. At its commit the foreign keys check
    that nothing else refers to the person; an export refers to the case alone."""
    renew(work)
    case, counts = work.case, Counter(work.counts)
    _write_tombstones(case, person, now)
    if person:
        people, words = ids_behind(person), names_of(person)
        cases = _lock_other_cases(people, case.pk)
        _lock_people(people)
        # Cases stay, about nobody, without their texts. Those of this case go later: its receipt says who was told.
        _end_exports(people, case.pk)
        for other in cases:
            empty_texts(other, words)
        empty_texts(PrivacyCase.objects.get(pk=case.pk), words, texts=())
        for store in (*REQUESTS, registry.PEOPLE):
            while gone := store.erase(person, STEP):
                counts[store.model] += gone
        # Recipients erase the person, too (Art. 19). They know the hub's ids from earlier events.
        erased = [WebhookEvent(Event.PERSON_ERASED, {"person_id": pk, "case_id": case.pk}) for pk in people]
        outbox.publish(case.tenant_id, erased, now=now, tenant=case.tenant)
    renew(work, counts=dict(counts), step=VACUUM, attempts=0)
    case_leases.record(case, "erase", counts, now=now)
    return counts


def _write_tombstones(case: PrivacyCase, person: EndUser | None, now: datetime) -> None:
    stones = [
        Tombstone(tenant=case.tenant, digest=digest, policy=case.policy, case_uuid=case.pk, created_at=now)
        for digest in digests_of(case, person)
    ]
    if person is None:
        # A case that found nobody leaves what was decided when they went.
        Tombstone.objects.bulk_create(stones, ignore_conflicts=True)
    else:
        Tombstone.objects.bulk_create(
            stones,
            update_conflicts=True,
            unique_fields=["tenant", "digest"],
            update_fields=["policy", "case_uuid", "created_at"],
        )


def _vacuum(work: ClaimedCase) -> Iterator[str]:
    for table in tables_changed(work.counts):
        _retried(partial(renew, work))
        vacuum(table)
    _retried(partial(renew, work, step=VERIFY, attempts=0))
    yield VACUUM


def tables_changed(counts: Mapping[str, int]) -> list[str]:
    """Names of the tables that lost rows, by the counts of an erasure."""
    labels = (label for label, gone in counts.items() if gone and label.count(".") == 1)
    return sorted({apps.get_model(label)._meta.db_table for label in labels})


def vacuum(table: str) -> bool:
    """Vacuum and analyze the table; False when somebody else holds it, or inside a transaction.

    Columns with personal text have no samples (SET STATISTICS 0), so new ones are taken of ids, states and dates. No
    other statement waits for it: the end of the table is not cut off.
    """
    if connection.in_atomic_block:
        return False
    statement = sql.SQL("VACUUM (ANALYZE, SKIP_LOCKED, TRUNCATE FALSE) {}").format(sql.Identifier(table))
    try:
        with tenancy.alone(), connection.cursor() as cursor:
            cursor.execute(statement)
    except DatabaseError as error:
        # Autovacuum does it later, and nothing waits for it.
        logger.warning("%s could not be vacuumed: %s", table, type(error).__name__)
        return False
    return True


def _verify(work: ClaimedCase) -> Iterator[str]:
    """Let the independent search look, outside of any transaction: it reads every table."""
    _retried(partial(renew, work, state=CaseState.VERIFYING, version=F("version") + 1))
    work.case.refresh_from_db()
    # When the person was gone before the case began, there is nothing to look for.
    findings = verification.verify(work.case) if work.case.needles else None
    if findings and findings.hits:
        case_leases.fail(work, case_leases.FOUND, findings=findings.as_json())
    else:
        _retried(partial(_complete, work, findings.as_json() if findings else {}))
        try:
            # For those without access to the admin; the files can be written again from the row at any time.
            receipts.write_files(work.case)
        except OSError as error:
            logger.warning("The files of receipt %s could not be written: %s", work.case.pk, type(error).__name__)
    yield VERIFY


def _complete(work: ClaimedCase, findings: dict[str, Any]) -> None:
    renew(work)
    case = work.case
    # Read again under the lock of the line above: staff may have noted who was told.
    case.refresh_from_db()
    # By the database's clock, when all is gone: whoever began before that may still see the rows (rewriting.py).
    now = PrivacyCase.objects.with_clock().get(pk=case.pk).clock
    case.findings, case.completed_at = findings, now
    receipts.issue(case, now=now)
    emptied = dict.fromkeys(CASE_TEXTS, "")
    case_leases.finish(
        work, now=now, verb="complete", step=DONE, findings=findings, receipt=case.receipt, signature=case.signature,
        needles=b"", **emptied,
    )  # fmt: skip
