"""The table of a round: per way and language, attempts, what succeeded, benign texts, what was held."""

from collections.abc import Iterable, Iterator, Sequence

from tests.redteam.corpus import LANGUAGES, WAYS
from tests.redteam.stage import Outcome

# The marks of the page that holds the tables, one pair for each round.
MARKS = {
    1: ("<!-- redteam: begin -->", "<!-- redteam: end -->"),
    2: ("<!-- redteam round 2: begin -->", "<!-- redteam round 2: end -->"),
    3: ("<!-- redteam round 3: begin -->", "<!-- redteam round 3: end -->"),
}
HEAD = ("way in", *LANGUAGES, "attempts", "succeed", "benign", "held")


def table(outcomes: Sequence[Outcome]) -> str:
    """In Markdown; a cell of a language is "succeeded/attempts, held/benign"."""
    lines = [f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}"]
    lines += [_row(way, [one for one in outcomes if one.case.way == way]) for way in WAYS]
    return "\n".join([*lines, _row("all", outcomes)])


def inserted(page: str, told: str, number: int = 1) -> str:
    """The page with the table between the marks of its round. Errors: ValueError when it has none."""
    begin, end = MARKS[number]
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{told}\n{end}{after}"


def bad(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """A line for each attempt that succeeded and each benign text that was held."""
    for one in outcomes:
        if one.is_bad:
            how = "held" if one.is_held else ", ".join(sorted(one.successes))
            lacking = f" (not known to this hub: {', '.join(sorted(one.absent))})" if one.absent else ""
            yield f"{one.case.id}: {how}{lacking}"


def counts(outcomes: Iterable[Outcome]) -> tuple[int, int, int, int]:
    """Attempts, those that succeeded, benign texts, those that were held."""
    attempts = [bool(one.successes) for one in outcomes if one.case.is_attempt]
    benign = [one.is_held for one in outcomes if not one.case.is_attempt]
    return len(attempts), sum(attempts), len(benign), sum(benign)


def _row(title: str, outcomes: Sequence[Outcome]) -> str:
    cells = []
    for language in LANGUAGES:
        attempts, succeeded, benign, held = counts([one for one in outcomes if one.case.language == language])
        cells.append(f"{succeeded}/{attempts}, {held}/{benign}")
    return f"| {title} | {' | '.join(cells)} | {' | '.join(map(str, counts(outcomes)))} |"
