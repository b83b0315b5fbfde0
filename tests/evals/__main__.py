"""`python -m tests.evals --data FOLDER`: the figures of the scoring, as tables and with --json as a file."""

import argparse
import json
import sys
from pathlib import Path

from tests.evals import metrics
from tests.evals.corpora import SETS
from tests.evals.embedding import MODEL, Embedding
from tests.evals.offline import measure


def main() -> None:
    """Measure the sets that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.evals", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the evaluation sets")
    parser.add_argument("--set", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        parser.error(f"{arguments.data} is no folder")
    embedding, report = Embedding(), {"embedding": MODEL, "sets": {}}
    for name in arguments.set:
        measured = measure(SETS[name](arguments.data), embedding)
        summary = measured.summary()
        report["sets"][name] = summary  # type: ignore[index]
        sys.stdout.write(f"\n{name}, embedding {MODEL}, scoring {summary['scoring_ms']}\n")
        sys.stdout.write(metrics.table(metrics.by_category(measured.rows)) + "\n")
        sys.stdout.flush()
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
