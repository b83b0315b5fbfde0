"""The log of contexts in an erasure, in retention and in the undo of a merge of people; blocks that were sent."""

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from memories.curation.people.merging.merge import merge_people
from memories.curation.reverting import revert
from memories.curation.turns import redact_turn
from memories.models import ChangeSet, EndUser, LoggedContext, SentBlock
from memories.privacy import registry, retention
from memories.privacy.stores import readers
from memories.privacy.stores.readers import CONTEXTS_OF_OTHERS
from tests import factories
from tests.database import statements
from tests.privacy.retained import DAY, retain

pytestmark = pytest.mark.django_db


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(factories.tenant())


def test_a_public_fact_goes_from_what_others_were_told(person: EndUser) -> None:
    other = factories.end_user(person.tenant)
    public, own = factories.fact(person, "The office is in Leiden", scope="public"), factories.fact(other, "Likes tea")
    logged = factories.logged_context(other, [public, own], query="Where?", memory="<memory>Leiden</memory>")
    beside = factories.logged_context(other, [own], query="What?", memory="<memory>tea</memory>")
    mine = factories.logged_context(person, [public])
    assert (CONTEXTS_OF_OTHERS.count(person), CONTEXTS_OF_OTHERS.count(other)) == (1, 0)
    with transaction.atomic():
        assert CONTEXTS_OF_OTHERS.erase(person) == 1
        assert CONTEXTS_OF_OTHERS.erase(person) == 0
    for row in (logged, beside, mine):
        row.refresh_from_db()
    assert ([item["id"] for item in logged.items], logged.query, logged.memory) == ([str(own.pk)], "", "")
    assert logged.rests_on == [own.pk]
    assert (beside.query, beside.memory) == ("What?", "<memory>tea</memory>")
    assert len(mine.items) == 1
    stores = [store.model for store in registry.all_stores()]
    assert stores.index(CONTEXTS_OF_OTHERS.model) < stores.index("memories.Fact")


@pytest.mark.parametrize(("days", "kept"), [(13, True), (15, False)])
def test_retention_takes_what_is_too_old(person: EndUser, days: int, kept: bool) -> None:
    now = timezone.now()
    factories.logged_context(person, created_at=now - days * DAY)
    assert retention.preview(person.tenant, now)["contexts"] == (not kept)
    assert retain(person.tenant, now) == ({} if kept else {"contexts": 1})
    assert LoggedContext.objects.exists() is kept


def test_retention_passes_over_restricted_people(person: EndUser) -> None:
    now = timezone.now()
    factories.logged_context(person, created_at=now - 15 * DAY)
    EndUser.objects.filter(pk=person.pk).update(restricted_at=now)
    assert retain(person.tenant, now) == {}
    EndUser.objects.filter(pk=person.pk).update(restricted_at=None)
    assert retain(person.tenant, now) == {"contexts": 1}


def test_what_was_logged_of_two_people_goes_when_they_part(person: EndUser) -> None:
    other = factories.end_user(person.tenant)
    merged_at = factories.NOW
    before = factories.logged_context(person, created_at=merged_at - timedelta(minutes=1))
    merge_people(survivor=person.pk, merged=other.pk, actor=factories.COMMAND, now=merged_at)
    factories.logged_context(person, created_at=merged_at + timedelta(minutes=1))
    sent = factories.sent_block(person, sent_at=merged_at - timedelta(minutes=1))
    factories.sent_block(person, sent_at=merged_at + timedelta(minutes=1))
    done = ChangeSet.objects.get(verb="merge")
    revert(change_set=done.pk, actor=factories.COMMAND, now=merged_at + timedelta(hours=1))
    assert list(LoggedContext.objects.all()) == [before]
    assert list(SentBlock.objects.all()) == [sent]


def test_a_redaction_takes_all_blocks_of_the_person(person: EndUser) -> None:
    """Any of them may quote the turn."""
    factories.sent_block(person)
    theirs = factories.sent_block(factories.end_user(person.tenant))
    turn = factories.session(person).turns.get()
    redact_turn(turn_id=turn.pk, tenant=None, actor=factories.COMMAND, now=timezone.now())
    assert list(SentBlock.objects.all()) == [theirs]


def test_the_memories_of_a_person_are_looked_up_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many a person has: a statement has so many parameters, and a process so much memory."""
    monkeypatch.setattr(readers, "IDS_AT_ONCE", 2)
    person = factories.end_user()
    other = factories.end_user(person.tenant)
    facts = [factories.fact(person, f"Fact {number}") for number in range(5)]
    theirs = {factories.logged_context(other, [facts[0], facts[4]]), factories.logged_context(other, [facts[2]])}
    unrelated = factories.logged_context(other)
    assert set(CONTEXTS_OF_OTHERS.rows_of(person)) == theirs
    looked_up = [sql for sql in statements(lambda: CONTEXTS_OF_OTHERS.count(person)) if "unnest(" in sql]
    assert len(looked_up) == 3
    assert CONTEXTS_OF_OTHERS.erase(person) == 2
    assert CONTEXTS_OF_OTHERS.count(person) == 0
    assert set(LoggedContext.objects.all()) == {*theirs, unrelated}
    assert not any(row.items for row in LoggedContext.objects.filter(pk__in=[one.pk for one in theirs]))
