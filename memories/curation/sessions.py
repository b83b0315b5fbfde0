"""What people and keys may do to a whole conversation."""

import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memories import audit
from memories.audit import Actor
from memories.exceptions import NotFound, PersonRestricted
from memories.models import EndUser, Fact, FactEvidence, Session, SessionQueue, Tenant

# Said outright: a conversation may have confirmed such a fact, it does not rest on one.
STATED = ("api", "operator", "import")


def delete_session(*, session_id: uuid.UUID, tenant: Tenant | None, actor: Actor, now: datetime) -> None:
    """Delete a session with its turns and the facts that rest on them alone; an operator's word stays.

    An extraction in flight finds the session gone and writes nothing. Errors: NotFound, PersonRestricted for a key.
    """
    with transaction.atomic():
        session = _locked(session_id, tenant)
        if session.end_user.restricted_at and not actor.is_operator:
            raise PersonRestricted
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
    cited = FactEvidence.objects.filter(fact=OuterRef("pk"))
    here = Fact.objects.filter(Exists(cited.filter(session=session)), end_user=session.end_user_id)
    _drop_quotes(here, cited.filter(session=session))
    alone = here.filter(~Exists(cited.exclude(session=session)), binding=False).exclude(extractor__in=STATED)
    # Locked, an operator who made one binding meanwhile is seen.
    found = list(alone.select_for_update(of=("self",)).values_list("pk", flat=True))
    Fact.objects.filter(pk__in=found).delete()
    return len(found)


def _drop_quotes(facts: QuerySet[Fact], evidence: QuerySet[FactEvidence]) -> None:
    facts.exclude(raw="").filter(Exists(evidence.filter(quote=OuterRef("raw")))).update(raw="")
