"""The index of many episodes: kept until something of them changes, and then as it is read anew."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from memories import conf
from memories.models import EndUser, Episode, EpisodeVector, Session, Tenant
from memories.retrieval import episode_search
from memories.retrieval.episode_search import EpisodeIndex
from tests import factories
from tests.context.test_context import build
from tests.database import statements
from tests.factories import NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(external_id="u1")


@pytest.fixture
def session(person: EndUser) -> Session:
    session = factories.session(person, [("user", str(number)) for number in range(9)])
    for number, summary in enumerate(("Saw a quokka", "Baked bread", "Paid"), start=1):
        at = NOW - timedelta(hours=10 - number)
        factories.episode(session, summary, first_number=number, last_number=number, now=at)
    return session


def edited(session: Session) -> None:
    episode = Episode.objects.get(summary="Baked bread")
    episode.set_text("Baked rye bread")
    episode.save()


def embedded_anew(session: Session) -> None:
    row = EpisodeVector.objects.get(episode__summary="Paid")
    EpisodeVector.objects.filter(pk=row.pk).update(vector=[-number for number in row.vector])


def a_day_later(session: Session) -> datetime:
    return NOW + timedelta(days=1)


CHANGES: list[Callable[[Session], Any]] = [
    edited,
    embedded_anew,
    a_day_later,
    lambda session: EpisodeVector.objects.filter(episode__summary="Paid").delete(),
    lambda session: Episode.objects.filter(summary="Paid").update(last_recalled_at=NOW),
    lambda session: Episode.objects.filter(summary="Paid").update(status="trashed"),
    lambda session: Session.objects.filter(pk=session.pk).update(external_id="other"),
    lambda session: factories.episode(session, "Sailed", first_number=4, last_number=4),
    lambda session: Tenant.objects.filter(pk=session.tenant_id).update(numbers={"half_life_days": 5}),
]


def test_an_index_is_kept_until_something_changes(
    person: EndUser, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = embed_all(person)

    def opened(now: datetime) -> EpisodeIndex:
        rules = conf.rules(Tenant.objects.get(pk=person.tenant_id))
        return episode_search.open_index(person, space, rules=rules, now=now)

    now = NOW
    for change in CHANGES:
        with monkeypatch.context() as patch:
            patch.setattr(episode_search, "FEW", 1)
            kept = opened(now)
            assert opened(now) is kept
            # A turn that is posted changes nothing.
            factories.session(person, [("user", "Hello")], session_id=session.external_id)
            assert opened(now) is kept
            changed = change(session)
            now = changed if isinstance(changed, datetime) else now
            index = opened(now)
            assert index is not kept
            assert opened(now) is index
        anew = opened(now)
        assert anew.summaries is not None
        assert index.episodes == anew.episodes
        session.refresh_from_db()


def test_summaries_are_read_of_those_that_are_told(
    person: EndUser, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(**over: Any) -> tuple[list[str], int]:
        given = build(person, include=frozenset({"episodes"}), **over)
        return [Episode.objects.get(pk=item["id"]).summary for item in given.items], len(given.dropped)

    ways: list[dict[str, Any]] = [
        {"limits": {"episodes": 1}},
        {"query": "quokka?", "limits": {"episodes": 1}},
        {"query": "bread", "limits": {"episodes": 2}},
    ]
    few = [told(**way) for way in ways]
    assert few[:2] == [(["Paid"], 2), (["Saw a quokka"], 2)]
    monkeypatch.setattr(episode_search, "FEW", 1)
    assert [told(**way) for way in ways] == few
    include = frozenset({"episodes"})
    read = statements(lambda: build(person, include=include, **ways[1]))
    assert sum("summary" in sql for sql in read) == 2
    # Of those beyond the limit a heavy person has thousands.
    monkeypatch.setattr("memories.context.context.MOST_DROPPED", 1)
    assert [told(**way)[1] for way in ways] == [1, 1, 1]
