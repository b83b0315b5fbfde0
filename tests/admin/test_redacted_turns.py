"""A turn that lost its words is shown as redacted, when and by whom, wherever the admin shows turns."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.audit import Actor
from memories.curation.turns import redact_turn
from memories.models import AuditEvent, Episode, Fact, Operator, ReviewItem, Session
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.factories import NOW

SAID = [("user", "My number is 0612"), ("assistant", "Noted"), ("user", "I drink tea at 9")]


@pytest.fixture
def session(administrator: Operator) -> Session:
    """The first turn is emptied by an operator, a passage of the third is cut by a key; a fact rests on the third."""
    session = factories.session(factories.end_user(), SAID)
    first, _second, third = session.turns.order_by("number")
    key, _secret = factories.api_key(session.tenant)
    redact_turn(turn_id=first.pk, tenant=None, actor=Actor.operator(administrator), now=NOW)
    by_key = Actor(kind="key", id=str(key.pk))  # type: ignore[arg-type]
    redact_turn(turn_id=third.pk, tenant=None, actor=by_key, now=NOW, passages=["9"])
    for content, number in (("Drinks tea", 3), ("Noted it", 2)):
        fact = factories.fact(session.end_user, content, status="pending")
        factories.evidence(fact, session.turns.get(number=number))
        factories.review_item(fact)
    factories.episode(session, "Drinks tea", last_number=3)
    return session


def test_each_page_that_shows_turns_says_when_and_by_whom(
    admin: Client, administrator: Operator, session: Session
) -> None:
    fact, episode = Fact.objects.get(content="Noted it"), Episode.objects.get()
    item = ReviewItem.objects.get(fact=fact)
    key = AuditEvent.objects.filter(verb="redact").latest("id").actor_id
    authors = (administrator.username, str(session.tenant.api_keys.get(pk=key)))
    queue = f"{reverse('admin:memories_reviewitem_queue')}?item={item.pk}"
    for address in (queue, *map(page_of, (session, session.end_user, fact, item, episode))):
        page = text_of(admin.get(address))
        assert page.count("Redacted on ") == 2, address
        assert all(f" by {author}" in page for author in authors), address
        # What nobody redacted is shown as it is.
        assert "I drink tea at [redacted]" in page, address
        assert "Noted" in page, address
        assert "(no text)" not in page, address


def test_cited_turns_say_it_too(admin: Client, session: Session) -> None:
    page = text_of(admin.get(page_of(Fact.objects.get(content="Drinks tea"))))
    assert page.count("Redacted on ") == 1


def test_without_the_trail_only_when(admin: Client, db: None) -> None:
    session = factories.session(factories.end_user(), SAID)
    session.turns.filter(number=1).update(content="", redacted_at=NOW)
    page = text_of(admin.get(page_of(session)))
    assert (page.count("Redacted on "), " by command" in page, "(no text)" in page) == (1, False, False)


def test_a_page_takes_as_many_queries_for_many(admin: Client, db: None, django_assert_max_num_queries: Any) -> None:
    session = factories.session(factories.end_user(), [("user", f"Turn {number}") for number in range(30)])
    for turn in session.turns.all():
        redact_turn(turn_id=turn.pk, tenant=None, actor=factories.COMMAND, now=NOW)
    with django_assert_max_num_queries(25):
        page = text_of(admin.get(page_of(session)))
    assert page.count("Redacted on ") == 30
