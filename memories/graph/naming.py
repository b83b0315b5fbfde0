"""What entities and predicates are called, and which entity a name means."""

import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from memories.db import binary_rows
from memories.models import EndUser, GraphEntity
from memories.models.folding import fold, text_digest

# The person themself. Their ids and their name mean the same.
SELF = "user"
_APOSTROPHES = str.maketrans("", "", "'’")
# Who speaks of themself means the person.
_FIRST_PERSON = ("i", "me", "my", "mine", "myself", "我")
# A text names what has at most so many words, or characters where words have no spaces between them, in its beginning.
_LONGEST_NAME, _MOST_WORDS = 6, 200
_LONGEST_RUN, _MOST_CHARACTERS = 8, 300
_UNSPACED = r"\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_PIECES = re.compile(rf"[{_UNSPACED}]+|[^\s{_UNSPACED}]+")
_RUN = re.compile(rf"[{_UNSPACED}]+")
# What stands around a name, and behind it, and is no part of it.
_AROUND = ".,;:!?()[]{}<>\"'“”‘’„«»…。，、；：！？（）《》「」"
_ENDING = re.compile(r"['’](?:s|m|ve|re|ll|d)$", re.IGNORECASE)

# By hand, because each read of a graph begins with them.
_OWN = """
    SELECT external_id, display_name FROM memories_enduser
    WHERE tenant_id = %(tenant)s AND (id = %(person)s OR merged_into_id = %(person)s)
"""
_NAMES = """
    WITH found AS (
        SELECT DISTINCT coalesce(merged_into_id, id) AS id FROM memories_graphentity
        WHERE tenant_id = %(tenant)s AND end_user_id = %(person)s AND digest = ANY(%(digests)s::bytea[])
    )
    SELECT id FROM found
    UNION ALL SELECT alias.id FROM memories_graphentity alias JOIN found ON alias.merged_into_id = found.id
    WHERE alias.tenant_id = %(tenant)s
"""


def predicate_of(text: str) -> str:
    """`Works at` → `works_at`."""
    return "_".join(fold(text).split())


def digest_of(name: str) -> bytes:
    """What an entity is found by: neither case nor apostrophes count, and `_` is a space."""
    return text_digest(name.translate(_APOSTROPHES).replace("_", " "))


def is_self(name: str) -> bool:
    """Whether who speaks of themself by this name means the person."""
    return digest_of(name) in {digest_of(word) for word in (SELF, *_FIRST_PERSON)}


def is_person(entity: GraphEntity) -> bool:
    """Whether it is the person themself."""
    return bytes(entity.digest) == digest_of(SELF)


def own_name(person: EndUser, name: str) -> str:
    """The name, or SELF if it is an id of the person's or what they are called."""
    return SELF if digest_of(name) in _own_digests(person) else " ".join(name.split())


def caller(person: EndUser) -> Callable[[str], str]:
    """own_name() for many names of what somebody said about themself, with one look at what the person is called."""
    own = _own_digests(person)
    return lambda name: SELF if is_self(name) or digest_of(name) in own else " ".join(name.split())


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


def named_in(person: EndUser, text: str) -> list[uuid.UUID]:
    """Ids of the person's entities that the text names, and of all their names."""
    digests = {digest_of(name) for name in _possible_names(text)}
    if digests & (_own_digests(person) | {digest_of(word) for word in _FIRST_PERSON}):
        digests.add(digest_of(SELF))
    return _with_other_names(person, digests)


def called(person: EndUser, name: str) -> list[uuid.UUID]:
    """Ids of the person's entity of this name, and of all its names; none without such an entity."""
    return _with_other_names(person, {digest_of(own_name(person, name))})


def names_of(entity: GraphEntity) -> list[uuid.UUID]:
    """Ids of the entity and of its other names."""
    return [entity.pk, *GraphEntity.objects.filter(merged_into=entity).values_list("pk", flat=True)]


def delete_unused(person_id: uuid.UUID, among: Iterable[uuid.UUID]) -> None:
    """Delete those of the entities that no triple of the person names any more, and nothing is another name of."""
    rows = GraphEntity.objects.filter(end_user=person_id, pk__in=list(among))
    rows.filter(outgoing=None, incoming=None, aliases=None).delete()


def _own_digests(person: EndUser) -> set[bytes]:
    """Of the person's ids, and of what they are called."""
    rows = binary_rows.fetched(_OWN, {"tenant": person.tenant_id, "person": person.pk})
    return {digest_of(one) for row in rows for one in row if one.strip()}


def _with_other_names(person: EndUser, digests: Iterable[bytes]) -> list[uuid.UUID]:
    given = {"tenant": person.tenant_id, "person": person.pk, "digests": list(digests)}
    return [pk for (pk,) in binary_rows.fetched(_NAMES, given)]


def _possible_names(text: str) -> Iterator[str]:
    """Whatever in the text could be a name: its words, and neighbours among them."""
    for words in (text.split()[:_MOST_WORDS], _PIECES.findall(text)[:_MOST_WORDS] if _RUN.search(text) else []):
        for start in range(len(words)):
            for end in range(start + 1, min(start + _LONGEST_NAME, len(words)) + 1):
                name = " ".join(words[start:end])
                bare = name.strip(_AROUND)
                yield from (name, bare, _ENDING.sub("", bare))
    for run in _RUN.findall(text[:_MOST_CHARACTERS]):
        for start in range(len(run)):
            yield from (run[start:end] for end in range(start + 1, min(start + _LONGEST_RUN, len(run)) + 1))
