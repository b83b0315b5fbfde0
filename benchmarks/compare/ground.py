"""The ground on which all are measured: people with so many rows beside others, and questions about them.

Rows and questions are sentences of these docs (talk.py). The rows are made in the hub's database and read from there,
so that everybody has the very numbers that the hub has.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks import talk

TOP, AT_ONCE = 20, 64
# Others, beside whom each person is asked about.
OTHERS, ROWS_OF_OTHERS = 200, 50
Floats = NDArray[np.float32]
T = TypeVar("T")
_NUMBER = re.compile(r"\((\d+)\)$")
_ROWS = """
    SELECT p.external_id, t.id::text, t.content, halfvec_send(v.vector)
    FROM memories_turn t JOIN memories_turnvector v ON v.turn_id = t.id JOIN memories_enduser p ON p.id = t.end_user_id
    WHERE t.tenant_id = %s
"""


@dataclass(frozen=True)
class Ground:
    """All rows in the order of their numbers, and the questions; vectors as float32[n, dimensions].

    `folder`: where the peers read the same: rows.jsonl (person and text), rows.f32, and known.json and known.f32 with
    the texts that are no rows.
    """

    folder: Path
    people: list[str]
    ids: list[str]
    texts: list[str]
    vectors: Floats
    questions: list[str]
    asked: Floats
    # Texts and their vectors that have nothing to do with the rows, of the shared sets.
    others: list[str] = field(default_factory=list)
    of_others: Floats | None = None

    def nearest(self, person: str, question: int) -> list[str]:
        """The texts of the rows of that person with the largest cosines, computed from all of them."""
        places = np.array([place for place, whose in enumerate(self.people) if whose == person])
        own, vector = self.vectors[places], self.asked[question]
        cosines = own @ vector / np.linalg.norm(own, axis=1)
        return [self.texts[place] for place in places[np.argsort(-cosines, kind="stable")[:TOP]]]

    def has(self, person: str, rows: int) -> bool:
        """Whether all rows of that person are among the first so many; a person without any has them."""
        return person not in self.people[rows:]


def make(folder: Path, sizes: Sequence[int], passages: Sequence[str] = (), questions: Sequence[str] = ()) -> Ground:
    """People of these sizes and the others, in the hub; and the files for everybody else, in which these texts have
    vectors, too."""
    from django.db import connections

    from benchmarks import crowding
    from memories.models import Tenant

    docs = talk.of_the_docs()
    tenant = Tenant.objects.get(slug="bench")
    begun = 0
    for name, count in [*((f"other-{at}", ROWS_OF_OTHERS) for at in range(OTHERS)), *((name_of(n), n) for n in sizes)]:
        crowding.person(tenant, name, turns=count, draw=docs.drawn(begun))
        begun += count
    found = replace(_read(tenant, folder, list(docs.questions)), **_embedded(passages, questions))
    write(found)
    # The clients are forked: they must not share a connection.
    connections.close_all()
    return found


def name_of(rows: int) -> str:
    return f"person-{rows}"


def _read(tenant: Any, folder: Path, questions: Sequence[str]) -> Ground:
    from memories.db import binary_rows
    from memories.retrieval import prepared_query

    rows = sorted(binary_rows.fetched(_ROWS, [tenant.pk]), key=lambda row: number_of(row[2]))
    vectors = binary_rows.vectors([row[3] for row in rows])
    prepared = [prepared_query.prepare(question).queries for question in questions]
    whole = [(text, found[0].vector) for text, found in zip(questions, prepared, strict=True) if len(found) == 1]
    asked = np.array([vector for _, vector in whole], np.float32)
    people, ids, texts = ([row[column] for row in rows] for column in range(3))
    return Ground(folder, people, ids, texts, vectors, [text for text, _ in whole], asked)


def _embedded(passages: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    """Their vectors as the hub's own model has them."""
    from memories.embedding import spaces
    from memories.llm import embeddings

    if not (passages or questions):
        return {}
    space = spaces.serving()
    assert space
    kinds: dict[embeddings.Kind, Sequence[str]] = {"passage": passages, "query": questions}
    found = [
        embeddings.embed(some, kind=kind, model=space.model)
        for kind, texts in kinds.items()
        for some in in_parts(texts, AT_ONCE)
    ]
    return {"others": [*passages, *questions], "of_others": np.concatenate(found)}


def write(ground: Ground) -> None:
    """The files of its folder."""
    lines = (json.dumps([person, text]) for person, text in zip(ground.people, ground.texts, strict=True))
    (ground.folder / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (ground.folder / "known.json").write_text(json.dumps([*ground.questions, *ground.others]), encoding="utf-8")
    ground.vectors.astype("<f4").tofile(ground.folder / "rows.f32")
    known = [ground.asked] if ground.of_others is None else [ground.asked, ground.of_others]
    np.concatenate(known).astype("<f4").tofile(ground.folder / "known.f32")


def in_parts(all_of_them: Sequence[T], most: int) -> list[Sequence[T]]:
    """In their order, at most so many in each."""
    return [all_of_them[first : first + most] for first in range(0, len(all_of_them), most)]


def number_of(text: str) -> int:
    """That of the row with this text."""
    found = _NUMBER.search(text)
    assert found, text
    return int(found[1])
