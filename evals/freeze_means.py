"""`python -m evals.freeze_means`: makes memories/scoring/data/means.npz anew for the local embeddings."""

from functools import partial

from evals.embedding import Embedding
from memories.llm.embeddings import E5, USE
from memories.scoring import means


def main() -> None:
    """Statements as passages and questions as queries: e5 has a form of its own for each."""
    for model in (USE, E5):
        embedding = Embedding(model)
        means.freeze(model, embedding.of, partial(embedding.of, kind="query"))


if __name__ == "__main__":
    main()
