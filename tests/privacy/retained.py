"""What the tests of retention share: conversations that jobs are done with, and that grew old."""

import itertools
from datetime import datetime, timedelta
from typing import Any

from django.core.management import call_command
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from memories import invariants
from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.models import (
    EndUser,
    Episode,
    ExtractionRun,
    RetentionPass,
    Session,
    SessionQueue,
    Tenant,
    Turn,
    WorkingMemory,
)
from memories.privacy import retention
from tests import factories
from tests.model import Model, candidate

DAY = timedelta(days=1)
_serial = itertools.count(1)


def talk(model: Model, person: EndUser, rounds: int = 4, **over: Any) -> Session:
    """A session of so many rounds that was extracted and summed up: a fact of its first turn, an episode."""
    name = over.setdefault("session_id", f"talk-{next(_serial)}")
    said = [(role, f"{role} says {number}") for number in range(1, rounds + 1) for role in ("user", "assistant")]
    said[0] = ("user", f"user says 1, and lives in Leiden, of {name}")
    session = factories.session(person, said, **over)
    quote = candidate(f"Says 1, lives in Leiden {name}", evidence=[1], quote="user says 1")
    settle(model, session, quote)
    return session


def settle(model: Model, session: Session, *facts: Any) -> None:
    """Let the jobs do what they have to, as after half an hour of silence."""
    model.say(*facts)
    SessionQueue.objects.filter(pk=session.pk).update(due_at=Now() - timedelta(seconds=1))
    Session.objects.filter(pk=session.pk).update(last_turn_at=Now() - timedelta(minutes=31))
    WorkingMemory.objects.filter(pk=session.pk).update(due_at=Now() - timedelta(seconds=1))
    call_command("consolidate", "--tenant", session.tenant.slug, verbosity=0)
    WorkingMemory.objects.filter(pk=session.pk, due_at__gt=Now()).update(due_at=Now() - timedelta(seconds=1))
    call_command("consolidate", "--tenant", session.tenant.slug, verbosity=0)


def post(session: Session, *texts: str) -> None:
    ingest.store_turns(
        tenant=session.tenant,
        user_id=session.end_user.external_id,
        session_id=session.external_id,
        agent_id=session.agent_id,
        messages=[PostedMessage(role="user", content=text) for text in texts],
    )


def age(session: Session, days: float, *, up_to: int | None = None) -> None:
    """As if the session, or its turns up to this number, were so much older."""
    by = timedelta(days=days)
    turns = Turn.objects.filter(session=session)
    (turns if up_to is None else turns.filter(number__lte=up_to)).update(created_at=F("created_at") - by)
    moments: dict[str, Any] = {"created_at": F("created_at") - by}
    if up_to is None:
        moments["last_turn_at"] = F("last_turn_at") - by
        Episode.objects.filter(session=session).update(started_at=F("started_at") - by, ended_at=F("ended_at") - by)
        ExtractionRun.objects.filter(session=session).update(started_at=F("started_at") - by)
    Session.objects.filter(pk=session.pk).update(**moments)


def retain(tenant: Tenant, now: datetime | None = None) -> dict[str, int]:
    tenant.refresh_from_db()
    done = retention.retain(tenant=tenant, now=now or timezone.now())
    assert done.finished_at
    return {name: count for name, count in done.counts.items() if count}


def numbers_of(session: Session) -> list[int]:
    return list(Turn.objects.filter(session=session).order_by("number").values_list("number", flat=True))


def sound() -> None:
    assert invariants.check() == []


def passes() -> list[RetentionPass]:
    return list(RetentionPass.objects.order_by("started_at", "id"))
