"""What one agent hears of something that the person's own memory says otherwise: that agent is told what was said last,
the others what the person's own says."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from memories.audit import Actor
from memories.context import context
from memories.context.context import ContextRequest
from memories.curation.facts.forgetting import forget_fact
from memories.curation.review.decisions import approve_item, merge_items
from memories.curation.review.undo import undo_decision
from memories.exceptions import Conflict
from memories.llm import embeddings
from memories.models import ActorKind, EndUser, ExtractionRun, Fact, FactRelation, ReviewItem, Tenant
from memories.retrieval import search
from memories.retrieval.search import SearchFilters, SearchRequest
from tests import factories, vectors
from tests.extraction.test_memory_of_agents import hear, tenant
from tests.factories import NOW
from tests.model import Model, candidate

STAFF = Actor(kind=ActorKind.OPERATOR, id="7")
HOME: dict[str, Any] = {"category": "identity", "key": "home_city"}
EARLIER, LATER = NOW - timedelta(days=30), NOW + timedelta(days=1)
__all__ = ["tenant"]


def told(tenant: Tenant, agent: str, *, as_of: datetime | None = None) -> set[str]:
    """What contexts and searches of the agent have; they have the same."""
    request = ContextRequest(user_id="u1", agent_id=agent, include=frozenset({"facts"}), as_of=as_of)
    given = context.build(tenant=tenant, request=request, now=LATER)
    ids = {item["id"] for item in given.items}
    asked = SearchRequest("u1", "Where do they live?", ["fact"], filters=SearchFilters(agent_id=agent), as_of=as_of)
    assert {str(one.id) for one in search.search(tenant=tenant, search=asked, now=LATER).results} == ids
    return set(Fact.objects.filter(pk__in=ids).values_list("content", flat=True))


def lives(person: EndUser, city: str, said: datetime = EARLIER, **over: Any) -> Fact:
    dates = dict.fromkeys(("created_at", "first_observed_at", "last_confirmed_at", "valid_from"), said)
    given = {"value": city, "stated_confidence": 0.7, **HOME, **dates, **over}
    return factories.fact(person, f"Lives in {city}", **given)


def in_utrecht(**over: Any) -> dict[str, Any]:
    return candidate("Lives in Utrecht", value="Utrecht", **HOME, **over)


class TestTold:
    def test_that_agent_is_told_its_own_and_the_others_the_persons(
        self, model: Model, tenant: Tenant, person: EndUser
    ) -> None:
        own = lives(person, "Paris")
        factories.fact(person, "Likes tea", created_at=EARLIER)
        model.say(in_utrecht())
        run = hear(tenant, "sales", "s1")
        own.refresh_from_db()
        assert (own.status, own.version, run.outcome) == ("active", 1, {"stored": 1, "beside": 1})
        assert told(tenant, "sales") == {"Lives in Utrecht", "Likes tea"}
        assert told(tenant, "support") == told(tenant, "") == {"Lives in Paris", "Likes tea"}
        relation = FactRelation.objects.get()
        assert (relation.fact.agent_id, relation.target_id, relation.type) == ("sales", own.pk, "contradicts")
        # The next batch of that agent is shown what it is told.
        model.say()
        hear(tenant, "sales", "s1", "Hello again")
        assert "Lives in Utrecht" in model.prompts[-1]
        assert "Lives in Paris" not in model.prompts[-1]
        model.say()
        hear(tenant, "support", "s2", "Hello again")
        assert "Lives in Paris" in model.prompts[-1]

    def test_what_it_is_told_instead_ends_with_its_own(self, model: Model, tenant: Tenant, person: EndUser) -> None:
        lives(person, "Paris")
        model.say(in_utrecht())
        hear(tenant, "sales", "s1")
        forget_fact(fact_id=Fact.objects.get(agent_id="sales").pk, tenant=None, actor=STAFF, now=LATER)
        assert told(tenant, "sales") == {"Lives in Paris"}

    def test_what_the_person_said_since_is_told_instead_of_the_agents(self, tenant: Tenant, person: EndUser) -> None:
        lives(person, "Utrecht", agent_id="sales")
        own = lives(person, "Paris", NOW)
        assert told(tenant, "sales") == {"Lives in Paris"}
        # And back, as it was at that time.
        assert told(tenant, "sales", as_of=EARLIER) == {"Lives in Utrecht"}
        own.delete()
        assert told(tenant, "sales") == {"Lives in Utrecht"}

    def test_of_two_said_at_once_the_agents(self, tenant: Tenant, person: EndUser) -> None:
        lives(person, "Paris")
        lives(person, "Utrecht", agent_id="sales")
        assert told(tenant, "sales") == {"Lives in Utrecht"}

    @pytest.mark.parametrize("word", ["binding", "pinned", "locked"])
    def test_an_operators_word_is_told_to_all(self, tenant: Tenant, person: EndUser, word: str) -> None:
        over: dict[str, Any] = {word: True}
        lives(person, "Paris", **over)
        lives(person, "Utrecht", NOW, agent_id="sales")
        assert told(tenant, "sales") == {"Lives in Paris", "Lives in Utrecht"}

    @pytest.mark.parametrize(
        "over",
        [{"status": "pending"}, {"expires_at": NOW}, {"confidence": 0.5}, {"allowed_roles": ["doctor"]}, {"value": ""}],
    )
    def test_what_is_not_served_takes_no_place(self, tenant: Tenant, person: EndUser, over: dict[str, Any]) -> None:
        lives(person, "Paris")
        lives(person, "Utrecht", NOW, **{"agent_id": "sales", **over})
        assert "Lives in Paris" in told(tenant, "sales")


class TestDeciding:
    def test_what_is_less_sure_waits_and_once_approved_stands_beside_it(
        self, model: Model, tenant: Tenant, person: EndUser
    ) -> None:
        own = lives(person, "Paris", stated_confidence=0.94)
        model.say(in_utrecht(confidence=0.8))
        hear(tenant, "sales", "s1")
        item = ReviewItem.objects.get()
        assert (item.reason, item.known_id) == ("less_sure", own.pk)
        assert told(tenant, "sales") == {"Lives in Paris"}
        approve_item(item_id=item.pk, actor=STAFF, now=LATER)
        own.refresh_from_db()
        assert (own.status, own.version) == ("active", 1)
        assert told(tenant, "sales") == {"Lives in Utrecht"}
        assert told(tenant, "support") == {"Lives in Paris"}
        undo_decision(item_id=item.pk, actor=STAFF, now=LATER)
        assert told(tenant, "sales") == {"Lives in Paris"}

    def test_a_merge_keeps_the_persons_own(self, model: Model, tenant: Tenant, person: EndUser) -> None:
        own = lives(person, "Paris", stated_confidence=0.94)
        model.say(in_utrecht(confidence=0.8))
        hear(tenant, "sales", "s1")
        item = ReviewItem.objects.get()
        given: dict[str, Any] = {"item_id": item.pk, "content": "Lives in Utrecht", "reason": "", "actor": STAFF}
        assert item.fact
        with pytest.raises(Conflict):
            merge_items(survivor=item.fact.pk, **given, now=LATER)
        merge_items(survivor=own.pk, **given, now=LATER)
        assert told(tenant, "sales") == told(tenant, "support") == {"Lives in Utrecht"}

    def test_what_was_said_before_the_persons_is_the_agents_and_not_told(
        self, model: Model, tenant: Tenant, person: EndUser
    ) -> None:
        own = lives(person, "Paris", LATER)
        model.say(in_utrecht())
        hear(tenant, "sales", "s1")
        own.refresh_from_db()
        assert (own.status, own.version) == ("active", 1)
        assert set(Fact.objects.values_list("agent_id", "status")) == {("", "active"), ("sales", "active")}
        assert told(tenant, "sales") == {"Lives in Paris"}


class TestWithoutAKey:
    """Only a judgement knows that the two contradict each other."""

    @pytest.fixture
    def own(self, person: EndUser, tenant: Tenant) -> Fact:
        dates = dict.fromkeys(("created_at", "first_observed_at", "last_confirmed_at", "valid_from"), EARLIER)
        own = factories.fact(person, "Likes green tea cold", stated_confidence=0.7, **dates)
        vectors.embed_all(person, vectors.space(embeddings.HASHED, 16))
        return own

    def hear(self, model: Model, tenant: Tenant, verdict: str, **over: Any) -> ExtractionRun:
        model.say(candidate("Likes green tea hot", **over))
        model.answers.append({"judgements": [{"candidate": 1, "fact": 1, "verdict": verdict}]})
        return hear(tenant, "sales", "s1", "I like green tea hot")

    def test_it_is_told_instead_of_the_persons_own(self, model: Model, tenant: Tenant, own: Fact) -> None:
        run = self.hear(model, tenant, "contradicts")
        own.refresh_from_db()
        assert (own.status, own.version, run.outcome) == ("active", 1, {"stored": 1, "beside": 1})
        assert told(tenant, "sales") == {"Likes green tea hot"}
        assert told(tenant, "support") == told(tenant, "") == {"Likes green tea cold"}
        # Until the person says it again elsewhere.
        Fact.objects.filter(pk=own.pk).update(last_confirmed_at=LATER)
        assert told(tenant, "sales") == {"Likes green tea cold"}

    def test_what_is_judged_unrelated_is_told_beside_it(self, model: Model, tenant: Tenant, own: Fact) -> None:
        self.hear(model, tenant, "unrelated")
        assert told(tenant, "sales") == {"Likes green tea hot", "Likes green tea cold"}

    def test_what_is_less_sure_waits(self, model: Model, tenant: Tenant, own: Fact) -> None:
        Fact.objects.filter(pk=own.pk).update(stated_confidence=0.94)
        self.hear(model, tenant, "contradicts", confidence=0.8)
        item = ReviewItem.objects.get()
        assert (item.reason, told(tenant, "sales")) == ("less_sure", {"Likes green tea cold"})
        approve_item(item_id=item.pk, actor=STAFF, now=LATER)
        assert told(tenant, "sales") == {"Likes green tea hot"}
        assert told(tenant, "support") == {"Likes green tea cold"}


class TestReferences:
    def test_a_removal_of_the_persons_own_asks_an_operator(self, model: Model, tenant: Tenant, person: EndUser) -> None:
        own = lives(person, "Paris")
        model.say(removed=[{"fact": 1, "reason": "Moved away", "evidence": [1]}])
        run = hear(tenant, "sales", "s1")
        own.refresh_from_db()
        assert (own.status, run.outcome) == ("active", {"removal_conflicts": 1})
        assert ReviewItem.objects.get().reason == "removal"

    def test_with_a_fact_in_its_place_nobody_is_asked(self, model: Model, tenant: Tenant, person: EndUser) -> None:
        own = lives(person, "Paris")
        removed = {"fact": 1, "reason": "Moved away", "evidence": [1], "replaced_by": 0}
        model.say(in_utrecht(), removed=[removed])
        run = hear(tenant, "sales", "s1")
        own.refresh_from_db()
        assert (own.status, run.outcome["beside"], ReviewItem.objects.count()) == ("active", 2, 0)

    def test_of_a_session_without_an_agent_it_is_removed(self, model: Model, tenant: Tenant, person: EndUser) -> None:
        own = lives(person, "Paris")
        model.say(removed=[{"fact": 1, "reason": "Moved away", "evidence": [1]}])
        run: ExtractionRun = hear(tenant, "", "s1", "I do not live in Paris any more.")
        own.refresh_from_db()
        assert (own.status, run.outcome) == ("archived", {"named_removed": 1})
