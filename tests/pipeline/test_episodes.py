"""Episodes."""

import pytest
from memories import conf
from memories.models import EndUser, ReviewItem, Turn
from memories.pipeline import episodes
from memories.pipeline.feed import fed
from tests import factories
from tests.factories import NOW
from tests.pipeline.model import Model

pytestmark = pytest.mark.django_db


def test_smoke(model: Model, person: EndUser) -> None:
    session = factories.session(
        person, [("user", "I want to fly to Lisbon in May"), ("assistant", "By which airline?")] * 2
    )
    turns = list(fed(Turn.objects.filter(session=session).order_by("number")))
    rules = conf.rules(session.tenant)
    draft = episodes.draft(turns=turns, session=session, max_calls=4, before_call=lambda: None, rules=rules)
    print(draft)
    assert not draft.is_poor
    row = episodes.store(draft=draft, session=session, first_number=1, last_number=4, turns=turns, now=NOW)
    row.refresh_from_db()
    model.episodes = [{"summary": ""}, {"summary": "The user asked a question."}]
    draft = episodes.draft(turns=turns, session=session, max_calls=4, before_call=lambda: None, rules=rules)
    print(draft)
    row = episodes.store(draft=draft, session=session, first_number=5, last_number=8, turns=turns, now=NOW)
    assert ReviewItem.objects.get().episode == row
