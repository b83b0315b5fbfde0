"""Refreshing in SQL says what refresh_decay() says of one memory."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memories import conf
from memories.forgetting import stored_scores
from memories.models import Category, EndUser, Episode, Fact, Session
from tests import factories
from tests.database import held
from tests.factories import NOW

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
ages = st.one_of(st.none(), st.integers(-400, 40_000))
rules_of = st.builds(
    lambda **own: conf.Rules(**{**vars(conf.hub_rules()), **own}),
    half_life_days=st.floats(1, 3650),
    half_lives=st.dictionaries(st.sampled_from([*Category.values, "episode"]), st.none() | st.floats(1, 3650)),
    grace_days=st.floats(0, 365),
    forget_below=st.floats(0.01, 1) | st.just(0.0),
    forget_episodes_below=st.floats(0.01, 1) | st.just(0.0),
)
memories = st.fixed_dictionaries(
    {
        "importance": st.floats(0, 1),
        "pinned": st.booleans(),
        "binding": st.booleans(),
        "locked": st.booleans(),
        "mentions": st.integers(1, 2**31 - 1),
        "category": st.sampled_from(Category.values),
        "said": st.integers(-400, 40_000),
        "recalled": ages,
    }
)
# PostgreSQL refuses products that are too small for a float.
NEXT_TO_NOTHING = {
    "importance": 1e-300, "pinned": False, "binding": False, "locked": False, "mentions": 1, "category": "goal",
    "said": 40_000, "recalled": None,
}  # fmt: skip
EXAMPLES = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def session(db: None) -> Session:
    return factories.session(factories.end_user())


@EXAMPLES
@given(rules=rules_of, given_memory=memories)
@example(rules=conf.hub_rules(), given_memory=NEXT_TO_NOTHING)
def test_sql_says_of_a_fact_what_python_says(session: Session, rules: conf.Rules, given_memory: dict[str, Any]) -> None:
    own = {name: given_memory[name] for name in ("importance", "pinned", "binding", "locked", "mentions", "category")}
    Fact.objects.all().delete()
    fact = factories.fact(session.end_user, **own, last_confirmed_at=_ago(given_memory["said"]))
    Fact.objects.update(last_recalled_at=_recalled(given_memory), decay_score=-1, forget_at=None)
    _holds(fact, session.end_user, rules)


@EXAMPLES
@given(rules=rules_of, given_memory=memories)
@example(rules=conf.hub_rules(), given_memory=NEXT_TO_NOTHING)
def test_sql_says_of_an_episode_what_python_says(
    session: Session, rules: conf.Rules, given_memory: dict[str, Any]
) -> None:
    own = {name: given_memory[name] for name in ("importance", "pinned", "binding")}
    Episode.objects.all().delete()
    episode = factories.episode(session, **own, created_at=_ago(given_memory["said"]))
    Episode.objects.update(last_recalled_at=_recalled(given_memory), decay_score=-1, forget_at=NOW)
    _holds(episode, session.end_user, rules)


def test_the_second_look_finds_nothing_to_do(session: Session) -> None:
    for number in range(1, 10):
        factories.fact(session.end_user, f"Weighs {number}", importance=number / 10, mentions=number)
    rules, later = conf.hub_rules(), NOW + 100 * DAY
    assert stored_scores.refresh(session.tenant, [session.end_user_id], rules=rules, now=later) == 9
    assert stored_scores.refresh(session.tenant, [session.end_user_id], rules=rules, now=later) == 0
    # The next night's score is still near enough.
    assert stored_scores.refresh(session.tenant, [session.end_user_id], rules=rules, now=later + DAY) == 0


@pytest.mark.django_db(transaction=True)
def test_what_somebody_holds_is_left_to_him() -> None:
    person = factories.end_user()
    taken, free = (factories.fact(person, text, importance=0.8) for text in ("Likes tea", "Likes jazz"))
    rules, later = conf.hub_rules(), NOW + 120 * DAY
    with held(lambda: Fact.objects.select_for_update(no_key=True).get(pk=taken.pk)):
        assert stored_scores.refresh(person.tenant, [person.pk], rules=rules, now=later) == 1
    assert [Fact.objects.get(pk=fact.pk).decay_score for fact in (taken, free)] == pytest.approx([0.8, 0.4])


def _ago(days: int) -> datetime:
    return NOW - timedelta(days=days, microseconds=days)


def _recalled(given_memory: dict[str, Any]) -> datetime | None:
    return None if given_memory["recalled"] is None else _ago(given_memory["recalled"])


def _holds(row: Fact | Episode, person: EndUser, rules: conf.Rules) -> None:
    stored_scores.refresh(person.tenant, [person.pk], rules=rules, now=NOW)
    row.refresh_from_db()
    score, date = row.decay_score, row.forget_at
    row.refresh_decay(now=NOW, rules=rules)
    assert score == pytest.approx(row.decay_score, abs=1e-9)
    assert (date is None) == (row.forget_at is None)
    if date and row.forget_at:
        assert abs(date - row.forget_at) < SECOND
