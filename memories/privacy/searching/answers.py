"""What the hub itself still tells of somebody: asked as the API asks, by the ids that the application knows."""

from collections.abc import Iterator
from datetime import datetime

from memories.models import EndUser, Episode, ExtractionRun, Fact, ProfileSection, Session, Tenant, Turn
from memories.pipeline import context, retrieval
from memories.privacy.searching.needles import Needles

# Whoever is known is found by any words at all; those of the person are sent to no embedding.
QUESTION = "memory"
_Listed = type[Session | Fact | Episode | ExtractionRun | Turn]
_LISTS: dict[str, _Listed] = {
    "sessions": Session,
    "facts": Fact,
    "episodes": Episode,
    "extractions": ExtractionRun,
    "turns": Turn,
}
SAMPLE = 3000


def told(needles: Needles, tenant: Tenant, now: datetime) -> dict[str, int]:
    """`api:…` → how much is told; nothing of a person who came under the id again, whose rows are looked at as rows."""
    found = {f"api:{name}": _listed(model, needles, tenant) for name, model in _LISTS.items()}
    for name in needles.names:
        if not EndUser.objects.called(tenant, name).exclude(pk__in=needles.ids).exists():
            for place, count in _of(name, tenant, now):
                found[place] = found.get(place, 0) + count
    return {place: count for place, count in found.items() if count}


def _listed(model: _Listed, needles: Needles, tenant: Tenant) -> int:
    return model._default_manager.filter(tenant=tenant, pk__in=needles.ids[:SAMPLE]).count()


def _of(name: str, tenant: Tenant, now: datetime) -> Iterator[tuple[str, int]]:
    people = EndUser.objects.called(tenant, name)
    yield "api:users", people.count()
    yield "api:profile", ProfileSection.objects.filter(end_user__in=people).count()
    asked = context.ContextRequest(user_id=name, include=frozenset(context.INCLUDABLE))
    built = context.build(tenant=tenant, request=asked, now=now, noted=False)
    yield "api:context", len(built.items) + len(built.messages or ()) + bool(built.memory)
    kinds = retrieval.KINDS
    search = retrieval.Search(user_id=name, query=QUESTION, kinds=kinds)
    yield "api:search", len(retrieval.search(tenant=tenant, search=search, now=now, noted=False).results)
