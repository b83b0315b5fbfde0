"""A fact whose end has passed does not stand in the way of its restatement before a decay pass has swept it."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.statements.documents import DocumentFact, import_document
from memories.exceptions import DuplicateFact
from memories.models import ActorKind, Fact
from tests import factories

pytestmark = pytest.mark.django_db
KEY = Actor(kind=ActorKind.KEY, id="1")


def test_it_is_stored_again() -> None:
    person, now = factories.end_user(), timezone.now()
    known = factories.fact(person, "On call this week", category="context", expires_at=now + timedelta(hours=1))
    draft = FactDraft(content="On call this week", category="context")
    # While it holds it is a duplicate.
    with pytest.raises(DuplicateFact):
        add_fact(end_user=person, draft=draft, actor=KEY, now=now)
    stated = add_fact(end_user=person, draft=draft, actor=KEY, now=now + timedelta(hours=2))
    assert stated.row.status == "active"
    assert Fact.objects.get(pk=known.pk).status == "trashed"


@pytest.mark.parametrize("named_by", ["text", "id", "external_id"])
def test_a_document_states_it_again(named_by: str) -> None:
    person, now = factories.end_user(), timezone.now()
    given = {"category": "context", "external_id": "f1", "expires_at": now + timedelta(hours=1)}
    known = factories.fact(person, "On call this week", **given)
    names: dict[str, dict[str, Any]] = {"id": {"id": known.pk}, "external_id": {"external_id": "f1"}, "text": {}}
    stated = [DocumentFact("On call this week", "context", 0.9, **names[named_by])]
    # While it holds the document changes it, or leaves it.
    import_document(end_user=person, sections={}, facts=stated, actor=KEY, now=now)
    assert Fact.objects.get().pk == known.pk
    import_document(end_user=person, sections={}, facts=stated, actor=KEY, now=now + timedelta(hours=2))
    assert Fact.objects.get(pk=known.pk).status == "trashed"
    assert Fact.objects.get(status="active").content == "On call this week"
