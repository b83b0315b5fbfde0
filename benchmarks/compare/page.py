"""docs/compare.md: what was compared, how, and what came of it. What is worse for the hub stands first."""

import math
from collections.abc import Mapping, Sequence
from datetime import date
from textwrap import wrap

from benchmarks.compare.answering import ASKED, UNRELATED
from benchmarks.compare.figures import HUB, Row, worst_first
from benchmarks.report import aligned, number

PAGE = """# Beside the peers
`make compare` measures the hub and other memory systems on the same machine, in one run, and writes this page. **What
is worse for the hub stands first**: the lines are sorted by how many times worse than the best peer it is.

## On what ground
{ground}
- **The same questions**: {questions} other sentences of these docs. The peers look their vectors up, which costs
  them nothing.
- **The same machine and PostgreSQL.** All products are measured by turns, each turn begins with another one, the
  figure is the median of {turns}, and the first turn does not count. The peers' tables lie in databases of
  their own on the hub's PostgreSQL.
- **All rows were written in bulk**, by COPY or by the product's own call for many rows. The peers' indexes were made
  after that, by their own statements, where they can be. This makes better graphs, quicker, than one row after the
  other. A peer that needs longer than {fill_minutes} minutes has the people whose rows it had taken by then.
- **No model.** Nothing is extracted. A text is a row.

## How to read the figures
- **All over HTTP.** The hub by its API; a peer behind a minimal HTTP view of its library, in as many processes as
  it can share (2; the hub has 2 web processes). The hub has the question's vector in memory, as the peers do. The
  hub also checks a key, counts the request, ranks by words, neighbours and sessions, and returns more about each
  row.
- **As applications call it.** The hub over HTTP with questions that are new, which it embeds; the peers as a
  library, in the process that asks, with the vector at hand and threads as clients. This is the comparison that
  is worst for the hub.
- **Recall@20.** Each product in its own terms. Of a peer: how many of the 20 rows with the largest cosine, by a
  ranking of all of the person's rows, its answer has. The hub ranks by words and vectors together. Therefore it
  is compared with its own formula over all of the person's rows, as in the row `exact` of [the
  benchmarks](benchmarks.md). Where a peer looks into its index of vectors first and chooses the person's rows
  then, a person beside larger ones gets fewer rows than were asked for. A peer that ranks by words, too, has no
  figure: its own formula over all rows is not known.
- **Add.** The hub answers before the vector is made: a second later its embedder makes it, and until then the text
  is found by its words. The peers are given the vector, and answer when it is in their index.
- **Indexes after the bulk load.** The hub makes one when a person is searched for the first time, and answers from
  the newest rows meanwhile; its figure is the sum over the people who are asked about. A peer has one for all rows.
{default_context}
- **Questions about something else** are {unrelated} about the world. Best is a product that says nothing then.
- **Head of a request.** A conversation of {asked} questions: the hub's gateway sends its requests on, an application
  of a peer puts what it found for the last question into the system prompt, as their documentation shows. Counted is
  how much of a request stands unchanged at the head of the next one. Providers bill that part at a fraction.
- **Shared sets** are posted to the hub with sessions, times and ids; the peers' calls have no place for these, and get
  the texts. PrecisionMemBench's beliefs are facts for the hub and rows for the peers. They are no part of this
  project: `DATA=` names their folder.
- **Precision, and answers with nothing.** A search returns as many rows as are asked for, of every product: none was
  given a threshold. What the hub's `min_evidence` makes of these beliefs says [retrieval](retrieval.md#evidence).
- **Memory** is that of a product's own processes (Pss), without PostgreSQL. The hub has a web server, a worker and
  an embedder with its model; a peer is its library and the view, without a model.
- **Words that are left** are looked for in every row of every table and of every SQLite file, in every line of logs in
  JSON, and in what a peer itself lists of the person. Into other databases (Graphiti's) nobody looks.
- **kill -9** hits all processes at once, PostgreSQL too, while four clients write to each product. What got no
  answer is sent again, with the same key where the product has keys.

## The products
{peers}

## Where the hub is worse, and why
- **Memory, packages, start.** A server with an admin, a worker and an embedder that holds a model is compared with a
  library. After a kill, the hub also starts the PostgreSQL on which all of them are: the recovery is in its figure.
- **Add.** The hub looks for secrets and signals, numbers the turns of a session without gaps under a lock, remembers
  the key of the request, and makes the session due, in one transaction. A peer writes its row and its vector.
- **Deletion.** The hub counts what there is, erases store by store, searches all tables with other code, and signs a
  receipt. The search reads the rows of all people: it is nearly all of the time, and grows with the database. The
  peers delete rows, and mem0 notes each deletion together with its text.
- **Searches of many rows.** PostgresStore follows its graph to some 40 rows and takes those of the person; recall says
  what this misses. The hub estimates the nearness of every row of the person from its signs, adds words, neighbours
  and sessions, reads the vectors of all that can be among the best, and says for each result what speaks for it.
- **As applications call it.** The question's embedding, and HTTP itself, which a library does not have.

## Figures
{day}, {machine}. All ratios are hub ÷ the best peer of the line.

{worse}

### Better than, or as good as, the best peer
{better}

### Not comparable
{others}

## What did not run
{failures}
"""
ROWS = (
    "Each text is a sentence of these docs with a number; its vector (512 dimensions, of the built-in model's kind) "
    "lies around that of the sentence. All products have the same texts and vectors."
)
DEFAULT_CONTEXT = (
    "- **Default context.** What a model is given for a question when nobody says how much: the hub's `POST /context`; "
    "of a peer the rows of its search with its own limit ({limits}). Fewer tokens cost less, and are better only where "
    "the answer is still among them: the lines on the shared sets say that."
)
WIDTH = 118
HEADINGS = ("figure", "hub", "÷ best peer", "verdict")


def page(
    rows: Sequence[Row],
    titles: Mapping[str, str],
    *,
    day: date,
    machine: str,
    ground: str,
    questions: int,
    rounds: int,
    fill_seconds: float,
    limits: str,
    peers: Sequence[str],
    failures: Sequence[str],
) -> str:
    ordered = worst_first(list(rows))
    return PAGE.format(
        ground=_wrapped(f"- **The same rows.** {ground}. {ROWS}"),
        questions=questions,
        turns="one turn" if rounds == 1 else f"{rounds} turns",
        fill_minutes=f"{fill_seconds / 60:g}",
        default_context=_wrapped(DEFAULT_CONTEXT.format(limits=limits)),
        unrelated=len(UNRELATED),
        asked=ASKED,
        peers="\n".join(_wrapped(line) for line in peers),
        day=day.isoformat(),
        machine=machine,
        worse=table([row for row in ordered if row.times_worse > 1], titles),
        better=table([row for row in ordered if 0 < row.times_worse <= 1], titles),
        others=table([row for row in ordered if row.times_worse == 0], titles),
        failures="\n".join(f"- {one}" for one in failures) or "Everything ran.",
    )


def _wrapped(line: str) -> str:
    """A line or an item of a list, as wide as the pages of the docs are."""
    further = "  " if line.startswith("- ") else ""
    return "\n".join(wrap(line, WIDTH, subsequent_indent=further, break_long_words=False, break_on_hyphens=False))


def table(rows: Sequence[Row], titles: Mapping[str, str]) -> str:
    """In Markdown, a column for each product; notes to a value below it."""
    if not rows:
        return "None."
    names = [name for name in titles if name != HUB]
    heads = (*HEADINGS[:2], *(titles[name] for name in names), *HEADINGS[2:])
    notes = [
        f"- {row.what}, {titles[name]}: {note}." for row in rows for name, note in row.notes.items() if name in titles
    ]
    return "\n".join([aligned([heads, *(_cells(row, names) for row in rows)]), *(["", *notes] if notes else [])])


def _cells(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    ratio = row.ratio
    said = "" if ratio is None else "∞" if math.isinf(ratio) else f"{ratio:.2f}"
    values = (_value(row, name) for name in (HUB, *names))
    judged = f"{row.verdict} ({row.target.shown(row.target.reach)})" if row.target and row.verdict else ""
    return (row.what, *values, said, judged)


def _value(row: Row, name: str) -> str:
    value = row.values.get(name)
    return "–" if value is None else f"{_short(value)} {row.unit}".strip()


def _short(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and value < 100 else number(value)
