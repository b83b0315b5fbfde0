"""What was corrected or forgotten is not recalled from the turns that said it."""

from datetime import UTC, datetime, timedelta

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
    assert Outdated(person).told(_turn(said)) == said
    now = timezone.now() + timedelta(minutes=1)
    correct_fact(fact_id=fact.pk, tenant=None, content="Is a product manager", reason="", actor=COMMAND, now=now)
    outdated = Outdated(person)
    assert outdated.told(_turn(said)) == "Hello there. I like tea."
    assert outdated.since(_turn(said)) == now
    # Said again later, it is the person's word.
    assert outdated.told(_turn(said, at=timedelta(hours=1))) == said


def test_a_forgotten_statement_is_left_out_until_it_is_restored(django_assert_num_queries) -> None:  # type: ignore[no-untyped-def]
    person = factories.end_user()
    fact = factories.fact(person, "住在杭州")
    now = timezone.now() + timedelta(minutes=1)
    forget_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=now)
    outdated = Outdated(person)
    with django_assert_num_queries(1):
        assert not outdated.is_empty
    assert outdated.told(_turn("我现在住在杭州。今天有点累。")) == "今天有点累。"
    fact.refresh_from_db()
    fact.status, fact.trashed_at = "active", None
    fact.save()
    assert Outdated(person).told(_turn("我现在住在杭州。")) == "我现在住在杭州。"


def _forgotten(content: str) -> Outdated:
    person = factories.end_user()
    now = timezone.now() + timedelta(minutes=1)
    forget_fact(fact_id=factories.fact(person, content).pk, tenant=None, actor=COMMAND, now=now)
    return Outdated(person)


@pytest.mark.parametrize(
    ("content", "said", "others"),
    [
        (
            "Lives in Leiden",
            ["I live in Leiden.", "We've lived in Leiden since 2019.", "Ich wohne in Leiden."],
            [
                "I no longer live in Leiden.", "What is the weather in Leiden?", "My brother lives in Leiden.",
                "I met Tom in Leiden.", "I want to visit Leiden.",
            ],
        ),
        (
            "Works as a data engineer at a bank",
            ["I'm a data engineer at a bank."],
            ["My boss is a data engineer.", "How does one become a data engineer?"],
        ),
        ("Allergic to peanuts", ["I have a peanut allergy."], ["I bought peanuts for the birds."]),
        ("住在杭州", ["我现在住在杭州。", "我家在杭州。"], ["我不住在杭州了。", "杭州天气怎么样？", "我喜欢杭州。"]),
    ],
)  # fmt: skip
def test_what_only_shares_words_with_it_stays(content: str, said: list[str], others: list[str]) -> None:
    outdated = _forgotten(content)
    assert [outdated.told(_turn(one)) for one in said] == [""] * len(said)
    assert [outdated.told(_turn(one)) for one in others] == others


def test_the_sentence_that_it_was_taken_from_goes_in_whatever_words() -> None:
    person = factories.end_user()
    session = factories.session(person, [("user", "Hello. My flat overlooks the Rapenburg.")])
    turn = session.turns.get()
    fact = factories.fact(person, "Lives in Leiden")
    factories.evidence(fact, turn, "My flat overlooks the Rapenburg.")
    assert Outdated(person).told(turn) == turn.content
    now = timezone.now() + timedelta(minutes=1)
    forget_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=now)
    assert Outdated(person).told(turn) == "Hello."


def test_the_day_since_when_something_is_over_is_one_of_the_persons_zone() -> None:
    person = factories.end_user(time_zone="Asia/Shanghai")
    until = datetime(2026, 3, 1, 20, tzinfo=UTC)
    after = factories.fact(person, "Lives in Utrecht")
    factories.fact(person, "Lives in Leiden", status="superseded", superseded_by=after, valid_to=until)
    said = Turn(role="user", content="I live in Leiden.", created_at=until - timedelta(days=1))
    assert Outdated(person).told(said) == "I live in Leiden. (no longer true since 2026-03-02)"
