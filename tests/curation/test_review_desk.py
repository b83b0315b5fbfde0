"""Who has a review item, and the notes on it: for colleagues, and in nobody's way."""

from datetime import timedelta
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.review.assigning import give_back_item, take_item
from memories.curation.review.decisions import approve_item
from memories.curation.review.notes import add_note, delete_note
from memories.exceptions import Conflict, InvalidInput, NotFound
from memories.models import ActorKind, AuditEvent, ReviewItem, ReviewNote
from memories.models.ids import new_id
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
ANNA: dict[str, Any] = {"actor": Actor(kind=ActorKind.OPERATOR, id="7"), "now": NOW + timedelta(hours=1)}
BEN: dict[str, Any] = {"actor": Actor(kind=ActorKind.OPERATOR, id="8"), "now": NOW + timedelta(hours=2)}


@pytest.fixture
def item() -> ReviewItem:
    return factories.review_item(factories.fact(factories.end_user(), status="pending"))


def holder(item: ReviewItem) -> str:
    item.refresh_from_db()
    return item.taken_by


def test_an_item_is_taken_and_given_back(item: ReviewItem) -> None:
    take_item(item_id=item.pk, **ANNA)
    assert (holder(item), item.taken_at) == ("7", ANNA["now"])
    give_back_item(item_id=item.pk, **ANNA)
    assert (holder(item), item.taken_at) == ("", None)
    assert list(AuditEvent.objects.order_by("id").values_list("verb", flat=True)) == ["take_on", "give_back"]


def test_sent_twice_it_happens_once(item: ReviewItem) -> None:
    take_item(item_id=item.pk, **ANNA)
    take_item(item_id=item.pk, **ANNA)
    assert AuditEvent.objects.count() == 1


def test_of_two_who_take_it_the_second_is_told(item: ReviewItem) -> None:
    take_item(item_id=item.pk, **ANNA)
    with pytest.raises(Conflict):
        take_item(item_id=item.pk, **BEN)
    assert holder(item) == "7"
    take_item(item_id=item.pk, expected="7", **BEN)
    assert holder(item) == "8"
    with pytest.raises(Conflict):
        give_back_item(item_id=item.pk, **ANNA)


def test_nobody_is_kept_from_deciding(item: ReviewItem) -> None:
    version = item.version
    take_item(item_id=item.pk, **ANNA)
    assert ReviewItem.objects.get().version == version
    approve_item(item_id=item.pk, **BEN)
    assert ReviewItem.objects.get().state == "approved"
    with pytest.raises(Conflict):
        give_back_item(item_id=item.pk, **ANNA)


def test_a_note_is_kept_without_secrets_and_deleted_by_its_author(item: ReviewItem) -> None:
    note = add_note(item_id=item.pk, text=" Asked the team; password: hunter2hunter2 ", **ANNA)
    assert note.text.startswith("Asked the team")
    assert "hunter2" not in note.text
    delete_note(item_id=item.pk, note_id=note.pk, **BEN)
    assert ReviewNote.objects.count() == 1
    delete_note(item_id=item.pk, note_id=note.pk, **ANNA)
    assert ReviewNote.objects.count() == 0
    verbs = AuditEvent.objects.order_by("id").values_list("verb", "tenant_uuid")
    assert list(verbs) == [("note", item.tenant_id), ("delete_note", item.tenant_id)]


def test_what_is_not_there_is_not_noted_or_taken(item: ReviewItem) -> None:
    with pytest.raises(NotFound):
        add_note(item_id=new_id(), text="A note", **ANNA)
    with pytest.raises(NotFound):
        take_item(item_id=new_id(), **ANNA)
    with pytest.raises(InvalidInput):
        add_note(item_id=item.pk, text="  ", **ANNA)
    assert ReviewNote.objects.count() == 0
