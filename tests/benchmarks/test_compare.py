"""What is worse for the hub stands first, what is ranked is ranked by all rows, and each peer says what it is."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from benchmarks import load, processes
from benchmarks.compare import answering, ground, page, products, shared_sets
from benchmarks.compare.figures import Row, worst_first
from benchmarks.compare.ground import Ground
from benchmarks.compare.products import PEERS, Peer
from benchmarks.compare.searching import Course, adding
from benchmarks.compare.shared_sets import SharedSets
from benchmarks.figures import at_least, at_most
from evals.corpora import Corpus, Question, Unit

TITLES = {"hub": "Memory Hub", "one": "One", "other": "Other"}


@pytest.mark.parametrize(
    ("values", "most", "worse"),
    [
        ({"hub": 30, "one": 10, "other": 20}, False, 3.0),
        ({"hub": 5, "one": 10, "other": None}, False, 0.5),
        ({"hub": 0.5, "one": 1.0, "other": 0.2}, True, 2.0),
        ({"hub": 0, "one": 0}, False, 1.0),
        ({"hub": 3, "one": 0}, False, math.inf),
        ({"hub": 0, "one": 0.5}, True, math.inf),
        ({"hub": 3, "one": None}, False, 0.0),
        ({"one": 3}, False, 0.0),
    ],
)
def test_the_hub_is_held_against_the_best_peer(values: dict[str, float | None], most: bool, worse: float) -> None:
    assert Row("x", "ms", values, most=most).times_worse == worse


def test_a_target_judges_the_ratio_or_the_value_alone() -> None:
    values = {"hub": 30.0, "one": 40.0}
    assert Row("x", "ms", values, target=at_most(1, 0.7)).verdict == "reach"
    assert Row("x", "", {"hub": 0.97, "one": 0.5}, most=True, target=at_least(0.98, 1), alone=True).verdict == "not met"


def test_what_is_worse_for_the_hub_stands_first_on_the_page() -> None:
    rows = [
        Row("better", "ms", {"hub": 1, "one": 2, "other": 3}),
        Row("alone", "ms", {"hub": 1}),
        Row("bad", "ms", {"hub": 4, "one": 2, "other": 3}, notes={"one": "2 in history"}),
        Row("worst", "ms", {"hub": 4, "one": 0, "other": None}),
    ]
    assert [row.what for row in worst_first(rows)] == ["worst", "bad", "better", "alone"]
    text = page.page(
        rows,
        TITLES,
        day=date(2026, 11, 29),
        machine="a machine",
        ground="a person",
        questions=7,
        rounds=3,
        fill_seconds=90,
        limits="One: 5",
        peers=["- **One**."],
        failures=["Other: it broke"],
    )
    lines = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert [line for line in lines if line in {"better", "alone", "bad", "worst"}] == [
        "worst",
        "bad",
        "better",
        "alone",
    ]
    assert text.index("### Better") < text.index("| better")
    assert "- bad, One: 2 in history." in text
    assert "- Other: it broke" in text


def test_the_right_answer_is_made_of_all_rows_of_that_person() -> None:
    vectors = np.array([[1, 0], [0.9, 0.1], [1, 0.01], [-1, 0]], np.float32)
    texts = [f"row ({place})" for place in range(4)]
    asked = np.array([[2, 0]], np.float32)
    made = Ground(Path(), ["a", "a", "b", "a"], texts, texts, vectors, ["?"], asked)
    assert made.nearest("a", 0) == ["row (0)", "row (1)", "row (3)"]


@pytest.mark.parametrize("path", sorted(PEERS.glob("*.json")), ids=lambda path: path.stem)
def test_a_peer_has_a_script_and_pinned_packages(path: Path) -> None:
    says = json.loads(path.read_text("utf-8"))
    if set(says) == {"title", "version", "not_run"}:
        assert not path.with_suffix(".py").exists()
        return
    assert {"title", "version", "packages", "default_limit", "processes", "terms"} <= set(says)
    assert [package for package in says["packages"] if "==" not in package] == []
    assert says["packages"][0].endswith(f"=={says['version']}")
    compile(path.with_suffix(".py").read_text("utf-8"), path.name, "exec")


def test_processes_are_found_by_their_mark_and_ended() -> None:
    mark = {"COMPARE_TEST": f"{os.getpid()}"}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=os.environ | mark) as child:
        named = f"COMPARE_TEST={os.getpid()}"
        assert processes.megabytes(named) > 0
        assert processes.megabytes(f"{named}0") == 0
        assert processes.megabytes(named, without={Path(f"/proc/{child.pid}/comm").read_text().strip()}) == 0
        processes.end(named, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL


# Of two questions, one has both of its answers at all places that are asked for, the other one of two.
LIFE = Corpus(
    "life",
    "turn",
    [Unit(str(place), "s", f"said ({place})", datetime(2026, 1, 1, tzinfo=UTC)) for place in range(12)],
    [
        Question("?", "any", frozenset({"10", "11"})),
        Question("?", "any", frozenset({"0", "11"})),
        Question("?", "none", frozenset()),
    ],
)
# It keeps nothing but what is added, in one file; its answers are its rows, the newest first.
SCRIPT = """
import json, sys
sys.path.insert(0, {folder!r})
import serving

class Store:
    def __init__(self):
        self.path = serving.FOLDER / "rows.txt"
        self.vectors = serving.Vectors()
    def setup(self):
        self.path.touch()
    def load(self):
        for person, text in serving.rows_in_time():
            self.add(person, text, "")
        return 0.5
    def close(self):
        pass
    def add(self, person, text, key):
        with self.path.open("a") as file:
            file.write(json.dumps([person, text, self.vectors.of(text)]) + chr(10))
    def search(self, person, question, limit):
        return [(text, 1.0) for text in self.texts(person)[::-1][:limit]]
    def delete(self, person):
        raise RuntimeError("It cannot delete.")
    def texts(self, person):
        rows = map(json.loads, self.path.read_text().splitlines())
        return [text for whose, text, _ in rows if whose == person]

serving.run(Store)
"""


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    """A peer of a script that needs no packages, with three rows of a person and one of another."""
    vectors = np.array([[1, 0], [0.5, 0.5], [0.25, 0.75], [0, 1]], np.float32)
    texts = [f"row ({place})" for place in range(4)]
    made = Ground(tmp_path, ["a", "a", "b", "a"], texts, texts, vectors, ["?"], vectors[:1], ["Long tea"], vectors[3:])
    ground.write(made)
    (tmp_path / "small.py").write_text(SCRIPT.format(folder=str(PEERS)))
    monkeypatch.setattr(products, "PEERS", tmp_path)
    says = {"title": "Small", "packages": [], "processes": 2, "default_limit": 2}
    one = Peer("small", says, "", tmp_path, made)
    # In place of an environment of its own.
    vars(one)["_program"] = Path(sys.executable)
    try:
        yield one
    finally:
        one.kill()


def test_a_peer_is_filled_asked_killed_and_started_again(peer: Peer) -> None:
    peer.setup()
    assert peer.load() == 0.5
    peer.start()
    assert peer.texts("a") == ["row (0)", "row (1)", "row (3)"]
    assert peer.found(load.call(peer.server, peer.search("a", "?"))) == ["row (3)", "row (1)", "row (0)"]
    assert len(peer.inside("a", [["?"] * 3] * 2).milliseconds) == 6
    assert peer.megabytes() > 0
    peer.kill()
    assert peer.megabytes() == 0
    peer.start()
    load.call(peer.server, peer.add("a", "row (2)", "key"))
    assert peer.texts("a")[-1] == "row (2)"
    for text in ("Long tea", "tea"):
        load.call(peer.server, peer.add("c", text, "key"))
    stored = [json.loads(line)[2] for line in (peer.home / "rows.txt").read_text().splitlines()]
    # A part that a peer cuts off a text has the vector of the whole.
    assert stored == [[1, 0], [0.5, 0.5], [0.25, 0.75], [0, 1], [0.25, 0.75], [0, 1], [0, 1]]


def test_a_peer_without_time_for_all_rows_is_not_asked_about_people_who_are_cut_off(peer: Peer) -> None:
    peer.fill_seconds = 0
    peer.setup()
    peer.load()
    assert peer.rows == 1
    whole, cut = Course([peer], peer.ground, rounds=1), peer.ground
    assert (whole.about("nobody").products, whole.about("a").products) == ([peer], [])
    assert (cut.has("b", 3), cut.has("b", 2)) == (True, False)


def test_a_default_context_of_a_peer_is_what_its_search_finds_by_itself(peer: Peer) -> None:
    peer.setup()
    peer.load()
    peer.start()
    course = Course([peer], peer.ground, rounds=1)
    found = {row.what: row.values["small"] for row in answering.about(course, "a", "them", ["?", "?", "?"])}
    tokens, of_others, nothing, head = found.values()
    assert tokens == of_others == answering._tokens("- row (3)\n- row (1)")
    assert nothing == 0
    # Its answers are always the same here: all of a request is at the head of the next.
    assert head == 1
    row, *about_it = answering.about_sets(course, SharedSets({"locomo-turn": [LIFE]}, [], []))
    assert row.values == {"small": 0.75}
    assert [set(one.values) for one in about_it] == [{"small"}] * 4


def test_what_a_request_repeats_ends_with_the_first_difference() -> None:
    assert answering.repeated("abcd", "abxd") == 2
    assert answering.repeated("abcd", "ab") == 2
    assert answering.repeated("abcd", "abcde") == 4


def test_shared_sets_are_read_as_far_as_they_are_there(tmp_path: Path) -> None:
    assert shared_sets.read(tmp_path, 2) == shared_sets.NONE
    bench = tmp_path / "precisionmembench"
    bench.mkdir()
    belief = {"_id": "b1", "user_id": "u", "content": "Likes tea", "canonical_name": "hot_tea", "type": "preference"}
    (bench / "beliefs.json").write_text(json.dumps([belief | {"aliases": ["cha"]}]))
    right = {"expect": {"relevantBeliefs": {"shouldOnlyInclude": ["b1"]}}, "query": "Which drink?", "userId": "u"}
    blank, other = right | {"query": " "}, {"expect": {}, "query": "What?", "userId": "u"}
    (bench / "cases.json").write_text(json.dumps([right, blank, other]))
    found = shared_sets.read(tmp_path, 2)
    assert found.lives == {}
    assert [(one.person, one.text, one.category) for one in found.beliefs] == [
        ("beliefs-u", "Likes tea (hot tea: cha)", "preference")
    ]
    assert [(one.question, one.right) for one in found.cases] == [("Which drink?", frozenset({"b1"}))]
    assert [*found.passages(), *found.questions()] == ["Likes tea (hot tea: cha)", "Which drink?"]


def test_a_peer_that_fails_is_left_out_and_named(peer: Peer) -> None:
    peer.setup()
    peer.start()
    course = Course([peer], peer.ground, rounds=1)
    assert [set(row.values) for row in adding(course, "c", "anew")] == [{"small"}] * 2
    assert course.failures == []
    assert course.each("deletion", lambda one: one.erase("a")) == {}
    [said] = course.failures
    assert said.startswith("Small, deletion: ")
    assert "It cannot delete." in said
