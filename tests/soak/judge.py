"""What the journals say of a soak. Each verdict is a sentence that holds, with what speaks against it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.soak import rates
from tests.soak.asking import AGAIN, BUSY
from tests.soak.journal import Line, of_kind

Journals = dict[str, list[Line]]
# Debounce, lease, and 60 s (I7), beside what a busy machine takes for the last batches.
DRAINED_SECONDS = 120.0
SHOWN = 5
CHECKS = ("check_memory", "verify_audit")
REFUSALS: dict[str, Callable[[Line], bool]] = {
    # The endpoint's errors go through the gateway as they are, or as one that cannot be reached.
    "chat": lambda line: bool(line.get("passed_on")) or line["status"] in (502, 504),
    "late": lambda line: line["status"] == 410,
    # The operator and the applications are told that something is not as they thought.
    "page": lambda line: line["sent"] and line["status"] in (409, 412),
    # The link was used, or the visit is over; an earlier request, whose answer was lost, has done it.
    "own page": lambda line: line["status"] in (404, 410),
    "import": lambda line: line["status"] == 409,
    # An end that is past by the clock of whoever answers is refused: one clock is an hour ahead at times.
    "state": lambda line: line["status"] == 400 and line.get("ends", False),
    "reword": lambda line: line["status"] in (404, 409),
    "restore": lambda line: line["status"] in (404, 409),
    "delete": lambda line: line["status"] in (404, 409),
}
ASKED = (
    "turns",
    "end",
    "chat",
    "context",
    "search",
    "tool",
    "state",
    "look",
    "reword",
    "delete",
    "restore",
    "page",
    "import",
    "trajectory",
    "skills",
    "answer",
    "link",
    "own page",
    "late",
)
COPY_FORM = "me/data/export"
# A skill is what several people's trajectories have in common.
OF_SEVERAL = "skills"


@dataclass(frozen=True)
class Verdict:
    says: str
    against: list[str]

    @property
    def holds(self) -> bool:
        return not self.against


def verdicts(journals: Journals) -> list[Verdict]:
    return [Verdict(says, list(find(journals))) for says, find in JUDGED.items()]


def _erased(journals: Journals) -> set[str]:
    return {line["person"] for line in of_kind(journals, "erased")}


def _leaving(journals: Journals) -> set[str]:
    """Whose erasure has begun: what they said may be gone, whether the client saw the end or not."""
    return {line["person"] for line in of_kind(journals, "command") if line["command"] == "erase_user"}


def _held(journals: Journals) -> dict[tuple[str, str], list[Line]]:
    """What the hub holds of each session, by number."""
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in of_kind(journals, "held"):
        found[line["person"], line["session"]].append(line)
    return {key: sorted(lines, key=lambda line: int(line["number"])) for key, lines in found.items()}


def _accepted(journals: Journals) -> Iterator[tuple[str, str, str, int]]:
    """Of every accepted message its person, session, mark and number, each time that it was told."""
    gone = _leaving(journals)
    for line in of_kind(journals, "turns"):
        if line["status"] == 202 and line["person"] not in gone:
            for mark, number in zip(line["marks"], line["numbers"], strict=True):
                yield line["person"], line["session"], mark, number


def _lost(journals: Journals) -> Iterator[str]:
    sessions = _held(journals)
    held = {
        (person, session, turn["mark"], turn["number"])
        for (person, session), turns in sessions.items()
        for turn in turns
    }
    yield from (
        f"{mark} of {session}, accepted as number {number}, is not stored under it"
        for person, session, mark, number in sorted(set(_accepted(journals)))
        if (person, session, mark, number) not in held
    )
    for person, session, mark in _talked(journals):
        if not any(turn["mark"] == mark and not turn["left"] for turn in sessions.get((person, session), [])):
            yield f"{mark}, sent to {session} through the gateway, is not stored"

    yield from _lost_beside(journals)


def _lost_beside(journals: Journals) -> Iterator[str]:
    """What was accepted beside messages: imports, files and trajectories."""
    held = {(person, turn["mark"]) for (person, _), turns in _held(journals).items() for turn in turns}
    for line in of_kind(journals, "imported"):
        yield from (
            f"{mark}, which was imported, is not stored" for mark in line["marks"] if (line["person"], mark) not in held
        )
    gone = _leaving(journals)
    states = dict(file for line in of_kind(journals, "files of") for file in line["files"])
    for line in of_kind(journals, "filed"):
        if line["person"] not in gone and states.get(line["mark"]) != "read":
            yield f"the file {line['mark']} is {states.get(line['mark'], 'gone')}, not read"
    known = {mark for line in of_kind(journals, "trajectories of") for mark in line["marks"]}
    yield from (
        f"the trajectory {mark} is not stored"
        for mark in sorted({line["mark"] for line in of_kind(journals, "trajectory") if line["status"] == 202})
        if mark not in known and mark[:5] not in gone
    )


def _talked(journals: Journals) -> list[tuple[str, str, str]]:
    return [(line["person"], line["session"], mark) for line in of_kind(journals, "talked") for mark in line["marks"]]


def _doubled(journals: Journals) -> Iterator[str]:
    # An answer that was given again is a new turn, and the one before is left: a person's own message is not.
    counted = Counter(
        (person, turn["mark"])
        for (person, _), turns in _held(journals).items()
        for turn in turns
        if turn["mark"] and not turn["left"] and (turn["role"] == "user" or "chat" not in turn["session"])
    )
    counted.update((line["person"], mark) for line in of_kind(journals, "files of") for mark, _ in line["files"])
    counted.update((line["person"], mark) for line in of_kind(journals, "trajectories of") for mark in line["marks"])
    yield from (f"{mark} is stored {count} times" for (_, mark), count in sorted(counted.items()) if count > 1)


def _renumbered(journals: Journals) -> Iterator[str]:
    """A message that was told two numbers, by an answer and its repetition."""
    told: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for person, session, mark, number in _accepted(journals):
        told[person, session, mark].add(number)
    yield from (
        f"{mark} got the numbers {sorted(some)}" for (_, _, mark), some in sorted(told.items()) if len(some) > 1
    )


def _out_of_order(journals: Journals) -> Iterator[str]:
    for (person, session), turns in sorted(_held(journals).items()):
        numbers = [turn["number"] for turn in turns]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"{session} of {person} has the numbers {numbers[:10]} …"
        said = [turn["mark"] for turn in turns if turn["role"] == "user" and turn["mark"] and not turn["left"]]
        if said != sorted(said):
            yield f"{session} of {person} is out of order"


def _never_landed(journals: Journals) -> Iterator[str]:
    last: dict[tuple[str, ...], int] = {}
    for line in of_kind(journals, "turns"):
        key = (line["person"], *line["marks"])
        last[key] = max(last.get(key, 0), line["status"] if line["status"] == 202 else 0)
    yield from (f"{key[1]} was never accepted" for key, status in sorted(last.items()) if status != 202)
    taken = {line["mark"] for line in of_kind(journals, "trajectory") if line["status"] == 202}
    tried = {line["mark"] for line in of_kind(journals, "trajectory")}
    yield from (f"the trajectory {mark} was never accepted" for mark in sorted(tried - taken))
    yield from (f"{line['mark']} was never added" for line in of_kind(journals, "not added"))
    yield from (
        f"an import of {line['person']} was never done ({line['why']})" for line in of_kind(journals, "not imported")
    )
    for lines in journals.values():
        yield from _copies_not_made(lines)
    yield from (f"{line['client']}: {line['why']}" for line in of_kind(journals, "broke off"))


def _copies_not_made(lines: Iterable[Line]) -> Iterator[str]:
    """A copy of all data that was asked for once, and accepted, or again after each refusal."""
    asked: list[int] = []
    for line in lines:
        if line["do"] == "own page" and line["page"] == COPY_FORM:
            asked.append(line["status"])
        elif line["do"] in ("copy", "no copy"):
            if line["do"] == "no copy" and (200 in asked or len(asked) > 1):
                yield f"{line['person']} got no copy of their data"
            asked.clear()


def _misrefused(journals: Journals) -> Iterator[str]:
    counted: Counter[str] = Counter()
    for line in of_kind(journals, *ASKED):
        status = line["status"]
        if 200 <= status < 300 or status == 0 or line.get("code") == BUSY:
            continue
        if status in AGAIN:
            if not line.get("retry_after"):
                counted[f"{line['do']} was answered {status} without a time to try again"] += 1
        elif not (line["do"] in REFUSALS and REFUSALS[line["do"]](line)):
            counted[f"{line['do']} was answered {status} {line.get('code', '')}".strip()] += 1
    yield from (f"{what} ({count} times)" for what, count in sorted(counted.items()))


def _seen_by_others(journals: Journals) -> Iterator[str]:
    for line in of_kind(journals, *SHOWING):
        if line.get("kind") == OF_SEVERAL:
            continue
        own = {line["person"]} if "person" in line else set(line.get("people", [])[:1])
        others = set(line.get("people", [])) | {mark[:5] for mark in line.get("others", [])}
        if others - own:
            shown = ", ".join(sorted(others - own))
            yield f"{line['do']} for {', '.join(own) or 'nobody'} at {line['at']} had marks of {shown}"


SHOWING = ("context", "search", "tool", "chat", "skills", "answer", "own page", "copy", "asked")


def _over_budget(journals: Journals) -> Iterator[str]:
    for line in of_kind(journals, "context"):
        if line.get("counted", 0) > line.get("budget", 8_000):
            yield f"a context of {line['counted']} tokens where {line['budget']} were allowed"


def _not_erased(journals: Journals) -> Iterator[str]:
    yield from (f"{line['person']} is in {line['place']}" for line in of_kind(journals, "trace"))
    gone = _erased(journals)
    for line in of_kind(journals, "late"):
        if line["person"] in gone and line["status"] in range(200, 300):
            yield f"a post for {line['person']} was accepted after the erasure"
    yield from (f"{person} was not erased in the end" for person in sorted(_leaving(journals) - gone))
    held = {turn["mark"] for turns in _held(journals).values() for turn in turns}
    for line in of_kind(journals, "taken back"):
        yield from (f"{mark} is stored, whose import was taken back" for mark in line["marks"] if mark in held)


def _changed_otherwise(journals: Journals) -> Iterator[str]:
    last: dict[str, list[str]] = {}
    for line in of_kind(journals, "fact"):
        if line["seen"] not in line["allowed"]:
            yield f"fact {line['id']} was {line['seen']}, not {' or '.join(map(str, line['allowed']))}"
        last[line["id"]] = line["seen"]
    final = {line["id"]: line["seen"] for line in of_kind(journals, "fact in the end")}
    yield from (
        f"fact {fact} ended as {final.get(fact, 'gone')}, not {seen}"
        for fact, seen in sorted(last.items())
        if final.get(fact) != seen
    )
    known = {mark for line in of_kind(journals, "facts of") for mark in line["marks"]}
    yield from (
        f"{line['mark']} was added and is gone" for line in of_kind(journals, "added") if line["mark"] not in known
    )


def _not_faded(journals: Journals) -> Iterator[str]:
    final = {line["id"]: line["seen"][0] for line in of_kind(journals, "fact in the end")}
    for line in of_kind(journals, "fades"):
        if final.get(line["id"]) != "trashed":
            yield f"fact {line['id']} had expired and is {final.get(line['id'], 'gone')}"


def _not_extracted(journals: Journals) -> Iterator[str]:
    yield from (f"{line['what']}: {line['rows']}" for line in of_kind(journals, "wrong"))


def _not_drained(journals: Journals) -> Iterator[str]:
    drained = list(of_kind(journals, "drained"))
    if not drained or drained[0]["seconds"] is None or drained[0]["seconds"] > DRAINED_SECONDS:
        yield f"not within {DRAINED_SECONDS:.0f} s"


def _unsound(journals: Journals) -> Iterator[str]:
    checked = {line["command"]: line["code"] for line in of_kind(journals, "command") if line.get("at_end")}
    for name in CHECKS:
        if checked.get(name) != 0:
            yield f"{name}: exit code {checked.get(name)}"


def _slow_to_recover(journals: Journals) -> Iterator[str]:
    for found in rates.recoveries(journals)[2]:
        if found.requests is None or found.requests > rates.RECOVERED_SECONDS:
            took = "not before the next fault" if found.requests is None else f"after {found.requests:.1f} s"
            yield f"{found.fault['fault']}: {took}"


JUDGED: dict[str, Callable[[Journals], Iterable[str]]] = {
    "Every accepted message is stored under the number that the answer named, and so is what came beside": _lost,
    "No message, file or trajectory is stored twice": _doubled,
    "A repeated request gets the same numbers": _renumbered,
    "Sessions are numbered without gaps, in the order in which each client sent its messages": _out_of_order,
    "Every refused request was accepted when it was repeated": _never_landed,
    "Every temporary refusal says when to try again; no client got a 500": _misrefused,
    "Nobody saw the data of another person, and no prompt mixes two people (but of skills)": _seen_by_others,
    "No context exceeds its budget": _over_budget,
    "Nothing is left of erased people and of imports that were taken back, and nothing came back": _not_erased,
    "Facts are as the last accepted change left them": _changed_otherwise,
    "Expired facts are in the trash": _not_faded,
    "Each turn of a person is covered by one extraction and became one fact": _not_extracted,
    "The queue became empty, and nothing needs an operator": _not_drained,
    "The invariants and the chain of the audit trail hold": _unsound,
    "Requests are back at 95 % of the calm rate within 15 s of each fault": _slow_to_recover,
}


def counts(journals: Journals) -> dict[str, tuple[int, int, int]]:
    """Of each kind of request: accepted, refused, without an answer."""
    found: dict[str, Any] = {}
    for kind in ASKED:
        statuses = [line["status"] for line in of_kind(journals, kind)]
        silent = statuses.count(0)
        accepted = sum(200 <= status < 300 for status in statuses)
        found[kind] = (accepted, len(statuses) - accepted - silent, silent)
    return found
