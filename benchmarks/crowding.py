"""People with thousands of turns and facts: texts repeat with a number, vectors are random, as near as sentences are.

What a search costs depends on how many there are, and on how near each other; the question's own vector is the model's.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
from django.db import connection, connections
from numpy.typing import NDArray

from benchmarks.seeding import CATEGORIES, SAYINGS
from memories.capture import session_rows
from memories.embedding import spaces
from memories.models import EmbeddingSpace, EndUser, Fact, FactVector, Session, Tenant, Turn, TurnVector
from memories.scoring import language, terms
from tests import factories
from tests.factories import NOW

TURNS_EACH = 50
_VECTOR = ("space_id", "tenant_id", "end_user_id", "language", "vector")
_TYPES = ("int8", "uuid", "uuid", "text", "bytea")
# How fast the spread of vectors of sentences falls from their first column to their last, and the length of their mean.
# Then the cosines of pairs, without the mean, have a standard deviation of 0.10, as those of the built-in model.
_FALLS, _MEAN = -0.38, 0.3
# From the place of a session's first turn, and how many it has: their texts and vectors.
Draw = Callable[[int, int], tuple[Sequence[str], NDArray[Any]]]


def person(tenant: Tenant, name: str, *, turns: int, facts: int = 0, draw: Draw | None = None) -> None:
    """A person with so many turns (in sessions of 50) and facts, all embedded; a second call changes nothing.

    `draw`: what the turns say, where it is to be something else than usual.
    """
    if not EndUser.objects.of(tenant).filter(external_id=name).exists():
        one = factories.end_user(tenant, external_id=name)
        space = spaces.serving() or spaces.first_space()
        dice = np.random.default_rng(turns + facts)
        drawn = draw or (lambda first, count: (_texts(first, count), _random(dice, count, space.dimensions)))
        for first in range(0, turns, TURNS_EACH):
            _talk(one, space, first, *drawn(first, min(TURNS_EACH, turns - first)))
        _facts(one, space, dice, facts)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    # The clients are forked: they must not share a connection.
    connections.close_all()


def _talk(one: EndUser, space: EmbeddingSpace, first: int, texts: Sequence[str], vectors: NDArray[Any]) -> None:
    count = len(texts)
    session = Session.objects.create(
        tenant=one.tenant,
        end_user=one,
        external_id=f"talk-{first}",
        turn_count=count,
        embedded_number=count,
        created_at=NOW,
        last_turn_at=NOW,
    )
    turns = [_turn(session, text, number) for number, text in enumerate(texts, start=1)]
    session_rows.insert_turns(turns)
    head = [(turn.pk, session.pk, turn.number) for turn in turns]
    names, types = ("turn_id", "session_id", "number"), ("uuid", "uuid", "int4")
    _write(TurnVector, names, types, head, texts, vectors, one, space)


def _turn(session: Session, text: str, number: int) -> Turn:
    return Turn(
        tenant_id=session.tenant_id,
        end_user_id=session.end_user_id,
        session=session,
        number=number,
        role=("assistant", "user")[number % 2],
        content=text,
        token_count=20,
        terms=terms.pack(text),
        # The embedder judges what it embeds and is not the user's.
        flagged=None if number % 2 else False,
        created_at=NOW + timedelta(seconds=number),
    )


def _facts(one: EndUser, space: EmbeddingSpace, dice: np.random.Generator, count: int) -> None:
    if not count:
        return
    model = factories.fact(one, "Has a model of a ship")
    values = {field.attname: getattr(model, field.attname) for field in Fact._meta.concrete_fields}
    facts = []
    for place, text in enumerate(_texts(0, count)):
        fact = Fact(**{**values, "id": uuid.uuid4(), "category": CATEGORIES[place % len(CATEGORIES)]})
        fact.set_text(text)
        fact.embedded_hash = fact.content_hash
        facts.append(fact)
    Fact.objects.bulk_create(facts, batch_size=500)
    head = [(fact.pk, bytes(fact.content_hash)) for fact in facts]
    vectors = _random(dice, count, space.dimensions)
    _write(FactVector, ("fact_id", "text_digest"), ("uuid", "bytea"), head, _texts(0, count), vectors, one, space)


def _write(
    table: type[TurnVector | FactVector],
    names: Sequence[str],
    types: Sequence[str],
    head: Iterable[tuple[Any, ...]],
    texts: Sequence[str],
    vectors: NDArray[Any],
    one: EndUser,
    space: EmbeddingSpace,
) -> None:
    """COPY in PostgreSQL's binary format: as text, thousands of vectors take minutes."""
    columns = ", ".join((*names, *_VECTOR))
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table._meta.db_table} ({columns}) FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.set_types((*types, *_TYPES))
        for of, text, vector in zip(head, texts, _sent(vectors), strict=True):
            copy.write_row((*of, space.pk, one.tenant_id, one.pk, language.of(text), vector))


def _random(dice: np.random.Generator, count: int, dimensions: int) -> NDArray[Any]:
    turned, mean = _space(dimensions)
    return dice.standard_normal((count, dimensions)) @ turned + mean


def _sent(vectors: NDArray[Any]) -> list[bytes]:
    """As unit vectors, as halfvec_recv() reads them: two shorts (dimensions, 0), then the halves."""
    units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(">f2")
    header = np.array([vectors.shape[1], 0], ">i2").tobytes()
    return [header + unit.tobytes() for unit in units]


@cache
def _space(dimensions: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What spreads and turns normal numbers, whose vectors then are about 1 long, and the mean of these."""
    dice = np.random.default_rng(dimensions)
    spread = np.arange(1, dimensions + 1) ** _FALLS
    turned, _ = np.linalg.qr(dice.standard_normal((dimensions, dimensions)))
    mean = dice.standard_normal(dimensions)
    lengths = np.linalg.norm(spread), np.linalg.norm(mean)
    return turned * (spread / lengths[0] * np.sqrt(1 - _MEAN**2))[:, None], mean / lengths[1] * _MEAN


def _texts(first: int, count: int) -> list[str]:
    return [f"{SAYINGS[place % len(SAYINGS)]} ({place})" for place in range(first, first + count)]
