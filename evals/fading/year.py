"""One person whose memories are left alone, said again, recalled, pinned …, night after night through the command."""

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.management import call_command

from memories import conf
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.restoring import restore_fact
from memories.models import ActorKind, Episode, Fact
from memories.retrieval import recalls
from memories.scoring.decay import DecayInput, decay_score
from tests import factories

BEGIN = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LAST = 365
GONE = "deleted for good"


@dataclass(frozen=True)
class Story:
    """A memory and what happens to it: on which days it is said again, recalled, or brought back by an operator."""

    name: str
    why: str
    kind: str = "fact"
    given: Mapping[str, Any] = field(default_factory=dict)
    stated_on: tuple[int, ...] = ()
    recalled: tuple[int, ...] = ()
    restored: tuple[int, ...] = ()


STORIES = (
    Story("plain", "stated once, never recalled", given={"importance": 0.8}),
    Story("reinforced", "stated again on days 60 and 100: decays later, and half as fast", given={"importance": 0.8},
          stated_on=(60, 100)),
    Story("recalled", "answers a question every 25 days until day 150", given={"importance": 0.8},
          recalled=tuple(range(25, 151, 25))),
    Story("pinned", "an operator pinned it", given={"importance": 0.8, "pinned": True}),
    Story("identity", "identity does not decay", given={"importance": 0.8, "category": "identity"}),
    Story("constraint", "an allergy does not decay", given={"importance": 0.8, "category": "constraint"}),
    Story("goal", "a goal decays like other facts", given={"importance": 0.6, "category": "goal"}),
    Story("trifle", "of little importance: moved to the trash after the first 30 days", given={"importance": 0.2}),
    Story("temporary", "was stated to hold for 14 days", given={"importance": 0.8, "expires_at": BEGIN + 14 * DAY}),
    Story("correction", "learned from a mistake: decays, unless an operator stated it",
          given={"importance": 0.8, "category": "correction"}),
    Story("operator's word", "an operator corrected it", given={"importance": 0.8, "binding": True}),
    Story("brought back", "decayed, and an operator restored it from the trash on day 220", given={"importance": 0.8},
          restored=(220,)),
    Story("episode", "is forgotten below 0.1 instead of 0.2", "episode", given={"importance": 0.8}),
    Story("episode, recalled", "answers a question on day 100", "episode", given={"importance": 0.8}, recalled=(100,)),
    Story("episode, weak", "of little importance", "episode", given={"importance": 0.3}),
    Story("episode, pinned", "an operator pinned it", "episode", given={"importance": 0.3, "pinned": True}),
)  # fmt: skip


@dataclass
class Year:
    """Of each story, day by day: what the pass made of it, and the score then (None once it is not active)."""

    states: dict[str, dict[int, str]]
    scores: dict[str, dict[int, float | None]]

    def left_on(self, name: str) -> int | None:
        """The first day on which it was not active any more."""
        return next((day for day, score in self.scores[name].items() if score is None), None)


def live(*, nights: Iterable[int], slug: str = "fading") -> Year:
    """Seed the person and live through these days, in order; each ends with `manage.py decay --now`."""
    tenant = factories.tenant(slug=slug)
    rows = _seed(tenant)
    year = Year({story.name: {} for story in STORIES}, {story.name: {} for story in STORIES})
    done = -1
    for night in nights:
        for day in range(done + 1, night + 1):
            _happen(rows, day)
        done = night
        now = BEGIN + night * DAY
        call_command("decay", "--tenant", slug, "--now", now.isoformat(), stdout=io.StringIO())
        for story in STORIES:
            _look(year, story, rows[story.name], night, now)
    return year


def _seed(tenant: Any) -> dict[str, Fact | Episode]:
    person = factories.end_user(tenant)
    rows: dict[str, Fact | Episode] = {}
    for story in STORIES:
        if story.kind == "fact":
            rows[story.name] = factories.fact(person, f"The fact {story.name}", now=BEGIN, **story.given)
        else:
            session = factories.session(person)
            rows[story.name] = factories.episode(session, f"The {story.name}", now=BEGIN, **story.given)
    return rows


def _happen(rows: Mapping[str, Fact | Episode], day: int) -> None:
    now = BEGIN + day * DAY
    for story in STORIES:
        row = rows[story.name]
        if day in story.recalled:
            recalls.note(story.kind, [row.pk], now=now)
        if day in story.stated_on:
            _say_again(row.pk, now)
        if day in story.restored:
            actor = Actor(kind=ActorKind.OPERATOR)
            restore_fact(fact_id=row.pk, tenant=None, actor=actor, now=now)
    recalls.flush(now=now)


def _say_again(fact_id: Any, now: datetime) -> None:
    """As an extraction does that finds the same text."""
    fact = Fact.objects.select_related("tenant", "end_user").get(pk=fact_id)
    with Changes(actor=Actor(kind=ActorKind.RUN), now=now).changing(fact, "reinforce"):
        fact.mentions += 1
        fact.last_confirmed_at = now


def _look(year: Year, story: Story, row: Fact | Episode, night: int, now: datetime) -> None:
    found = type(row)._default_manager.filter(pk=row.pk).select_related("tenant").first()
    state = found.status if found else GONE
    year.states[story.name][night] = state
    year.scores[story.name][night] = _score(found, now) if found and state == "active" else None


def _score(row: Any, now: datetime) -> float:
    if row.protected:
        return float(row.importance)
    memory = DecayInput(row.importance, row.last_reinforced)
    if isinstance(row, Fact):
        memory = memory._replace(mentions=row.mentions, category=row.category)
    return decay_score(memory, conf.rules(row.tenant), now=now)
