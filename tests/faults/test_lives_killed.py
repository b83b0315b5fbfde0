"""A person's conversations told to a whole hub, and again while three of its processes are killed: the same is kept.

The whole of it, with LoCoMo and MemoryBank, is `python -m evals.lives`.
"""

from collections.abc import Iterator
from itertools import chain

import pytest

from evals.lives import NUMBERS, texts
from evals.talks import Session, Talk
from memories import conf
from tests.commands.hub import Hub
from tests.faults import end_state, killing, posting
from tests.faults.hubs import assert_sound, hub_asking
from tests.faults.parrot import Killer, Parrot
from tests.scratch import connect

ROLES = ("user", "assistant")
SEED = 7
# Of the model, whose caller is killed.
CALL = 3
WITHIN_SECONDS = 4.0
HURRIED = {
    "MEMORYHUB_EMBEDDINGS": "hashed",
    "MEMORYHUB_IDLE_SECONDS": "3",
    "MEMORYHUB_LEASE_SECONDS": "4",
    "MEMORYHUB_LLM_TIMEOUT": "3",
    "MEMORYHUB_LLM_CONCURRENCY": "2",
}
SAID = [
    ("The old mill by our river is for sale, and I went to look at it.", "What is it like inside?"),
    ("Damp, but the wheel still turns. 我很喜欢那个地方。", "听起来很美。"),
    ("My sister Ines thinks that I am mad.", "Sisters do. What would you do with it?"),
    ("Bake bread, and rent the upper floor to walkers.", "A bakery, then."),
    ("I learned to bake from my grandfather in Porto.", "You never said so!"),
    ("He woke me at four each morning, all summer.", "And now it would be you who wakes at four."),
    ("我对榛子过敏, so no hazelnut cake there.", "Noted: no hazelnuts."),
    ("ok", "Shall I look up what a mill needs by law?"),
    ("Yes, water rights above all. The neighbour draws from the same stream.", "I will begin with those."),
    ("His name is Bram and he keeps geese.", "Geese are loud tenants."),
    ("They chased the postman into our hedge last week.", "Poor man."),
    ("I sent him a loaf to make up for it.", "The first customer."),
    ("We sign on the ninth of March, if the bank agrees.", "Then I wish you a kind banker."),
]


def conversations(person: str) -> Talk:
    """One that overflows its window, one too short for an episode, and one that is never ended."""
    told = [[{"role": role, "content": text} for text, role in zip(pair, ROLES, strict=True)] for pair in SAID]
    held = [("mill", told, True), ("geese", told[9:10], True), ("bread", told[3:6], False)]
    return Talk(person, [Session(name, list(chain.from_iterable(rounds)), ends) for name, rounds, ends in held])


@pytest.fixture(scope="module")
def parrot() -> Parrot:
    return Parrot(seconds=0.1)


@pytest.fixture(scope="module")
def hub(parrot: Parrot) -> Iterator[Hub]:
    with hub_asking(parrot, **HURRIED) as hub:
        with connect(hub.home) as database:
            database.execute("UPDATE memories_tenant SET numbers = %s", [NUMBERS])
        yield hub


def test_killed_three_times_it_ends_as_undisturbed(hub: Hub, parrot: Parrot) -> None:
    untouched, killed = conversations("untouched"), conversations("killed")
    posting.post_all(hub, [untouched])
    parrot.first = killer = Killer(calls={CALL})
    plan = killing.planned(2, within=WITHIN_SECONDS, seed=SEED, victims=["the worker", "the embedder"])
    kills = killing.Killing(hub, plan)
    kills.start()
    posting.post_all(hub, [killed])
    kills.end()
    posting.wait_until_drained(hub)
    with connect(hub.home) as database:
        state = end_state.look(database, texts([untouched, killed]), conf.hub_rules())
    assert killer.killed == 1
    assert state.wrong == []
    assert state.digests["killed"] == state.digests["untouched"]
    # Of each: the trivial turn is not fed, nor its reply.
    turns, fed = 2 * (len(SAID) + 4), 2 * (len(SAID) + 3)
    assert (state.counts.turns, state.counts.fed, state.counts.facts) == (2 * turns, 2 * fed, 2 * (len(SAID) - 1))
    assert (state.counts.sessions, state.counts.qualifying) == (6, 4)
    assert_sound(hub)
