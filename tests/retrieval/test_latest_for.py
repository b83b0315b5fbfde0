"""Which of the person's own facts and of an agent's that agent is told."""

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest

from memories import conf
from memories.models import Fact, FactRelation
from memories.models.memories.visibility import Viewer
from memories.retrieval import visible_facts
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("seed", range(2))
def test_of_two_with_one_key_what_was_said_last(seed: int) -> None:
    person = factories.end_user(external_id="u1")
    draw = random.Random(seed)
    for number in range(80):
        said = NOW - timedelta(days=draw.randrange(4))
        over: dict[str, Any] = {
            "agent_id": draw.choice(["", "", "sales", "support"]),
            "category": draw.choice(["identity", "preference"]),
            "key": draw.choice(["", "home_city", "drink"]),
            "value": draw.choice(["", "a", "b"]),
            "scope": draw.choice(["private", "private", "share", "public"]),
            "status": draw.choice(["active"] * 5 + ["pending", "superseded"]),
            "allowed_roles": draw.choice([[]] * 4 + [["doctor"]]),
            "confidence": draw.choice([0.9] * 4 + [0.1]),
            draw.choice(["pinned", "binding", "locked", "locked"]): draw.random() < 0.2,
            "last_confirmed_at": said,
        }
        factories.fact(person, f"Fact {number}", trust=draw.choice(["user", "user", "assistant"]), **over)
    facts = list(Fact.objects.order_by("content"))
    pairs = [(draw.choice(facts), draw.choice(facts)) for _number in range(300)]
    FactRelation.objects.bulk_create(
        [
            FactRelation(tenant_id=fact.tenant_id, fact=fact, target=target, type=kind, created_at=NOW)
            for fact, target in pairs
            for kind in [draw.choice(["contradicts", "contradicts", "related_to"])]
            if fact != target
        ],
        ignore_conflicts=True,
    )
    rules = conf.rules(person.tenant)
    hidden = 0
    for viewer in (Viewer("sales"), Viewer("sales", ("doctor",)), Viewer("legal"), Viewer()):
        visible = Fact.objects.of(person.tenant, person).active(now=NOW)
        visible = visible.visible_to(person, agent_id=viewer.agent_id, roles=viewer.roles)
        visible = visible.filter(confidence__gte=rules.served_confidence)
        expected = {fact.pk for fact in visible} - replaced(visible, viewer.agent_id)
        hidden += visible.count() - len(expected)
        assert set(visible.latest_for(viewer.agent_id).values_list("pk", flat=True)) == expected
        served = {fact.id for fact in visible_facts.served(person, viewer, rules=rules, now=NOW)}
        indexed = visible_facts.open_index(person, viewer, None, rules=rules, now=NOW).facts
        assert served == {fact.id for fact in indexed} == expected
    assert hidden > 3


def replaced(facts: Iterable[Fact], agent_id: str) -> set[Any]:
    """Two loops that say the rule once more."""
    related = FactRelation.objects.filter(type="contradicts").values_list("fact", "target")
    # Of an agent's fact and one of the person's own.
    contradicts = set(related)
    return {
        fact.pk
        for fact in facts
        for other in facts
        if (fact.key and fact.value and other.value and (fact.category, fact.key) == (other.category, other.key))
        or (fact.agent_id and (fact.pk, other.pk) in contradicts)
        or (
            other.agent_id and (other.pk, fact.pk) in contradicts and (other.trust, fact.trust) != ("assistant", "user")
        )
        if not (fact.pinned or fact.locked or fact.binding)
        if (
            fact.agent_id == ""
            and other.agent_id == agent_id != ""
            and other.last_confirmed_at >= fact.last_confirmed_at
        )
        or (
            fact.agent_id == agent_id != ""
            and other.agent_id == ""
            and other.last_confirmed_at > fact.last_confirmed_at
        )
    }
