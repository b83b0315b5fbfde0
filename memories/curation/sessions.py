"""Deletes a session with its turns and the facts that rest on it alone."""

import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memories import audit, outbox
from memories.audit import Actor
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.trajectories import delete_of_session
from memories.exceptions import NotFound, PersonRestricted, PreconditionFailed
from memories.facts import review_items
from memories.models import (
    Change,
    Dream,
    EndUser,
    Episode,
    Event,
    Fact,
    FactEvidence,
    FactQuerySet,
    Role,
    Session,
    SessionQueue,
    Status,
    Tenant,
    Trust,
    Turn,
)

# Turns of one statement.
STEP = 5_000
# Extractors of facts that were stated outright: a session may have confirmed such a fact, but it does not rest on one.
STATED = ("api", "operator", "import")


def delete_session(
    *,
    session_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    expected_turns: int | None = None,
    write_trust: WriteTrust = AS_USER,
) -> None:
    """Delete a session with its turns and the facts that rest on them alone; an operator's word stays.

    An extraction in flight finds the session gone and writes nothing. Errors: NotFound, PersonRestricted for a key,
    PreconditionFailed when the session does not have the expected number of turns.
    """
    with transaction.atomic():
        session = _locked(session_id, tenant)
        if session.end_user.restricted_at and not actor.is_operator:
            raise PersonRestricted
        if expected_turns is not None and expected_turns != session.turn_count:
            raise PreconditionFailed
        if write_trust.trust != Trust.USER:
            # A turn, or a fact that goes with it, may not be this writer's to end.
            if session.turns.filter(role=Role.USER).exists():
                guarding.check_outranks(Trust.USER, write_trust)
            for fact in _alone(_resting_on(session), session).select_related("tenant"):
                guarding.check_ends(fact, write_trust)
        counts = {"turns": session.turn_count, "facts": _delete_facts(session, now=now)}
        audit.record(actor=actor, verb="delete", target=session, now=now, counts=counts)
        Dream.objects.doubt(Episode.objects.filter(session=session), now=now)
        Change.objects.of_summary(session.pk).delete()
        delete_of_session(session, now=now)
        _delete_turns(session)
        session.delete()


def facts_of_session(session: Session) -> tuple[QuerySet[Fact], QuerySet[Fact]]:
    """The facts that would be deleted with the session, and those that rest on it and would stay, as it is now."""
    here = _resting_on(session)
    alone = _alone(here, session)
    return alone, here.exclude(pk__in=alone.values("pk"))


def _locked(session_id: uuid.UUID, tenant: Tenant | None) -> Session:
    """Lock queue row and session, then the person: the order of window_queue.lock_claimed(), to avoid
    deadlocks with it."""
    rows = SessionQueue.objects.select_for_update(of=("self", "session")).select_related("session__tenant")
    if tenant is not None:
        rows = rows.filter(session__tenant=tenant)
    queue = rows.filter(pk=session_id).first()
    if queue is None:
        raise NotFound
    session: Session = queue.session
    # No other session's extraction can add evidence to a fact between our look and its deletion.
    session.end_user = EndUser.objects.select_for_update(no_key=True).get(pk=session.end_user_id)
    return session


def _delete_facts(session: Session, *, now: datetime) -> int:
    """Delete the facts that rest on this session alone, and its quotes in all others; returns how many facts."""
    here = _resting_on(session)
    quoted = _cited().filter(session=session, quote=OuterRef("raw"))
    here.filter(Exists(quoted)).unquote()
    # The lock shows us a fact that an operator has made binding meanwhile.
    found = list(_alone(here, session).select_for_update(of=("self",)).values_list("pk", flat=True))
    review_items.detach_conflicts(found)
    if outbox.is_wanted(session.tenant, Event.FACT_FORGOTTEN):
        used = Fact.objects.filter(pk__in=found, status=Status.ACTIVE).values_list("pk", "end_user")
        outbox.facts_gone(session.tenant, used, now=now)
    Fact.objects.filter(pk__in=found).delete()
    review_items.flag_lost_evidence(list(here.reflected().values_list("pk", flat=True)), now=now)
    return len(found)


def _delete_turns(session: Session) -> None:
    """With what refers to them, some thousand a statement: Django would read them all, and one statement for all of
    them could take longer than a statement may."""
    evidence = FactEvidence.objects.filter(session=session)
    evidence._raw_delete(evidence.db)
    for start in range(session.deleted_number, session.turn_count, STEP):
        turns = Turn.objects.filter(session=session, number__gt=start, number__lte=start + STEP)
        turns._raw_delete(turns.db)


def _cited() -> QuerySet[FactEvidence]:
    return FactEvidence.objects.filter(fact=OuterRef("pk"))


def _resting_on(session: Session) -> FactQuerySet:
    return Fact.objects.filter(Exists(_cited().filter(session=session)), end_user=session.end_user_id)


def _alone(here: QuerySet[Fact], session: Session) -> QuerySet[Fact]:
    elsewhere = Exists(_cited().exclude(session=session))
    return here.filter(~elsewhere, binding=False).exclude(extractor__in=STATED)
