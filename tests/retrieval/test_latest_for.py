"""Which of the person's own facts and of an agent's that agent is told: by hand as by FactQuerySet."""

import random
from datetime import timedelta
from typing import Any

import pytest

from memories import conf
from memories.models import Fact
from memories.models.memories.visibility import Viewer
from memories.retrieval import visible_facts
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("seed", range(4))
def test_both_tell_the_same(seed: int) -> None:
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
            draw.choice(["pinned", "binding", "locked", "locked"]): draw.random() < 0.2,
            "last_confirmed_at": said,
        }
        factories.fact(person, f"Fact {number}", **over)
    hidden = 0
    for viewer in (Viewer("sales"), Viewer("sales", ("doctor",)), Viewer("legal"), Viewer()):
        who: dict[str, Any] = {"person": person, "agent_id": viewer.agent_id, "roles": viewer.roles}
        seen = Fact.objects.of(person.tenant, person).active(now=NOW).visible_to(**who)
        expected = set(seen.latest_for(**who, now=NOW).values_list("pk", flat=True))
        hidden += seen.count() - len(expected)
        rules = conf.rules(person.tenant)
        served = {fact.id for fact in visible_facts.served(person, viewer, rules=rules, now=NOW)}
        indexed = visible_facts.open_index(person, viewer, None, rules=rules, now=NOW).facts
        assert served == {fact.id for fact in indexed} == expected
    assert hidden > 3
