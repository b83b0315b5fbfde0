"""What was corrected or forgotten is not recalled from the turns that said it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.models import ActorKind, Turn
from memories.retrieval.outdated import Outdated
from tests import factories

pytestmark = pytest.mark.django_db
COMMAND = Actor(kind=ActorKind.COMMAND)


def _turn(said: str, *, at: timedelta = timedelta(0)) -> Turn:
    return Turn(role="user", content=said, created_at=timezone.now() + at)


def test_a_correction_leaves_the_old_sentence_out() -> None:
    person = factories.end_user()
    fact = factories.fact(person, "Works as a data engineer at a bank")
    said = "Hello there. I work as a data engineer. I like tea."
    assert Outdated.of(person).told(_turn(said)) == said
    now = timezone.now() + timedelta(minutes=1)
    correct_fact(fact_id=fact.pk, tenant=None, content="Is a product manager", reason="", actor=COMMAND, now=now)
    outdated = Outdated.of(person)
    assert outdated.told(_turn(said)) == "Hello there. I like tea."
    assert outdated.since(_turn(said)) == now
    # Said again later, it is the person's word.
    assert outdated.told(_turn(said, at=timedelta(hours=1))) == said


def test_a_forgotten_statement_is_left_out_until_it_is_restored(django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    person = factories.end_user()
    fact = factories.fact(person, "住在杭州")
    now = timezone.now() + timedelta(minutes=1)
    forget_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=now)
    with django_assert_num_queries(1):
        outdated = Outdated.of(person)
    assert outdated.told(_turn("我现在住在杭州。今天有点累。")) == "今天有点累。"
    fact.refresh_from_db()
    fact.status, fact.trashed_at = "active", None
    fact.save()
    assert Outdated.of(person).told(_turn("我现在住在杭州。")) == "我现在住在杭州。"
