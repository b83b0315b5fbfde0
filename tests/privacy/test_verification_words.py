"""Words of others, of staff and of the program are told of, and no reason to fail; what refers to the person is."""

import json
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.db import models

from memories.models import ChangeSet, EndUser, FactRevision, Operator, Session, Tenant, Turn
from memories.privacy import registry, verification
from memories.privacy.searching import verdicts
from tests import factories
from tests.factories import NOW
from tests.privacy.test_verification import NAME, run
from tests.privacy.test_verification_places import erased, hits, home, mentions, person

pytestmark = pytest.mark.django_db
__all__ = ["home", "person"]


def _turn(friend: EndUser, said: str, **over: Any) -> None:
    row = factories.session(friend, [("user", f"What is {said}?")])
    Turn.objects.filter(session=row).update(**over)


def _fact(friend: EndUser, said: str, **over: Any) -> None:
    factories.fact(friend, f"Asks after {said}", **over)


def _revision(friend: EndUser, **over: Any) -> None:
    fact = friend.facts.first() or factories.fact(friend, "Asks a lot")
    FactRevision.objects.create(
        tenant_id=fact.tenant_id, fact=fact, verb="x", actor_kind="key", created_at=NOW, **{"version": 9, **over}
    )


def _lifted(friend: EndUser, before: dict[str, str]) -> None:
    done = ChangeSet.objects.create(tenant=friend.tenant, end_user=friend, verb="x", created_at=NOW)
    done.changes.create(tenant_id=done.tenant_id, table="refusal", action="deleted", before=before)


def _answer(friend: EndUser, body: Any) -> None:
    factories.idempotency_record(friend, body=json.dumps(body).encode())


def _file(friend: EndUser, said: str) -> None:
    factories.memory_file(friend, content=said).versions.all().delete()


QUOTES: dict[str, tuple[str, Callable[[EndUser, str], object]]] = {
    "a turn": ("Turn.content", _turn),
    "a turn, in capitals of URLs": ("Turn.content", lambda friend, said: _turn(friend, said.replace("-", "%2D"))),
    "metadata": ("Turn.metadata", lambda friend, said: _turn(friend, "it", metadata={"about": [said]})),
    "a call of a tool": ("Turn.tool_calls", lambda friend, said: _turn(friend, "it", tool_calls=[{"id": said}])),
    "a fact": ("Fact.content", _fact),
    "a tag": ("Fact.tags", lambda friend, said: _fact(friend, "it", tags=[said])),
    "a revision": ("FactRevision.after", lambda friend, said: _revision(friend, after={"content": said, "tags": []})),
    "an id of the caller": (
        "Session.external_id",
        lambda friend, said: factories.session(friend, [], session_id=said),
    ),
    "a kept answer": (
        "IdempotencyRecord.body",
        lambda friend, said: _answer(friend, {"id": "1", "content": said, "evidence": [{"quote": said}]}),
    ),
    "a profile": ("ProfileSection.summary", lambda friend, said: factories.profile_section(friend, summary=said)),
    "a file": ("MemoryFile.content", _file),
    "a passage of a file": (
        "Passage.content",
        lambda friend, said: factories.attachment(factories.session(friend).turns.all()[0], said),
    ),
    "a diary": ("DiaryEntry.content", factories.diary_entry),
    "a fact of a group": (
        "GroupFact.content",
        lambda friend, said: factories.group_fact(factories.memory_group(friend), friend, content=said),
    ),
    "a note of staff": (
        "ReviewItem.note",
        lambda friend, said: factories.review_item(factories.fact(friend), note=said),
    ),
    "a case": ("PrivacyCase.reference", lambda friend, said: factories.privacy_case(friend, reference=said)),
}


def test_an_id_of_ours_that_somebody_quotes_is_a_mention(person: EndUser) -> None:
    session = Session.objects.filter(end_user=person)[0]
    case = erased(person)
    for _, quote in QUOTES.values():
        for owner in (person.tenant, factories.tenant()):
            quote(factories.end_user(owner), str(person.pk))
    found = verification.verify(case)
    # What is said in another tenant is told to nobody here.
    places = Counter(f"memories.{place}" for place, _ in QUOTES.values())
    assert (found.hits, found.mentions) == ({}, places)
    for _, quote in QUOTES.values():
        quote(factories.end_user(person.tenant), str(session.pk))
    assert mentions(case) == {place: 2 * rows for place, rows in places.items()}


REFERENCES: dict[str, tuple[str, Callable[[EndUser, str], object]]] = {
    "a reader": ("Fact.allowed_users", lambda friend, said: factories.fact(friend, allowed_users=[said])),
    "a successor": ("FactRevision.after", lambda friend, said: _revision(friend, after={"superseded_by": said})),
    "both in one": (
        "FactRevision.before",
        lambda friend, said: _revision(friend, before={"content": said, "superseded_by": said}),
    ),
    "what a change set lifted": ("Change.before", lambda friend, said: _lifted(friend, before={"fact": said})),
    "a kept answer": ("IdempotencyRecord.body", lambda friend, said: _answer(friend, {"results": [{"id": said}]})),
    "one that is no JSON": (
        "IdempotencyRecord.body",
        lambda friend, said: factories.idempotency_record(friend, body=said.encode()),
    ),
    "a tenant's settings": (
        "Tenant.extraction_guidance",
        lambda friend, said: Tenant.objects.filter(pk=friend.tenant_id).update(extraction_guidance=f"Not {said}"),
    ),
    "a name of staff": ("Operator.first_name", lambda friend, said: factories.operator(first_name=said)),
}


def test_an_id_of_ours_anywhere_else_is_left_over(person: EndUser) -> None:
    case = erased(person)
    for _, plant in REFERENCES.values():
        plant(factories.end_user(person.tenant), str(person.pk))
    assert hits(case) == Counter(f"memories.{place}" for place, _ in REFERENCES.values())


def test_who_comes_under_the_id_again_may_quote_what_the_application_remembers(person: EndUser) -> None:
    case = erased(person)
    again = factories.end_user(person.tenant, external_id=NAME)
    _turn(again, str(person.pk))
    assert (hits(case), mentions(case)) == ({}, {"memories.Turn.content": 1})


@pytest.mark.parametrize("said", ['"allowed_users": ["%s"]', "%%22allowed_users%%22: [%%22%s%%22]"])
def test_words_that_look_like_a_reference_are_words(person: EndUser, said: str) -> None:
    case = erased(person)
    friend = factories.end_user(person.tenant)
    _turn(friend, said % NAME)
    _revision(friend, after={"content": said % NAME, "allowed_users": []})
    assert hits(case) == {}
    _revision(friend, after={"content": "it", "allowed_users": [NAME]}, version=10)
    assert hits(case) == {"memories.FactRevision.after": 1}


OWN = {
    "Can add privacy case": ["auth.Permission.name"],
    "0008_audit_pruning": ["public.django_migrations.name"],
    "America/Argentina/Buenos_Aires": ["memories.Tenant.time_zone"],
    "Beeblebrox Bakeries Ltd": ["memories.Tenant.name", "memories.APIKey.name"],
    "owner@bakery.example": ["memories.Operator.username", "memories.Operator.email"],
    "Mozilla/5.0 (X11; Linux x86_64)": ["axes.AccessAttempt.user_agent"],
}


def test_what_the_program_or_staff_call_so_is_told_of(person: EndUser) -> None:
    """Nobody could take it away, and it is not of the person: they merely said the same."""
    for number, said in enumerate(OWN):
        factories.session(person, [("user", said)], session_id=f"another {number}")
    EndUser.objects.filter(pk=person.pk).update(metadata={"companies": list(OWN)})
    Tenant.objects.filter(pk=person.tenant_id).update(name="Beeblebrox Bakeries Ltd")
    Tenant.objects.filter(pk=person.tenant_id).update(time_zone="America/Argentina/Buenos_Aires")
    factories.api_key(person.tenant, name="Beeblebrox Bakeries Ltd")
    Operator.objects.create(username="owner@bakery.example", email="owner@bakery.example")
    AccessAttempt.objects.create(user_agent="Mozilla/5.0 (X11; Linux x86_64)", failures_since_start=1)
    case = erased(person)
    run("ANALYZE")
    found = verification.verify(case)
    assert (found.hits, found.mentions) == ({}, {place: 1 for places in OWN.values() for place in places})
    for said in OWN:
        Tenant.objects.filter(pk=person.tenant_id).update(extraction_guidance=f"Ask about {said}")
        assert hits(case) == {"memories.Tenant.extraction_guidance": 1}, said


def test_somebody_who_is_staff_as_well_keeps_the_account(person: EndUser) -> None:
    operator = Operator.objects.create(username=NAME, email=NAME)
    case = erased(person)
    assert (hits(case), set(mentions(case))) == ({}, {"memories.Operator.username", "memories.Operator.email"})
    Operator.objects.filter(pk=operator.pk).update(username=str(person.pk))
    assert hits(case) == {"memories.Operator.username": 1}


def test_every_column_of_words_is_one_that_can_hold_them() -> None:
    kept = {store.model: set(store.fields) for store in registry.all_stores()}
    for label, columns in verdicts.WORD_COLUMNS.items():
        assert columns <= kept[label], label
    for place in (*verdicts.REPORTED, *verdicts.AROUND):
        label, _, column = place.rpartition(".")
        if not label.startswith("public."):
            assert isinstance(apps.get_model(label)._meta.get_field(column), models.Field)
    assert uuid.UUID(int=0).hex.encode() in verdicts.written_by_hub("memories.AuditEvent.object_id", b"0" * 32)
