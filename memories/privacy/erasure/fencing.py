"""What is at work on a person's memories is thrown away, and nothing new begins: the first step of an erasure.

Their generation is another one from here on, so an extraction, an embedding or a summary that was begun before finds
at its commit that it was about somebody who is gone.
"""

import uuid
from collections.abc import Sequence

from django.db.models import F
from django.db.models.functions import Coalesce, Now

from memories.models import EndUser, PrivacyCase, SessionQueue, WorkingMemory
from memories.privacy.stores.keeping import ids_behind

_NOT_DUE = {"due_at": None, "lease_token": None, "lease_until": None, "woken_at": None}


def lock_cases(people: Sequence[uuid.UUID], *, but: uuid.UUID) -> list[PrivacyCase]:
    """Their other cases; the own one is locked by its lease, before all of these."""
    rows = PrivacyCase.objects.select_for_update(of=("self",), no_key=True).filter(end_user__in=people)
    return list(rows.exclude(pk=but).order_by("pk"))


def lock_people(people: Sequence[uuid.UUID]) -> list[EndUser]:
    """Against new sessions and all else that refers to them, too; whoever begins one just now is waited for."""
    return list(EndUser.objects.select_for_update(of=("self",)).filter(pk__in=people).order_by("pk"))


def fence(person: EndUser, *, case_id: uuid.UUID) -> None:
    """Inside a patient transaction that holds the case. Sessions first, then the people, as everybody locks them."""
    people = ids_behind(person)
    lock_cases(people, but=case_id)
    _end_sessions_work(people)
    lock_people(people)
    end_exports(people, but=case_id)
    restricted = {"restricted_at": Coalesce("restricted_at", Now()), "generation": F("generation") + 1}
    EndUser.objects.filter(pk__in=people).update(**restricted)


def end_exports(people: Sequence[uuid.UUID], *, but: uuid.UUID) -> None:
    """An export of the person that is being made loses its lease, and with it what it would have written."""
    others = PrivacyCase.objects.filter(end_user__in=people, lease_token__isnull=False).exclude(pk=but)
    others.update(lease_token=None, lease_until=None)


def _end_sessions_work(people: Sequence[uuid.UUID]) -> None:
    """Wait for whoever posts to one of the sessions at this moment; after that none is due, and no lease holds."""
    queues = SessionQueue.objects.select_for_update(of=("self", "session")).filter(session__end_user__in=people)
    locked = [row.pk for row in queues.select_related("session").order_by("pk")]
    windows = WorkingMemory.objects.select_for_update(of=("self",)).filter(pk__in=locked)
    list(windows.order_by("pk").values_list("pk"))
    for model in (SessionQueue, WorkingMemory):
        model._default_manager.filter(pk__in=locked).update(**_NOT_DUE)
