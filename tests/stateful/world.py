"""The world of the state machine: three people of two tenants, one clock, one model, and how a verb is called."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from django.db import models, transaction
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from memories.audit import Actor
from memories.capture.ingest import PostedMessage
from memories.exceptions import MemoryHubError
from memories.models import ActorKind, EndUser, Episode, Fact, ReviewItem, Session
from memories.retrieval import recalls
from tests import factories
from tests.stateful import answers
from tests.stateful.clock import BEGINNING, Clock
from tests.stateful.texts import TRIVIAL, marked

T = TypeVar("T")
R = TypeVar("R", bound=models.Model)

# So low that a short life reaches every limit.
NUMBERS = {
    "window_tokens": 200,
    "window_rounds": 3,
    "episode_turns": 2,
    "batch_tokens": 500,
    "capacity": 10,
    "max_attempts": 2,
    "brake_count": 2,
    "context_facts": 4,
    "context_corrections": 2,
    "context_standing": 2,
}
SESSIONS = ("monday", "tuesday")
WHO = st.sampled_from([0, 0, 0, 0, 1, 2])
NTH = st.integers(0, 11)
KEY = Actor(kind=ActorKind.KEY, id="key")


@dataclass
class Somebody:
    """A person with the marker of all that is theirs, and what each session must hold, in order."""

    marker: str
    row: EndUser
    said: dict[str, list[PostedMessage]]
    last_memory: str = ""


class World(RuleBasedStateMachine):
    """Rules come with the classes that inherit from it; each life is one transaction that is rolled back."""

    def __init__(self) -> None:
        super().__init__()
        self._life = transaction.atomic()
        self._life.__enter__()
        self.clock = Clock()
        ours, theirs = (factories.tenant(created_at=BEGINNING, **NUMBERS) for _ in range(2))
        self.people = [
            Somebody(marker, factories.end_user(tenant, external_id=marker, created_at=BEGINNING), {})
            for marker, tenant in (("Annika", ours), ("Bojan", ours), ("Wilhelmina", theirs))
        ]
        self.operator = Actor.operator(factories.operator())
        self.model = answers.present
        recalls._buffer.take()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self._life.__exit__(None, None, None)

    @property
    def now(self) -> Any:
        return self.clock.now

    def wait(self, **by: float) -> None:
        """Nothing happens twice at one moment."""
        self.clock.move(timedelta(seconds=1) + timedelta(**by))

    def do(self, verb: Callable[..., T], **given: Any) -> T | None:
        """What the verb returns; None when it says no in the hub's own words. Any other error ends the life."""
        self.wait()
        try:
            return verb(**given)
        except MemoryHubError:
            return None

    def actor(self, *, by_key: bool) -> Actor:
        return KEY if by_key else self.operator

    def pick_fact(self, who: int, nth: int, **by: Any) -> Fact | None:
        facts = Fact.objects.filter(end_user=self.people[who].row, **by)
        return nth_of(list(facts.order_by("created_at", "pk")), nth)

    def pick_episode(self, who: int, nth: int) -> Episode | None:
        return nth_of(list(Episode.objects.filter(end_user=self.people[who].row).order_by("pk")), nth)

    def pick_item(self, who: int, nth: int, **by: Any) -> ReviewItem | None:
        items = ReviewItem.objects.filter(end_user=self.people[who].row, **by)
        return nth_of(list(items.order_by("created_at", "pk")), nth)

    def sessions_of(self, who: int) -> list[Session]:
        return list(Session.objects.filter(end_user=self.people[who].row).order_by("pk"))

    def check_apart(self, who: int, told: object) -> None:
        """What is told of one person holds nothing of another (I3)."""
        text = str(told)
        strangers = [other.marker for index, other in enumerate(self.people) if index != who]
        assert [marker for marker in strangers if marker in text] == []


def nth_of(rows: Sequence[R], nth: int) -> R | None:
    return rows[nth % len(rows)] if rows else None


def of_person(messages: Sequence[PostedMessage], marker: str) -> list[PostedMessage]:
    """The messages with the person's marker in whatever says something."""
    return [one if one.content in TRIVIAL else replace(one, content=marked(marker, one.content)) for one in messages]
