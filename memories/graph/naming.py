"""What entities and predicates are called, and which entity a name means."""

import uuid
from collections.abc import Iterable
from datetime import datetime

from memories.models import EndUser, GraphEntity
from memories.models.folding import fold, text_digest

# The person themself. Their ids and their name mean the same.
SELF = "user"
_APOSTROPHES = str.maketrans("", "", "'’")


def predicate_of(text: str) -> str:
    """`Works at` → `works_at`."""
    return "_".join(fold(text).split())


def digest_of(name: str) -> bytes:
    """What an entity is found by: neither case nor apostrophes count, and `_` is a space."""
    return text_digest(name.translate(_APOSTROPHES).replace("_", " "))


def own_name(person: EndUser, name: str) -> str:
    """The name, or SELF if it is an id of the person's or what they are called."""
    rows = EndUser.objects.behind(person).values_list("external_id", "display_name")
    theirs = {digest_of(one) for row in rows for one in row if one.strip()}
    return SELF if digest_of(name) in theirs else " ".join(name.split())


def ensure(
    tenant_id: uuid.UUID, person_id: uuid.UUID, names: Iterable[str], *, now: datetime
) -> dict[bytes, GraphEntity]:
    """The person's entities with these names by their digests, each made if it is missing; the person is locked."""
    wanted = {digest_of(name): name for name in names}
    entities = GraphEntity.objects.filter(tenant=tenant_id, end_user=person_id, digest__in=wanted)
    found = {bytes(entity.digest): entity for entity in entities}
    missing = [
        GraphEntity(tenant_id=tenant_id, end_user_id=person_id, name=name, digest=digest, created_at=now)
        for digest, name in wanted.items()
        if digest not in found
    ]
    if missing:
        GraphEntity.objects.bulk_create(missing, 500)
        found |= {bytes(entity.digest): entity for entity in missing}
    return found


def find(person: EndUser, name: str) -> GraphEntity | None:
    """The person's entity with this name; of another name of it the entity itself."""
    entities = GraphEntity.objects.filter(tenant=person.tenant_id, end_user=person).select_related("merged_into")
    found = entities.filter(digest=digest_of(own_name(person, name))).first()
    return (found.merged_into or found) if found else None


def names_of(entity: GraphEntity) -> list[uuid.UUID]:
    """Ids of the entity and of its other names."""
    return [entity.pk, *GraphEntity.objects.filter(merged_into=entity).values_list("pk", flat=True)]


def delete_unused(person_id: uuid.UUID, among: Iterable[uuid.UUID]) -> None:
    """Delete those of the entities that no triple of the person names any more, and nothing is another name of."""
    rows = GraphEntity.objects.filter(end_user=person_id, pk__in=list(among))
    rows.filter(outgoing=None, incoming=None, aliases=None).delete()
