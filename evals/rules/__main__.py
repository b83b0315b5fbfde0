"""`python -m evals.rules`: what is kept of the labelled utterances; with `--list PART` also what went wrong."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from evals.rules.measure import Figures, Outcome

HEADINGS = "| part | language | utterances | to keep | recall | active | precision | harmless | of them suggested |"


def main() -> None:
    from evals.rules import measure

    parser = argparse.ArgumentParser(prog="python -m evals.rules", description=__doc__)
    parser.add_argument("--list", choices=measure.PARTS, help="also print what went wrong in this part")
    wanted = parser.parse_args().list
    lines = [HEADINGS, "| --- | --- |" + " ---: |" * 7]
    wrong: list[Outcome] = []
    for part in measure.PARTS:
        utterances = list(measure.utterances(part))
        for language, name in (("en", "English"), ("zh", "Chinese"), ("", "both")):
            chosen = [one for one in utterances if language in ("", one.language)]
            figures = measure.measure(chosen)
            lines.append(row(part.replace("_", " "), name, figures))
            if part == wanted and not language:
                wrong = [one for one in figures.outcomes if not one.is_good]
    sys.stdout.write("\n".join([*lines, *map(described, wrong), ""]))


def row(part: str, language: str, figures: "Figures") -> str:
    counts = (len(figures.outcomes), figures.to_keep, f"{figures.recall:.3f}", figures.active)
    cells = (part, language, *counts, f"{figures.precision:.3f}", figures.harmless, figures.suggested)
    return "| " + " | ".join(map(str, cells)) + " |"


def described(one: "Outcome") -> str:
    spoken = one.utterance
    return f"{spoken.label} {spoken.kind}: {spoken.text!r} is active as {one.active}, waits as {one.waiting}"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    django.setup()
    main()
