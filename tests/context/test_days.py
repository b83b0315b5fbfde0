"""Days in contexts, prompts and tools are those of the person's time zone, which each of them names once."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from memories.context import context
from memories.context.context import ContextRequest
from memories.dream import reflecting, unread
from memories.extraction import consolidation
from memories.llm import tokens
from memories.models import EndUser, Episode, Fact, Tenant
from tests import factories
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db

# Zone, a moment, the day there: another one than in UTC, but for the controls.
MOMENTS = [
    ("America/Los_Angeles", "2026-11-21T02:30:00+00:00", "2026-11-20"),
    ("Asia/Shanghai", "2026-11-19T22:30:00+00:00", "2026-11-20"),
    ("Asia/Kolkata", "2026-11-19T23:00:00+00:00", "2026-11-20"),
    ("Pacific/Auckland", "2026-11-19T20:00:00+00:00", "2026-11-20"),
    ("Europe/Berlin", "2026-07-19T23:30:00+00:00", "2026-07-20"),
    ("Europe/Berlin", "2026-11-20T12:00:00+00:00", "2026-11-20"),
    ("UTC", "2026-11-20T23:30:00+00:00", "2026-11-20"),
    ("", "2026-11-20T23:30:00+00:00", "2026-11-20"),
]
# West and east of UTC, and none.
ZONES = [MOMENTS[0], MOMENTS[1], MOMENTS[-1]]
EVERYTHING = frozenset({"episodes", "turns", "diary", "files", "groups", "graph", "unextracted"})


def everything_of(zone: str, at: datetime, tenant: Tenant | None = None) -> EndUser:
    """A person with one memory of each kind that has a day, all of one moment."""
    person = factories.end_user(tenant, time_zone=zone)
    session = factories.session(person, [("user", "I signed the lease.")])
    session.turns.update(created_at=at, timestamp=at)
    factories.episode(session, "Signed a lease.", now=at)
    factories.diary_entry(person, "Asked about the lease.", created_at=at)
    factories.memory_file(person, "/memories/notes.md", "The lease", updated_at=at)
    factories.group_fact(factories.memory_group(person), person, content="The lease is signed.", said_at=at)
    factories.triple(person, "user", "signed", "the lease", now=at)
    return person


def built(person: EndUser, at: datetime, **over: Any) -> context.Context:
    request = ContextRequest(person.external_id, include=EVERYTHING, **over)
    return context.build(tenant=person.tenant, request=request, now=at + timedelta(days=1))


@pytest.mark.parametrize(
    ("zone", "at", "day", "query"),
    [*((*one, "") for one in MOMENTS), *((*one, "Did I sign the lease?") for one in ZONES)],
)
def test_every_line_has_the_persons_day(zone: str, at: str, day: str, query: str) -> None:
    moment = datetime.fromisoformat(at)
    found = built(everything_of(zone, moment), moment, query=query)
    kinds = {item["kind"] for item in found.items}
    assert kinds == {"turn", "episode", "diary", "file", "group_fact", "triple"}
    assert found.memory.count(day) == len(found.items)
    assert found.memory.count(zone or "UTC") == 1
    assert tokens.count(found.memory) == found.token_count


def test_a_person_without_a_zone_has_the_tenants() -> None:
    at = datetime(2026, 11, 19, 22, 30, tzinfo=UTC)
    person = everything_of("", at, factories.tenant(time_zone="Asia/Shanghai"))
    assert "Recalled turns:\n2026-11-20:\n" in built(person, at).memory
    assert "Asia/Shanghai" in built(person, at).memory


def test_the_zone_counts_in_the_budget() -> None:
    at = datetime(2026, 11, 19, 22, 30, tzinfo=UTC)
    person = everything_of("Asia/Shanghai", at)
    whole = built(person, at)
    for budget in range(whole.token_count - 40, whole.token_count + 1, 5):
        found = built(person, at, max_tokens=budget)
        assert tokens.count(found.memory) == found.token_count <= budget
    assert found.memory == whole.memory


def test_a_day_that_somebody_stated_is_no_moment() -> None:
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    person = factories.end_user(time_zone="America/Los_Angeles")
    factories.triple(person, "user", "signed", "the lease", now=at, valid_from=datetime(2026, 3, 1, tzinfo=UTC))
    assert "[since 2026-03-01]" in built(person, at).memory


@pytest.mark.parametrize(("zone", "at", "day"), ZONES)
def test_the_prompt_of_an_extraction_pairs_the_turn_with_its_day(zone: str, at: str, day: str, model: Model) -> None:
    moment = datetime.fromisoformat(at)
    session = factories.session(factories.end_user(time_zone=zone), [("user", "I leave tomorrow.")], flush=True)
    session.turns.update(created_at=moment, timestamp=moment)
    tomorrow = date.fromisoformat(day) + timedelta(days=1)
    said = {"evidence": [1], "quote": "I leave tomorrow"}
    later = tomorrow + timedelta(days=1)
    model.say(candidate(f"Leaves on {tomorrow}", **said), candidate(f"Leaves on {later}", **said))
    consolidation.consolidate(session_id=session.pk, now=moment + timedelta(days=3))
    (prompt,) = model.prompts
    assert f"Today: {day} (" in prompt
    assert f'at="{day}T' in prompt
    assert prompt.count(f"), {zone or 'UTC'}\n") == 1
    # The gate counts from the same day.
    assert {(fact.content[-10:], fact.status) for fact in Fact.objects.all()} == {
        (str(tomorrow), "active"),
        (str(later), "pending"),
    }


@pytest.mark.parametrize(("zone", "at", "day"), ZONES)
def test_prompts_have_one_zone(zone: str, at: str, day: str) -> None:
    moment = datetime.fromisoformat(at)
    person = everything_of(zone, moment)
    episodes = list(Episode.objects.filter(end_user=person))
    for messages in (
        reflecting.messages(person, "", episodes, now=moment),
        unread.messages(person, "", episodes, now=moment),
    ):
        data = messages[-1]["content"]
        assert f"Today: {day} (" in data
        assert data.count(f"), {zone or 'UTC'}\n") == 1
        assert f'at="{day}T' in data
