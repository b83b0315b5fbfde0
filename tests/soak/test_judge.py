"""The judge finds each fault that is planted in forged journals, and nothing in sound ones."""

import copy
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from tests.each import each
from tests.soak import faults, judge, rates, report
from tests.soak.journal import Journal, Line, marks, people_in, read

Journals = dict[str, list[Line]]
ENDED = 300.0


def turns(first: int, status: int = 202, at: float = 5.0) -> Line:
    line: Line = {"do": "turns", "at": at, "status": status, "person": "aa001", "session": "s"}
    line["marks"] = [f"aa001n{first:05}", f"aa001r{first:05}"]
    return line | (
        {"numbers": [2 * first - 1, 2 * first]} if status == 202 else {"code": "unavailable", "retry_after": "2"}
    )


def held(number: int, mark: str, session: str = "s", **over: Any) -> Line:
    role = "user" if "n" in mark else "assistant"
    line = {
        "do": "held",
        "at": 310.0,
        "person": "aa001",
        "session": session,
        "number": number,
        "role": role,
        "mark": mark,
    }
    return {**line, "left": None, **over}


def sound() -> Journals:
    """A talker refused once, a reader at one request a second, a talk through the gateway, a fact, an erasure."""
    person: Line = {"at": 5.0, "person": "aa001"}
    requests: list[Line] = [
        {"do": "context", "at": second + 0.5, "status": 200, "person": "aa001", "budget": 100, "counted": 99}
        | {"people": ["aa001"]}
        for second in range(int(ENDED))
    ]
    fact = {
        "do": "fact",
        "at": 6.0,
        "id": "f",
        "allowed": [["active", "a"], ["trashed", "a"]],
        "seen": ["trashed", "a"],
    }
    return {
        "talker": [turns(1), turns(1), turns(2, 503), turns(2)],
        "reader": requests,
        "gateway": [
            {"do": "chat", "status": 200, "reason": "", "others": ["aa001n00009"], **person},
            {"do": "talked", "session": "c", "marks": ["aa001n00009"], **person},
        ],
        "mcp": [{"do": "added", "mark": "aa001f00001", **person}],
        "keeper": [fact, {"do": "fades", "at": 7.0, "id": "g"}],
        "others": [
            {"do": "imported", "session": "i", "marks": ["aa001n00020"], **person},
            {"do": "taken back", "session": "j", "marks": ["aa001n00021"], **person},
            {"do": "filed", "mark": "aa001d00001", **person},
            {"do": "trajectory", "status": 202, "mark": "aa001t00001", **person},
            {"do": "own page", "page": "me/", "status": 200, "sent": False, "people": ["aa001"], **person},
            {"do": "asked", "kind": "skills", "people": ["aa001", "bb001"], "read": 0, "failed": False, "at": 5.0},
        ],
        "commands": [
            {"do": "command", "at": 9.0, "command": "erase_user", "code": 1, "person": "ez001"},
            *({"do": "command", "at": 320.0, "command": name, "code": 0, "at_end": True} for name in judge.CHECKS),
        ],
        "eraser": [
            {"do": "erased", "at": 10.0, "person": "ez001"},
            {"do": "late", "at": 11.0, "status": 410, "code": "erased", "person": "ez001"},
        ],
        "model": [
            {"do": "asked", "at": 12.0, "kind": "memory_update", "people": ["aa001"], "read": 2, "failed": False}
        ],
        "soak": [
            {"do": "fault", "at": 150.0, "fault": "the hub is shaken", "began": 140.0, "ended": 150.0},
            {"do": "traffic ended", "at": ENDED, "load": 1.0},
            {"do": "drained", "at": 305.0, "seconds": 5.0},
            *(held(number, mark) for number, mark in enumerate((*turns(1)["marks"], *turns(2)["marks"]), start=1)),
            held(1, "aa001n00009", "c"),
            held(2, "aa001r00009", "c", left="2026-11-26T00:00:00Z"),
            {"do": "facts of", "at": 310.0, "person": "aa001", "marks": ["aa001f00001"]},
            {"do": "fact in the end", "at": 310.0, "id": "f", "seen": ["trashed", "a"]},
            {"do": "fact in the end", "at": 310.0, "id": "g", "seen": ["trashed", "b"]},
            held(1, "aa001n00020", "i"),
            {"do": "files of", "at": 310.0, "person": "aa001", "files": [["aa001d00001", "read"]]},
            {"do": "trajectories of", "at": 310.0, "person": "aa001", "marks": ["aa001t00001"]},
            {"do": "searched", "at": 311.0, "tables": 90, "people": 1},
        ],
    }


def broken(journals: Journals) -> list[str]:
    return [verdict.says for verdict in judge.verdicts(journals) if not verdict.holds]


def test_a_sound_soak_is_not_accused() -> None:
    assert [verdict for verdict in judge.verdicts(sound()) if not verdict.holds] == []


def without(client: str, place: int) -> Callable[[Journals], None]:
    return lambda journals: journals[client].__delitem__(place)


def more(client: str, line: Line) -> Callable[[Journals], None]:
    return lambda journals: journals[client].append(line)


def but(client: str, place: int, **over: Any) -> Callable[[Journals], None]:
    return lambda journals: journals[client][place].update(over)


def slow(journals: Journals) -> None:
    """A third of the requests in the 20 s after the fault are gone."""
    journals["reader"] = [one for one in journals["reader"] if not (150 < one["at"] < 170 and int(one["at"]) % 3 == 0)]


def half_erased(journals: Journals) -> None:
    """Somebody spoke, and whoever had them erased did not see the end."""
    journals["talker"].append({**turns(5), "person": "ez001", "marks": ["ez001n00001", "ez001r00001"]})
    del journals["eraser"][0]


def asked_for_a_copy(*statuses: int) -> Callable[[Journals], None]:
    form: Line = {"do": "own page", "page": judge.COPY_FORM, "sent": True, "person": "aa001", "people": []}
    asked = [{**form, "at": 5.0, "status": status, "retry_after": "5"} for status in statuses]
    return lambda journals: journals["others"].extend([*asked, {"do": "no copy", "at": 9.0, "person": "aa001"}])


REFUSED: Line = {"do": "search", "at": 1.0, "person": "aa001", "code": ""}
PLANTED: dict[str, tuple[Callable[[Journals], None], set[str]]] = {
    "a lost turn": (without("soak", 4), {"_lost", "_out_of_order"}),
    "a lost last turn": (without("soak", 6), {"_lost"}),
    "a turn lost through the gateway": (but("soak", 7, mark=""), {"_lost"}),
    "a turn under another number": (but("soak", 3, number=3), {"_lost", "_out_of_order"}),
    "a doubled turn": (more("soak", held(5, "aa001n00001")), {"_doubled", "_out_of_order"}),
    "a doubled turn through the gateway": (more("soak", held(3, "aa001n00009", "c")), {"_doubled"}),
    "an import that is gone": (but("soak", 12, mark=""), {"_lost"}),
    "a file that was not read": (but("soak", 13, files=[["aa001d00001", "failed"]]), {"_lost"}),
    "a doubled file": (but("soak", 13, files=[["aa001d00001", "read"]] * 2), {"_doubled"}),
    "a trajectory that is gone": (but("soak", 14, marks=[]), {"_lost"}),
    "a doubled trajectory": (but("soak", 14, marks=["aa001t00001"] * 2), {"_doubled"}),
    "a trajectory that was never accepted": (but("others", 3, status=503, retry_after="2"), {"_never_landed"}),
    "an import that was never done": (
        more("others", {"do": "not imported", "person": "p", "why": "w"}),
        {"_never_landed"},
    ),
    "an import that was taken back and stayed": (more("soak", held(2, "aa001n00021", "i")), {"_not_erased"}),
    "a leak on a page of one's own": (but("others", 4, people=["bb001"]), {"_seen_by_others"}),
    "a copy that was never made": (asked_for_a_copy(200), {"_never_landed"}),
    "a copy that was refused each time": (asked_for_a_copy(503, 503), {"_never_landed"}),
    "a copy that was refused and not asked for again": (asked_for_a_copy(503), set()),
    "a repetition told another number": (but("talker", 1, numbers=[1, 5]), {"_lost", "_renumbered"}),
    "a round that was never accepted": (more("talker", turns(3, 503)), {"_never_landed"}),
    "a client that broke off": (more("soak", {"do": "broke off", "client": "c", "why": "w"}), {"_never_landed"}),
    "an error of ours": (more("reader", {**REFUSED, "status": 500}), {"_misrefused"}),
    "a refusal that says nothing of when": (more("reader", {**REFUSED, "status": 503}), {"_misrefused"}),
    "a leak in a context": (but("reader", 3, people=["aa001", "bb001"]), {"_seen_by_others"}),
    "a leak through the gateway": (but("gateway", 0, others=["bb001n00001"]), {"_seen_by_others"}),
    "a prompt about two people": (but("model", 0, people=["aa001", "bb001"]), {"_seen_by_others"}),
    "a context over its budget": (but("reader", 3, counted=101), {"_over_budget"}),
    "a trace of somebody erased": (more("soak", {"do": "trace", "person": "ez001", "place": "t"}), {"_not_erased"}),
    "somebody erased who came back": (but("eraser", 1, status=202), {"_not_erased"}),
    "an erasure that did not end": (without("eraser", 0), {"_not_erased"}),
    "an erasure whose end nobody saw": (half_erased, {"_not_erased"}),
    "a change that was lost": (but("soak", 10, seen=["active", "a"]), {"_changed_otherwise"}),
    "a change that nobody made": (but("keeper", 0, allowed=[["active", "a"]]), {"_changed_otherwise"}),
    "an added fact that is gone": (but("soak", 9, marks=[]), {"_changed_otherwise"}),
    "an expired fact that stayed": (but("soak", 11, seen=["active", "b"]), {"_not_faded"}),
    "a turn that was not read": (more("soak", {"do": "wrong", "what": "w", "rows": [["t"]]}), {"_not_extracted"}),
    "work that stayed": (but("soak", 2, seconds=None), {"_not_drained"}),
    "an invariant": (but("commands", 1, code=1), {"_unsound"}),
    "a check that did not run": (without("commands", 2), {"_unsound"}),
    "a rate that did not come back": (slow, {"_slow_to_recover"}),
}


@each(("plant", "found"), PLANTED.values())
def test_what_is_planted_is_found(plant: Callable[[Journals], None], found: set[str]) -> None:
    journals = copy.deepcopy(sound())
    plant(journals)
    assert set(broken(journals)) == {says for says, find in judge.JUDGED.items() if find.__name__ in found}


def test_the_first_calm_window_after_a_fault_counts() -> None:
    """Ten requests a second, none from 100 to 107 s: at 107 s the fault, over at 103 s, has been for four seconds."""
    moments = [second + tenth / 10 for second in range(200) for tenth in range(10) if not 100 <= second < 107]
    found = rates.rates(moments, [{"began": 100.0, "ended": 103.0}], until=200.0, window=rates.WINDOW)
    assert found.calm == 10
    # A window with 95 % may begin a little before the first request.
    assert found.after(103.0, 200.0) == 4.0
    assert found.after(103.0, 110.0) is None


def test_what_is_calm_is_that_of_the_time_before_a_fault() -> None:
    """Ten requests a second, and five beside other work from 1,000 s on; at 1,500 s none for four seconds."""
    moments = [float(second) + tenth / 10 for second in range(1_000) for tenth in range(10)]
    moments += [
        second + tenth / 5 for second in range(1_000, 2_000) for tenth in range(5) if not 1_500 <= second < 1_504
    ]
    found = rates.rates(moments, [{"began": 1_500.0, "ended": 1_500.0}], until=2_000.0, window=rates.WINDOW)
    assert (found.calm, found.calm_before(300.0), found.calm_before(1_500.0)) == (7.5, 10, 5)
    # Too soon to tell.
    assert found.calm_before(30.0) == found.calm
    assert found.after(1_500.0, 1_600.0) == 4.0


def test_a_seed_draws_the_same_faults_again_and_all_before_one_comes_twice() -> None:
    first, again, other = ([*islice(faults.schedule(seed), 2 * len(faults.FAULTS))] for seed in (7, 7, 8))
    assert first == again != other
    names = [fault.name for _, fault in first]
    assert len(set(names[: len(faults.FAULTS)])) == len(faults.FAULTS)


def test_journals_are_read_as_they_were_written(tmp_path: Path) -> None:
    Journal(tmp_path, "reader", 0.0).note(do="context", text="猫")
    [line] = read(tmp_path)["reader"]
    assert (line["do"], line["text"]) == ("context", "猫")
    text = "aa001n00001 said xaa002n00002, bb002f00003; aa001n00001"
    assert (marks(text), people_in(text)) == (["aa001n00001", "bb002f00003"], ["aa001", "bb002"])


def test_the_page_names_what_failed_and_the_seed() -> None:
    journals = sound()
    page = report.page(journals, judge.verdicts(journals), made_by="HOURS=0.1 SEED=7")
    assert "1 faults: all verdicts hold" in page
    assert "`make soak HOURS=0.1 SEED=7`" in page
    assert "| 2:20 | the hub is shaken | 10 s | 0.0 s |" in page
    journals["reader"][3]["counted"] = 101
    page = report.page(journals, judge.verdicts(journals), made_by="HOURS=0.1 SEED=7")
    assert "1 of 15 verdicts do not hold" in page
    assert "**no**: a context of 101 tokens where 100 were allowed" in page
