"""The page of a soak: what was done, what was broken, what came of it, and how to do it again."""

import os
import platform
import textwrap
from collections.abc import Iterator, Sequence
from datetime import date

from tests.soak import rates
from tests.soak.heavy import TURNS
from tests.soak.journal import of_kind
from tests.soak.judge import SHOWN, Journals, Verdict, counts
from tests.soak.rates import Recovery

NAMES = {
    "turns": "posts of a round (two turns)",
    "end": "ends of sessions",
    "chat": "requests through the gateway",
    "context": "contexts",
    "search": "searches",
    "tool": "calls by MCP",
    "state": "facts stated",
    "look": "facts read",
    "reword": "facts reworded",
    "delete": "facts deleted",
    "restore": "facts restored",
    "page": "pages and forms of the admin",
    "import": "imports: uploads, states, starts, undoing",
    "trajectory": "trajectories",
    "skills": "skills listed and read",
    "answer": "questions answered",
    "link": "links to the page of the person",
    "own page": "pages and forms of the person",
    "late": "posts for people who were erased",
}
ITEM = "- "
PAGE = """# A soak of the whole hub
`make soak HOURS=2` starts a hub with `manage.py up`. Clients use it in every way at once while a fault hits it every
minute. At the end the clients' own logs show whether the hub kept its promises. The code is in `tests/soak/`, which
also writes this page.

Last run on {day}: **{minutes:.0f} minutes, {faults} faults: {outcome}.**{beside}

`make soak {made_by}` repeats it. The seed draws the faults, their order and their moments, and what each client does.
How requests and faults meet differs each time.

**Clients.** Each has a pace of its own:
- nine people who talk over REST, in three tenants with the same ids; half of them send idempotency keys, half send ids
of messages; a tenth of the posts is sent twice;
- three readers of contexts and searches;
- two applications behind the gateway that send the whole conversation each time;
- an agent that uses MCP;
- an application that states, rewords, deletes and restores facts, and one whose facts expire;
- an operator in the admin (lists, corrections, undo, forgetting, restoring);
- a person with {turns:,} turns from before, who goes on talking and is searched all the time;
- two people who send a file with each message, search such files and ask questions that are answered with citations;
- an application that imports exports of ChatGPT: first what it would do, then in earnest, every other one twice, and
every fourth is taken back;
- three people whose agents post trajectories and ask which skills there are;
- a person at the page of their own memory: they look, correct, forget, take back, and download a copy of all;
- passes of forgetting, and erasures of people who have turns, facts, a file and a trajectory.

A client repeats a request that is answered 429, 503 or not at all until the hub accepts it. Each text has a mark that
shows whose it is.

**The model** is a server of the soak's own. It repeats every turn of a person as a fact. The embeddings come from such
a server, too.

## Verdicts
{verdicts}

A message counts as stored if the API lists it at the end, under the number that its acceptance named. What came beside
messages is imports, files and trajectories; a file must have been read. After the run,
{tables} tables and the files of the hub's folder were searched for the words and the ids of {erased} erased people.
{drained}

## Requests
{requests}

The model was asked {asked} times and failed {failed} times. {commands}

## Faults
- **The calm rate** was {calm:.1f} accepted requests a second (the median of 5 s) and {read:.1f} turns read by the model
a second (of 10 s). After a fault it is that of the five minutes before, because other work on the machine takes more at
times. Clients wait between requests and do not catch up on requests that a fault delayed. Therefore the
calm rate is what the clients ask for, not the most that the hub can do.
- **"Requests again" and "work again"** are the seconds from the end of a fault to the start of the first 5 s, or 10 s,
with at least 95 % of the calm rate.
- **Duration.** A fault "at once" is over as soon as it begins.
- **Work has no verdict of its own.** If a worker is killed in a second attempt, its lease ends after 8 s here. The hub
leaves an endpoint that failed alone for up to half a minute.

{table}
{left_out}"""


def page(journals: Journals, judged: Sequence[Verdict], *, made_by: str) -> str:
    asked, work, found = rates.recoveries(journals)
    [ended] = of_kind(journals, "traffic ended")
    searched = next(iter(of_kind(journals, "searched")), {"tables": 0, "people": 0})
    model = list(of_kind(journals, "asked"))
    text = PAGE.format(
        day=date.today().isoformat(),
        minutes=ended["at"] / 60,
        made_by=made_by,
        turns=TURNS,
        faults=len(found),
        outcome=outcome(judged),
        beside=_beside(ended["load"]),
        verdicts=_verdicts(judged),
        tables=searched["tables"],
        erased=searched["people"],
        drained=_drained(journals),
        requests=_table(
            ("", "accepted", "refused", "no answer"),
            [(NAMES[k], *map(_number, n)) for k, n in counts(journals).items()],
        ),
        asked=_number(len(model)),
        failed=_number(sum(line["failed"] for line in model)),
        commands=_commands(journals),
        calm=asked.calm,
        read=work.calm,
        table=_table(("at", "fault", "lasted", "requests again", "work again"), [_row(one) for one in found]),
        left_out="".join(f"\nLeft out: {line['fault']}. {line['why']}\n" for line in of_kind(journals, "left out")),
    )
    return _wrapped(text)


def _wrapped(text: str) -> str:
    """Paragraphs and items of lists in lines of up to 120 characters; headings and tables as they are."""
    lines: list[str] = []
    for line in _joined(text):
        if line and line[0] not in "#|":
            indent = "  " if line.startswith(ITEM) else ""
            lines += textwrap.wrap(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        else:
            lines.append(line)
    return "\n".join(lines)


def _joined(text: str) -> Iterator[str]:
    """Each paragraph and each item of a list as one line."""
    prose: list[str] = []
    for line in [*text.rstrip().split("\n"), ""]:
        if line and line[0] not in "#|":
            if line.startswith(ITEM) and prose:
                yield " ".join(prose)
                prose = []
            prose.append(line)
            continue
        if prose:
            yield " ".join(prose)
            prose = []
        yield line


def outcome(judged: Sequence[Verdict]) -> str:
    broken = sum(not verdict.holds for verdict in judged)
    return "all verdicts hold" if not broken else f"{broken} of {len(judged)} verdicts do not hold"


def _beside(load: float) -> str:
    """`load`: the average of the last quarter of an hour."""
    cores = os.cpu_count() or 1
    where = f" On {cores} cores, {platform.system()}, Python {platform.python_version()}"
    if load > 2 * cores:
        return f"{where}, with a load of {load:.0f} on average, because the machine also did other work."
    return f"{where}, with a load of {load:.1f} on average."


def _verdicts(judged: Sequence[Verdict]) -> str:
    rows = []
    for verdict in judged:
        against = "; ".join(verdict.against[:SHOWN]) + (
            f"; and {len(verdict.against) - SHOWN} more" if len(verdict.against) > SHOWN else ""
        )
        rows.append((verdict.says, "yes" if verdict.holds else f"**no**: {against}".replace("|", "/")))
    return _table(("verdict", "holds"), rows)


def _drained(journals: Journals) -> str:
    for line in of_kind(journals, "drained"):
        if line["seconds"] is not None:
            return f"The queue was empty {line['seconds']:.0f} s after the last client had ended."
    return "The queue did not become empty."


def _commands(journals: Journals) -> str:
    runs = [line for line in of_kind(journals, "command") if not line.get("at_end")]
    parts = []
    for name in dict.fromkeys(line["command"] for line in runs):
        codes = [line["code"] for line in runs if line["command"] == name]
        again = sum(map(bool, codes))
        parts.append(f"`manage.py {name}` ran {len(codes)} times (a fault cut off {again} of them)")
    return "; ".join(parts) + ("." if parts else "")


def _row(one: Recovery) -> tuple[str, ...]:
    fault = one.fault
    seconds = fault["ended"] - fault["began"]
    minutes, rest = divmod(int(fault["began"]), 60)
    return (
        f"{minutes}:{rest:02}",
        fault["fault"],
        f"{seconds:.0f} s" if seconds >= 1 else "at once",
        *("not before the next fault" if took is None else f"{took:.1f} s" for took in (one.requests, one.work)),
    )


def _number(value: int) -> str:
    return f"{value:,}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
