"""The facts that a viewer may see, in statements written by hand: an agent waits for them before every reply.

Their conditions are those of models/memories/visibility.py.
"""

import functools
import uuid
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Q

from memories import conf
from memories.db import binary_rows
from memories.db.row_versions import version_of_row, version_of_vector
from memories.models import EmbeddingSpace, EndUser, Fact
from memories.models.hand_written import condition, parameter
from memories.models.memories import visibility
from memories.models.memories.visibility import Viewer
from memories.retrieval import fact_index
from memories.retrieval.cache import Source, indexes
from memories.retrieval.fact_index import FactFeatures, FactIndex
from memories.retrieval.memory_index import today

# Up to so many facts come with their texts. Of more, a second statement reads the texts of those that are shown.
FEW = 100


class FactText(NamedTuple):
    """What a line of a context shows of a fact."""

    id: uuid.UUID
    category: str
    confidence: float
    content: str
    source_error: str


class FactWithText(NamedTuple):
    """A fact with its text and its features, but for the terms."""

    fact: FactFeatures
    text: FactText


class VisibleFact(NamedTuple):
    """What orders a fact without a query. `row` is for fact_of_row(), where there are at most FEW."""

    first_observed_at: datetime
    id: uuid.UUID
    category: str
    trust: str
    confidence: float
    binding: bool
    pinned: bool
    locked: bool
    row: Sequence[Any] | None

    @property
    def protected(self) -> bool:
        """As `Fact.protected`."""
        return self.binding or self.pinned or self.locked


# Columns of a fact with its text: the features without their last, the terms, then the rest of FactText.
_FEATURES_SHOWN = FactFeatures._fields[:-1]
_COLUMNS = (*_FEATURES_SHOWN, *(name for name in FactText._fields if name not in _FEATURES_SHOWN))
_text_of = itemgetter(*(_COLUMNS.index(name) for name in FactText._fields))
_ORDERED_BY = VisibleFact._fields[:-1]
_order_of = itemgetter(*(_COLUMNS.index(name) for name in _ORDERED_BY))
_TENANT, _PERSON = parameter("tenant"), parameter("person")


# The person's own facts, and public ones. _written() puts the conditions in.
_SERVED = f"""
    SELECT NAMES FROM memories_fact WHERE {condition(Fact, visibility.own(_TENANT, _PERSON))} AND SHOWN AND LATEST
    UNION ALL
    SELECT NAMES FROM memories_fact WHERE {condition(Fact, visibility.public_beside(_TENANT, _PERSON))} AND SHOWN
"""  # noqa: S608  (columns of our own models)
_NEWEST_FIRST = "ORDER BY first_observed_at DESC, id DESC"
_FEATURES = _SERVED.replace("NAMES", ", ".join(FactFeatures._fields)) + _NEWEST_FIRST
_VERSIONS = f"bit_xor({version_of_vector()})"
_VERSIONED = f"id, end_user_id, {version_of_row((*_COLUMNS, 'terms'))} AS version"
_STAMP = f"""
    WITH served AS MATERIALIZED ({_SERVED.replace("NAMES", _VERSIONED)})
    SELECT (SELECT count(*) FROM served), (SELECT bit_xor(version) FROM served), (
        SELECT {_VERSIONS} FROM memories_factvector
        WHERE tenant_id = %(tenant)s AND space_id = %(space)s AND end_user_id = %(person)s
    ), (
        SELECT {_VERSIONS} FROM memories_factvector
        WHERE tenant_id = %(tenant)s AND space_id = %(space)s
            AND fact_id IN (SELECT id FROM served WHERE end_user_id <> %(person)s)
    )
"""  # noqa: S608  (columns of our own models)
_WITH_TEXT = f"""
    SELECT {", ".join(name if name in _ORDERED_BY else f"CASE WHEN few THEN {name} END" for name in _COLUMNS)}
    FROM (
        SELECT *, count(*) OVER () <= %(few)s AS few FROM ({_SERVED.replace("NAMES", ", ".join(_COLUMNS))}) each
    ) counted
    {_NEWEST_FIRST}
"""  # noqa: S608  (columns of our own models)
_TEXTS = f"""
    SELECT {", ".join(_COLUMNS)} FROM memories_fact
    WHERE {condition(Fact, visibility.own_or_public(_TENANT, _PERSON))} AND id = ANY(%(ids)s)
"""  # noqa: S608  (columns of our own models)

# Of each fact: its features, as objects of Python.
_WEIGHT = 1_200


@dataclass(frozen=True, eq=False)
class _Facts(Source[Any, FactIndex]):
    """The facts that a viewer may see, by a tenant's rules, as they are at a moment."""

    person: EndUser
    viewer: Viewer
    space: EmbeddingSpace | None
    rules: conf.Rules
    now: datetime
    kind = "facts"

    @property
    def key(self) -> tuple[Hashable, ...]:
        viewer = self.viewer._replace(roles=tuple(self.viewer.roles))
        return (self.person.pk, *viewer, self.space.pk if self.space else None)

    @property
    def day(self) -> datetime:
        return today(self.viewer.as_of or self.now)

    def stamp(self, _known: Any) -> Any:
        return *self._read(_STAMP, space=self.space.pk if self.space else None), self.rules, self.day

    def make(self, stamp: Any, _kept: FactIndex | None, _seconds: float | None) -> FactIndex:
        facts = [FactFeatures(*row) for row in self._read(_FEATURES)]
        vectors = stamp[0][2:]
        return fact_index.build(self.person, facts, self.space, stamp=vectors, rules=self.rules, day=self.day)

    def weight(self, index: FactIndex) -> int:
        return _WEIGHT * (1 + len(index))

    def _read(self, statement: str, **more: Any) -> list[tuple[Any, ...]]:
        return _read(statement, self.person, self.viewer, rules=self.rules, now=self.now, **more)


def served(person: EndUser, viewer: Viewer, *, rules: conf.Rules, now: datetime) -> list[VisibleFact]:
    """All facts that the viewer may see, newest first: the person's own, and public ones of the tenant."""
    rows = _read(_WITH_TEXT, person, viewer, rules=rules, now=now)
    few = len(rows) <= FEW
    return [VisibleFact._make((*_order_of(row), row if few else None)) for row in rows]


def open_index(
    person: EndUser, viewer: Viewer, space: EmbeddingSpace | None, *, rules: conf.Rules, now: datetime
) -> FactIndex:
    """The same facts as an index, cached while none of them and no vector changes."""
    source = _Facts(person, viewer, space, rules, now)
    # Nobody asks for the same moment of the past again and again.
    return source.make(source.stamp(None), None, None) if viewer.as_of else indexes.open(source)


def with_texts(person: EndUser, ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, FactWithText]:
    """Facts that were served before, as they are stored now, without those that were deleted meanwhile."""
    parameters = {"tenant": person.tenant_id, "person": person.pk, "ids": list(ids)}
    facts = [fact_of_row(row) for row in binary_rows.fetched(_TEXTS, parameters)] if ids else []
    return {one.fact.id: one for one in facts}


def fact_of_row(row: Sequence[Any]) -> FactWithText:
    """Made for the rows that are shown only, which are few of those that are read."""
    return FactWithText(FactFeatures._make((*row[: len(_FEATURES_SHOWN)], None)), FactText._make(_text_of(row)))


@functools.cache
def _written(statement: str, *, of_agent: bool, then: bool) -> str:
    """A statement with its conditions: for an agent or for none, as of now or of a moment of the past."""
    viewer = Viewer(parameter("agent"), parameter("roles"), parameter("as_of") if then else None)
    conditions = visibility.served_facts(
        viewer, person_id=_PERSON, least_confidence=parameter("least"), now=parameter("now")
    )
    shown = Q(*conditions.values())
    own = Fact.objects.filter(visibility.own(_TENANT, _PERSON), shown)
    latest = visibility.latest(parameter("agent"), own) if of_agent else Q()
    return statement.replace("SHOWN", condition(Fact, shown)).replace("LATEST", condition(Fact, latest))


def _read(
    statement: str, person: EndUser, viewer: Viewer, *, rules: conf.Rules, now: datetime, **more: Any
) -> list[tuple[Any, ...]]:
    parameters = {
        "tenant": person.tenant_id,
        "person": person.pk,
        "now": now,
        "least": rules.served_confidence,
        "agent": viewer.agent_id,
        "roles": list(viewer.roles),
        "few": FEW,
        "as_of": viewer.as_of,
        **more,
    }
    written = _written(statement, of_agent=bool(viewer.agent_id), then=viewer.as_of is not None)
    return binary_rows.fetched(written, parameters)
