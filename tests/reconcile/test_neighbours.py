"""Which known facts are proposed for a candidate: this person's, as they are now, near enough, and few."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models.functions import Now

from memories.curation.facts.forgetting import forget_fact
from memories.curation.review.suggestions import reject_fact
from memories.exceptions import EmbeddingTimeout, EmbeddingUnavailable, LeaseLost
from memories.llm import embeddings
from memories.models import EmbeddingSpace, EndUser, Fact, FactRefusal
from memories.reconcile import neighbours
from memories.reconcile.gate import Accepted
from memories.reconcile.judgement import Proposal
from memories.scoring import nearness
from tests import factories, vectors
from tests.database import statements
from tests.factories import NOW
from tests.reconcile.candidates import accepted
from tests.tables.nearness import MISSED, OPPOSED, PARAPHRASES, Pair

pytestmark = pytest.mark.django_db
TEA = "Likes green tea"
# By hashed words: 0.93, 0.91, 0.89, 0.88, 0.84 near TEA; the last two are not.
NEAR = [f"{TEA} cold", f"{TEA} daily", f"{TEA} strong", f"{TEA} hot", "Likes green apples"]
FAR = ["Lives in Leiden", "Has two cats"]


@pytest.fixture
def space() -> EmbeddingSpace:
    return vectors.space(embeddings.HASHED, 16)


def knows(person: EndUser, *contents: str, **over: Any) -> list[Fact]:
    """Facts with their vectors."""
    facts = [factories.fact(person, content, **over) for content in contents]
    vectors.embed_all(person, vectors.space(embeddings.HASHED, 16))
    return facts


def refused(person: EndUser, content: str, verb: Callable[..., Any] = forget_fact) -> Fact:
    [fact] = knows(person, content)
    verb(fact_id=fact.pk, tenant=None, actor=factories.COMMAND, now=NOW)
    fact.refresh_from_db()
    return fact


def propose(person: EndUser, *candidates: Accepted, before_call: Callable[[], None] = lambda: None) -> list[Proposal]:
    return neighbours.propose(person=person, candidates=candidates, now=NOW, before_call=before_call)


def near(person: EndUser, candidate: Accepted) -> list[str]:
    return [found.content for proposal in propose(person, candidate) for found in proposal.neighbours]


def test_the_three_nearest_above_the_floor_nearest_first(person: EndUser) -> None:
    facts = knows(person, *FAR, *reversed(NEAR), key="drink", binding=True)
    [proposal] = propose(person, accepted(TEA, 7), accepted("Plays chess", 8))
    assert proposal.candidate.index == 7
    assert [found.content for found in proposal.neighbours] == NEAR[:3]
    first = proposal.neighbours[0]
    cold = next(fact for fact in facts if fact.content == NEAR[0])
    assert (first.fact_id, first.content_hash) == (cold.pk, bytes(cold.content_hash))
    assert (first.category, first.key, first.binding, first.refused) == ("knowledge", "drink", True, False)
    assert first.similarity == pytest.approx(0.93, abs=0.01)


@pytest.mark.parametrize("most", [1, 4])
def test_a_tenant_says_how_many(person: EndUser, most: int) -> None:
    knows(person, *NEAR)
    factories.set_numbers(person.tenant, near_facts=most)
    assert near(person, accepted(TEA)) == NEAR[:most]
    assert len(neighbours.beside(person=person, statement=accepted(TEA), now=NOW)) == most


def test_each_candidate_has_its_own_and_none_is_held_against_another(person: EndUser) -> None:
    knows(person, NEAR[4], "Works in Leiden")
    found = propose(person, accepted(TEA, 0), accepted(NEAR[0], 1), accepted("Lives in Leiden", 2))
    near = {proposal.candidate.index: [one.content for one in proposal.neighbours] for proposal in found}
    assert near == {0: [NEAR[4]], 1: [NEAR[4]], 2: ["Works in Leiden"]}


@pytest.mark.parametrize("over", [{"waits": True}, {"flags": ("possible_secret",)}])
def test_what_waits_for_review_is_not_compared(person: EndUser, over: dict[str, Any]) -> None:
    knows(person, NEAR[0])
    assert near(person, accepted(TEA)) == [NEAR[0]]
    assert near(person, accepted(TEA, **over)) == []


@pytest.mark.parametrize("status", ["active", "pending"])
def test_a_known_text_needs_no_proposal(person: EndUser, status: str) -> None:
    knows(person, NEAR[0])
    knows(person, "likes  GREEN tea", status=status)
    assert near(person, accepted(TEA)) == []
    assert near(person, accepted(f"{TEA} today"))


def test_a_known_key_needs_none_either_where_values_decide(person: EndUser) -> None:
    knows(person, NEAR[0], key="drink", value="tea")
    assert near(person, accepted(TEA, key="drink", value="green tea")) == []
    assert near(person, accepted(TEA, key="drink")) == [NEAR[0]]
    assert near(person, accepted(TEA, key="drinks", value="green tea")) == [NEAR[0]]


@pytest.mark.parametrize(
    "over",
    [
        {"status": "pending"},
        {"status": "superseded"},
        {"status": "archived"},
        {"agent_id": "helper"},
        {"expires_at": NOW},
    ],
)
def test_only_the_persons_own_active_facts(person: EndUser, over: dict[str, Any]) -> None:
    knows(person, NEAR[0], **over)
    assert near(person, accepted(TEA)) == []
    Fact.objects.update(status="active", agent_id="", expires_at=NOW + timedelta(seconds=1))
    assert near(person, accepted(TEA)) == [NEAR[0]]


def test_of_nobody_else(person: EndUser) -> None:
    for other in (factories.end_user(person.tenant), factories.end_user(external_id=person.external_id)):
        knows(other, NEAR[0])
        assert near(other, accepted(TEA)) == [NEAR[0]]
    knows(person, FAR[0])
    assert near(person, accepted(TEA)) == []


def test_a_vector_of_an_earlier_text_is_none(person: EndUser) -> None:
    [fact] = knows(person, NEAR[0])
    fact.set_text("Has a boat")
    fact.save()
    assert near(person, accepted(TEA)) == []


def test_a_text_that_changes_while_it_is_compared_is_left_out(person: EndUser, space: EmbeddingSpace) -> None:
    fact, other = knows(person, NEAR[0], NEAR[1])

    def meanwhile() -> None:
        fact.set_text("Has a boat")
        fact.save()

    [proposal] = propose(person, accepted(TEA), before_call=meanwhile)
    assert [found.fact_id for found in proposal.neighbours] == [other.pk]
    Fact.objects.filter(pk=other.pk).update(status="archived")
    assert propose(person, accepted(TEA)) == []


def test_the_nearest_refused_fact_comes_along(person: EndUser) -> None:
    refused(person, NEAR[1])
    gone = refused(person, NEAR[0])
    knows(person, *NEAR[2:])
    [proposal] = propose(person, accepted(TEA))
    assert [(found.content, found.refused) for found in proposal.neighbours] == [
        (NEAR[0], True),
        *((content, False) for content in NEAR[2:]),
    ]
    assert proposal.neighbours[0].fact_id == gone.pk
    assert [found.content for found in proposal.to_judge] == NEAR[2:], "nobody is asked about it"


def test_a_refused_one_must_lie_nearer(person: EndUser) -> None:
    refused(person, NEAR[2])
    assert near(person, accepted(TEA)) == [], "0.89 is not 0.9"
    knows(person, NEAR[3])
    assert near(person, accepted(TEA)) == [NEAR[3]], "but for an active one it is enough"


def test_a_value_for_a_known_key_is_still_held_against_what_was_refused(person: EndUser) -> None:
    refused(person, NEAR[0])
    knows(person, NEAR[1], key="drink", value="tea")
    assert near(person, accepted(TEA, key="drink", value="green tea")) == [NEAR[0]]


def test_what_lies_in_the_trash_unrefused_holds_nothing_back(person: EndUser) -> None:
    refused(person, NEAR[0])
    assert near(person, accepted(TEA)) == [NEAR[0]]
    FactRefusal.objects.all().delete()
    assert near(person, accepted(TEA)) == []


def test_a_rejected_suggestion(person: EndUser) -> None:
    [fact] = knows(person, NEAR[0], status="pending")
    reject_fact(fact_id=fact.pk, actor=factories.COMMAND, now=NOW)
    assert [one.refused for proposal in propose(person, accepted(TEA)) for one in proposal.neighbours] == [True]


def test_statements_do_not_grow_with_candidates(person: EndUser) -> None:
    refused(person, f"{TEA} often")
    knows(person, *NEAR)
    few = statements(lambda: propose(person, accepted(TEA)))
    many = statements(lambda: propose(person, *(accepted(f"{TEA} {n}", n) for n in range(200))))
    assert len(many) == len(few) == 4


def test_nothing_is_embedded_for_somebody_without_vectors(
    person: EndUser, space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.fact(person, NEAR[0])
    monkeypatch.setattr(embeddings, "embed", breaking)
    assert propose(person, accepted(TEA)) == []
    assert propose(person) == []


def test_before_there_is_a_space(person: EndUser) -> None:
    factories.fact(person, NEAR[0])
    assert propose(person, accepted(TEA)) == []
    assert not EmbeddingSpace.objects.exists()


def breaking(*_: Any, **__: Any) -> None:
    raise AssertionError


@pytest.mark.parametrize("error", [EmbeddingUnavailable(retry_after=40), EmbeddingTimeout()])
def test_a_failing_endpoint_is_left_alone_for_a_while(
    person: EndUser, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    knows(person, NEAR[0])

    def failing(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(embeddings, "embed", failing)
        assert propose(person, accepted(TEA)) == []
        assert EmbeddingSpace.objects.filter(failures=1, paused_until__gt=Now()).exists()
        patch.setattr(embeddings, "embed", breaking)
        assert propose(person, accepted(TEA)) == []
    EmbeddingSpace.objects.update(paused_until=Now() - timedelta(seconds=1))
    assert near(person, accepted(TEA)) == [NEAR[0]]
    assert EmbeddingSpace.objects.get().failures == 0


def test_a_model_that_is_not_to_be_had_here(person: EndUser) -> None:
    knows(person, NEAR[0])
    EmbeddingSpace.objects.update(model="openai:elsewhere")
    assert propose(person, accepted(TEA)) == []


def test_the_floors_of_another_model_are_asked_for_once(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    knows(person, NEAR[0])
    monkeypatch.setattr(nearness, "FLOORS", {})
    neighbours._calibrated.cache_clear()
    asked: list[int] = []
    embed = embeddings.embed

    def counting(texts: Sequence[str], **rest: Any) -> Any:
        asked.append(len(texts))
        return embed(texts, **rest)

    monkeypatch.setattr(embeddings, "embed", counting)
    assert near(person, accepted(TEA)) == near(person, accepted(TEA)) == [NEAR[0]]
    neighbours._calibrated.cache_clear()
    assert asked == [20, 1, 1]


def test_vectors_of_another_space_are_not_read(person: EndUser, settings: LazySettings) -> None:
    knows(person, NEAR[0])
    EmbeddingSpace.objects.update(state="retired")
    settings.MEMORYHUB_EMBEDDINGS = "local"
    vectors.space()
    assert propose(person, accepted(TEA)) == []


def test_a_model_that_changed_its_dimensions_proposes_nothing(person: EndUser) -> None:
    knows(person, NEAR[0])
    EmbeddingSpace.objects.update(dimensions=17)
    assert propose(person, accepted(TEA)) == []


def test_the_lease_is_looked_at_before_texts_leave_the_house(person: EndUser) -> None:
    knows(person, NEAR[0])
    asked: list[None] = []
    propose(person, *(accepted(f"{TEA} {n}", n) for n in range(130)), before_call=lambda: asked.append(None))
    assert len(asked) == 3, "64 texts at once"

    def lost() -> None:
        raise LeaseLost

    with pytest.raises(LeaseLost):
        propose(person, accepted(TEA), before_call=lost)
    assert EmbeddingSpace.objects.get().failures == 0


@pytest.mark.parametrize("pairs", [OPPOSED, PARAPHRASES])
def test_newcomers_meet_what_they_deny_or_repeat(person: EndUser, settings: LazySettings, pairs: list[Pair]) -> None:
    """With the model that comes along, among all the other facts of the table."""
    settings.MEMORYHUB_EMBEDDINGS = "local"
    for known in dict.fromkeys(known for known, _ in pairs):
        factories.fact(person, known)
    vectors.embed_all(person)
    found = propose(person, *(accepted(said, index) for index, (_, said) in enumerate(pairs)))
    near = {proposal.candidate.index: [one.content for one in proposal.neighbours] for proposal in found}
    missed = [pair for index, pair in enumerate(pairs) if pair[0] not in near.get(index, [])]
    assert missed == [pair for pair in MISSED if pair in pairs]
    assert max(map(len, near.values())) <= 3
