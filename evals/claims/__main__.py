"""`python -m evals.claims`: learn the two lines, write them where the hub reads them, and tell how they do unseen."""

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import django
import numpy as np

if TYPE_CHECKING:
    from evals.claims.learning import LabelledText, Numbers


def main() -> None:
    from evals.claims import learning
    from memories.llm import embeddings
    from memories.text.injection import meaning

    document = {
        "model": embeddings.USE,
        "memories": _learned("memories", learning.sentences(), learning.THRESHOLD),
        "turns": _learned("turns", learning.sentences_of_turns(), learning.TURNS_THRESHOLD),
    }
    meaning.WEIGHTS.write_text(json.dumps(document, indent=None) + "\n", encoding="utf-8")


def _learned(name: str, texts: "Sequence[LabelledText]", threshold: float) -> dict[str, Any]:
    from evals.claims import learning
    from memories.llm import embeddings

    speaks = [one.speaks for one in texts]
    vectors = embeddings.embed([one.text for one in texts], model=embeddings.USE).astype(np.float64)
    weights = learning.fitted(vectors, speaks)
    own = vectors @ weights[:-1] + weights[-1]
    _print_figures(f"{name}, seen", own, speaks, threshold)
    numbered = [str(place % 8) for place in range(len(texts))]
    _print_figures(f"{name}, an eighth left out", learning.left_out(vectors, texts, numbered), speaks, threshold)
    sources = [one.source for one in texts]
    _print_figures(f"{name}, each source left out", learning.left_out(vectors, texts, sources), speaks, threshold)
    spoken = [place for place, one in enumerate(texts) if one.language]
    found = learning.left_out(vectors, texts, [one.language or "never" for one in texts])
    _print_figures(f"{name}, each language left out", found[spoken], [speaks[place] for place in spoken], threshold)
    return {
        "threshold": threshold,
        "bias": round(float(weights[-1]), 4),
        "weights": [round(float(weight), 4) for weight in weights[:-1]],
    }


def _print_figures(name: str, found: "Numbers", speaks: list[bool], threshold: float) -> None:
    from evals.claims import learning

    is_attack = np.array(speaks)
    flagged = found > threshold
    sys.stdout.write(
        f"{name}: {is_attack.sum()} attacks, {flagged[is_attack].mean():.1%} flagged;"
        f" {(~is_attack).sum()} others, {flagged[~is_attack].mean():.1%} held;"
        f" area {learning.area(found, speaks):.3f}\n"
    )


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    main()
