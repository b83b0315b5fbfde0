"""A turn of a branch that the client left is shown as such wherever the admin shows turns."""

import pytest
from django.test import Client
from django.utils import translation

from memories.models import Episode, Fact, Session
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.factories import NOW

LABEL = {"en": "On a branch that was left on ", "zh-hans": "放弃的分支"}


@pytest.fixture
def session() -> Session:
    session = factories.session(factories.end_user(), [("user", "I live in Leiden"), ("user", "I drink tea")])
    session.turns.filter(number=1).update(left_at=NOW)
    for number in (1, 2):
        factories.evidence(factories.fact(session.end_user, f"Fact {number}"), session.turns.get(number=number))
    factories.episode(session, "Talked", last_number=2)
    return session


@pytest.mark.parametrize("language", LABEL)
def test_the_pages_say_so_of_that_turn_alone(admin: Client, session: Session, language: str) -> None:
    for record in (session, session.end_user, Fact.objects.get(content="Fact 1"), Episode.objects.get()):
        with translation.override(language):
            page = text_of(admin.get(page_of(record), headers={"accept-language": language}))
        assert page.count(LABEL[language]) == 1, record
        assert "I live in Leiden" in page, record
