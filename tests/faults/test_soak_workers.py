"""Four workers and hundreds of due sessions: random kills, errors, a batch that kills, and each batch once."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from memories import conf
from memories.models import ExtractionRun, SessionQueue
from tests import factories
from tests.faults.conftest import Note
from tests.faults.crowd import SHORT, Crowd
from tests.faults.parrot import Killer, Parrot
from tests.faults.workers import running, wait_until
from tests.llm.endpoint import running as endpoint_running

pytestmark = pytest.mark.soak

WORKERS = 4
PATIENCE = 240.0
# Of the speed without the fault.
WANTED = 0.8
SEED = 20_26
DEADLY = "deadly"


@pytest.fixture
def parrot(transactional_db: None, settings: Settings, tmp_path: Path) -> Iterator[Parrot]:
    """What four clusters of one process each ask; each answer takes 0.3 s."""
    parrot = Parrot(seconds=0.3)
    with endpoint_running() as endpoint:
        endpoint.responds(parrot)
        settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL = "openai", endpoint.url
        with running(*[{**SHORT, "OPENAI_BASE_URL": endpoint.url}] * WORKERS, folder=tmp_path):
            # They have loaded what they need.
            work_off(Crowd(settings, 2 * WORKERS, "hedgehog"))
            yield parrot


def work_off(crowd: Crowd) -> float:
    crowd.become_due()
    return crowd.work_off(within=PATIENCE)


def test_random_kills_and_errors(parrot: Parrot, settings: Settings, note: Note) -> None:
    """300 sessions, 15 % of the answers errors, ten kills, against the same without kills."""
    parrot.faulty, parrot.seed = 0.15, SEED
    seconds, most = {}, {}
    for name, calls in (("cat", []), ("dog", random.Random(SEED).sample(range(20, 300), 10))):
        killer = Killer(calls=calls)
        parrot.first = killer
        crowd = Crowd(settings, 300, name)
        seconds[name], most[name] = work_off(crowd), crowd.seconds_for(0.95)
        assert crowd.wrong() == {}
        assert killer.killed == len(calls)
    ratio = most["cat"] / most["dog"]
    note("300 sessions, 15 % errors", seconds["cat"], f"95 % of them after {most['cat']:.1f} s")
    note(
        "300 sessions, 15 % errors, 10 kills",
        seconds["dog"],
        f"95 % after {most['dog']:.1f} s: {ratio:.0%} of the speed",
    )
    assert ratio >= WANTED


def test_a_batch_that_kills_its_worker_each_time(parrot: Parrot, settings: Settings, note: Note) -> None:
    alone = Crowd(settings, 300, "cat")
    before = work_off(alone)
    killer = Killer(word=DEADLY)
    parrot.first = killer
    others = Crowd(settings, 300, "dog")
    deadly = factories.session(factories.end_user(), (("user", f"My {DEADLY} 蛇"), ("assistant", "Oh")), flush=True)
    beside = work_off(others)
    wait_until(lambda: SessionQueue.objects.filter(pk=deadly.pk, parked_at__isnull=False).exists(), within=PATIENCE)
    queue = SessionQueue.objects.get(pk=deadly.pk)
    attempts = conf.hub_rules().max_attempts
    ratio = before / beside
    note(
        "a batch that kills its worker each time",
        beside,
        f"{killer.killed} kills, others at {ratio:.0%} of {before:.1f} s",
    )
    assert (queue.failure, killer.killed) == ("worker_lost", attempts)
    runs = ExtractionRun.objects.filter(session=deadly).order_by("attempt")
    assert [run.failure for run in runs] == ["worker_lost"] * attempts
    assert (runs[attempts - 1].status, others.runs(status="committed")) == ("parked", 300)
    assert ratio >= WANTED


def test_four_clusters_take_each_batch_once(parrot: Parrot, settings: Settings, note: Note) -> None:
    # Before: the clusters arm by themselves what was stored without a model.
    parrot.batches.clear()
    crowd = Crowd(settings, 200, "cat")
    seconds = work_off(crowd)
    note("200 sessions, four clusters", seconds, f"{sum(parrot.batches.values())} calls")
    assert crowd.wrong() == {}
    assert len(parrot.batches) == 200
    assert set(parrot.batches.values()) == {1}
    assert crowd.runs() == crowd.runs(status="committed", calls=1, attempt=1) == 200
