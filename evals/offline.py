"""The project's own scoring over the evaluation sets, in memory: no database, no server."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from evals import metrics
from evals.corpora import Corpus
from evals.embedding import Embedding
from memories.scoring import language, terms
from memories.scoring.constants import DEFAULT, Constants
from memories.scoring.ranking import Query, Units, best_first, query_texts, score, sessions

LIMIT = 50


@dataclass
class Measured:
    """Rows of one set with their categories, and how long each query took, in milliseconds."""

    rows: list[tuple[str, metrics.Row]] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    most_units: int = 0

    def summary(self) -> dict[str, object]:
        waits = np.array(self.milliseconds or [0.0])
        p50, p95 = (round(float(one), 2) for one in np.percentile(waits, [50, 95]))
        return {
            "figures": metrics.by_category(self.rows),
            "ms": {"p50": p50, "p95": p95, "most_units": self.most_units},
        }


def units_of(corpus: Corpus, embedding: Embedding, constants: Constants = DEFAULT) -> Units:
    """The store of a corpus, prepared."""
    texts = [unit.text for unit in corpus.units]
    order = {name: place for place, name in enumerate(dict.fromkeys(unit.session for unit in corpus.units))}
    return Units.of(
        sessions=np.array([order[unit.session] for unit in corpus.units], np.int32),
        packed=[terms.pack(text) for text in texts],
        vectors=embedding.of(texts),
        languages=[language.of(text) for text in texts],
        blocks=embedding.blocks,
        times=np.array([unit.at.timestamp() for unit in corpus.units]),
        constants=constants,
    )


def ranked(corpus: Corpus, units: Units, queries: list[Query]) -> list[str]:
    """Ids of the best units or sessions, best first."""
    total = score(units, queries).total
    if corpus.kind == "turn":
        return [corpus.units[place].id for place in best_first(total, LIMIT)]
    each = sessions(total, units.layout.session, units.constants)
    return [corpus.units[each.best[place]].session for place in best_first(total[each.best] + each.others, LIMIT)]


def measure(corpora: Iterable[Corpus], embedding: Embedding, constants: Constants = DEFAULT) -> Measured:
    """Ask every question that has reachable gold."""
    measured = Measured()
    for corpus in corpora:
        units = units_of(corpus, embedding, constants)
        measured.most_units = max(measured.most_units, len(units))
        asked = [question for question in corpus.questions if question.gold]
        texts = [query_texts(question.text) for question in asked]
        vectors = iter(embedding.of([one for each in texts for one in each], "query"))
        for question, each in zip(asked, texts, strict=True):
            queries = [Query.of(one, next(vectors)) for one in each]
            start = time.perf_counter()
            found = ranked(corpus, units, queries)
            measured.milliseconds.append(1000 * (time.perf_counter() - start))
            measured.rows.append((question.category, metrics.of_ranking(found, question.gold)))
    return measured
