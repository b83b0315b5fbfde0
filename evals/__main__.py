"""`python -m evals --data FOLDER`: retrieval measured in memory, then through the API of a hub started for it.

Both halves should agree; tables on standard output, and all figures with --json as a file.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

from evals import hub, metrics, offline, rest
from evals.corpora import SETS, Corpus
from evals.embedding import MODEL, Embedding
from evals.offline import Measured
from memories.conf import LOCAL_EMBEDDINGS

HALVES = ("offline", "rest")


def main() -> None:
    """Measure the sets that were asked for."""
    arguments = _arguments()
    report: dict[str, dict[str, object]] = {}
    embedding = Embedding(arguments.embedding)
    own = hub.started(MEMORYHUB_EMBEDDING_MODEL=arguments.embedding) if "rest" in arguments.half else nullcontext()
    with own as started:
        for name in arguments.set:
            report[name] = {}
            if "offline" in arguments.half:
                measured = offline.measure(_corpora(name, arguments), embedding)
                report[name]["offline"] = _shown(name, f"in memory, {embedding.model}, scoring", measured)
            if started:
                measured = rest.measure(_corpora(name, arguments), started, name)
                report[name]["rest"] = _shown(name, f"over REST, {rest.model_of(started)}, search", measured)
    if arguments.json:
        document = {"embedding": arguments.embedding, "sets": report}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the evaluation sets")
    parser.add_argument("--set", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--half", nargs="+", default=HALVES, choices=HALVES, help="in memory, over REST; both")
    parser.add_argument("--first", type=int, help="so many people of each set; all")
    parser.add_argument("--embedding", default=MODEL, choices=LOCAL_EMBEDDINGS)
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        parser.error(f"{arguments.data} is no folder")
    return arguments


def _corpora(name: str, arguments: argparse.Namespace) -> Iterator[Corpus]:
    return islice(SETS[name](arguments.data), arguments.first)


def _shown(name: str, how: str, measured: Measured) -> dict[str, object]:
    summary = measured.summary()
    sys.stdout.write(f"\n{name}, {how} {summary['ms']}\n{metrics.table(metrics.by_category(measured.rows))}\n")
    sys.stdout.flush()
    return summary


if __name__ == "__main__":
    main()
