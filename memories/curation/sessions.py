"""What people and keys may do to a whole conversation."""

import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memories import audit
from memories.audit import Actor
from memories.exceptions import NotFound, PersonRestricted, PreconditionFailed
from memories.models import EndUser, Fact, FactEvidence, Session, SessionQueue, Tenant
from memories.pipeline import review_items

# Said outright: a conversation may have confirmed such a fact, it does not rest on one.
STATED = ("api", "operator", "import")


def delete_session(
    *,
    session_id: uuid.UUID,
    tenant: Tenant | None,
    actor: Actor,
    now: datetime,
    expected_turns: int | None = None,
) -> None:
    """Delete a session with its turns and the facts that rest on them alone; an operator's word stays.

    An extraction in flight finds the session gone and writes nothing. Errors: NotFound, PersonRestricted for a key,
    PreconditionFailed when it has not the expected number of turns.
    """
    with transaction.atomic():
        session = _locked(session_id, tenant)
        if session.end_user.restricted_at and not actor.is_operator:
            raise PersonRestricted
        if expected_turns is not None and expected_turns != session.turn_count:
            raise PreconditionFailed
        counts = {"turns": session.turn_count, "facts": _delete_facts(session)}
        audit.record(
            actor=actor,
            verb="delete",
            target=session,
            object_id=session.pk,
            tenant=session.tenant,
            now=now,
            counts=counts,
        )
        session.delete()


def facts_of_session(session: Session) -> tuple[QuerySet[Fact], QuerySet[Fact]]:
    """The facts that would go with the session, and those that rest on it and would stay, as it is now."""
    here = _resting_on(session)
    alone = _alone(here, session)
    return alone, here.exclude(pk__in=alone.values("pk"))


def _locked(session_id: uuid.UUID, tenant: Tenant | None) -> Session:
    """Queue row and session, then the person: the order of debounce.hold(), so that neither waits for the other."""
    rows = SessionQueue.objects.select_for_update(of=("self", "session")).select_related("session__tenant")
    if tenant is not None:
        rows = rows.filter(session__tenant=tenant)
    queue = rows.filter(pk=session_id).first()
    if queue is None:
        raise NotFound
    session: Session = queue.session
    # No other session's extraction may find evidence for a fact between our look and its end.
    session.end_user = EndUser.objects.select_for_update(no_key=True).get(pk=session.end_user_id)
    return session


def _delete_facts(session: Session) -> int:
    """Delete the facts that rest on this session alone, and its quotes on all others; how many facts went."""
    here = _resting_on(session)
    _drop_quotes(here, _cited().filter(session=session))
    # Locked, an operator who made one binding meanwhile is seen.
    found = list(_alone(here, session).select_for_update(of=("self",)).values_list("pk", flat=True))
    review_items.part(found)
    Fact.objects.filter(pk__in=found).delete()
    return len(found)


def _cited() -> QuerySet[FactEvidence]:
    return FactEvidence.objects.filter(fact=OuterRef("pk"))


def _resting_on(session: Session) -> QuerySet[Fact]:
    return Fact.objects.filter(Exists(_cited().filter(session=session)), end_user=session.end_user_id)


def _alone(here: QuerySet[Fact], session: Session) -> QuerySet[Fact]:
    elsewhere = Exists(_cited().exclude(session=session))
    return here.filter(~elsewhere, binding=False).exclude(extractor__in=STATED)


def _drop_quotes(facts: QuerySet[Fact], evidence: QuerySet[FactEvidence]) -> None:
    facts.exclude(raw="").filter(Exists(evidence.filter(quote=OuterRef("raw")))).update(raw="")
