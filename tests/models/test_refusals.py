"""Refusals outlive the secret key: new ones are kept under the pepper, those of before are found and rewritten."""

import hmac
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.forgetting import forget_fact
from memories.models import EndUser, Fact, FactRefusal
from memories.models.folding import refusal_of_key, refusal_of_text
from memories.models.memories.refusals import RefusalKey, refusal_key_of_text, refusal_keys
from tests import factories
from tests.factories import KEY, NOW

pytestmark = pytest.mark.django_db
BEFORE, BETWEEN, AFTER = ("the-first-" + "a" * 40, "the-second-" + "b" * 40, "the-third-" + "c" * 40)


@pytest.fixture(autouse=True)
def rotated(settings: Any) -> None:
    """The secret key was changed twice; the operator kept the earlier ones as fallbacks."""
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = AFTER, [BETWEEN, BEFORE]


def old_digest(secret: str, *parts: str) -> bytes:
    """As versions before this one kept them; the parts are folded already."""
    key = hmac.digest(secret.encode(), b"memoryhub.refusal.v1", "sha256")
    return hmac.digest(key, "\x00".join(parts).encode(), "sha256")


def refuse(person: EndUser, digest: bytes, kind: str = "text") -> FactRefusal:
    return FactRefusal.objects.create(
        tenant_id=person.tenant_id, end_user=person, kind=kind, digest=digest, created_at=NOW
    )


def refused(person: EndUser, *marks: RefusalKey) -> frozenset[RefusalKey]:
    return FactRefusal.objects.refused(person, marks)


LEIDEN = "Lives in  LEIDEN"


@pytest.mark.parametrize("secret", [BEFORE, BETWEEN, AFTER])
def test_one_of_before_is_found_and_rewritten(person: EndUser, secret: str) -> None:
    row = refuse(person, old_digest(secret, "text", "lives in leiden"))
    mark = refusal_key_of_text(LEIDEN)
    assert refused(person, mark, refusal_key_of_text("Lives in Delft")) == {mark}
    row.refresh_from_db()
    assert bytes(row.digest) == refusal_of_text("Lives in Leiden")


def test_once_rewritten_no_fallback_is_needed(person: EndUser, settings: Any) -> None:
    refuse(person, old_digest(BEFORE, "text", "lives in leiden"))
    assert refused(person, refusal_key_of_text(LEIDEN))
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another-" + "d" * 40, []
    assert refused(person, refusal_key_of_text(LEIDEN))


def test_one_of_a_key_that_nobody_kept_is_not_found(person: EndUser) -> None:
    digest = old_digest("forgotten-" + "e" * 40, "text", "lives in leiden")
    row = refuse(person, digest)
    assert not refused(person, refusal_key_of_text(LEIDEN))
    row.refresh_from_db()
    assert bytes(row.digest) == digest


def test_a_key_of_before_is_rewritten_as_a_key(person: EndUser) -> None:
    row = refuse(person, old_digest(BETWEEN, "key", "knowledge", "home_city"), kind="key")
    assert len(refused(person, *refusal_keys("Lives in Utrecht", category="knowledge", key="home_city"))) == 1
    row.refresh_from_db()
    assert bytes(row.digest) == refusal_of_key("knowledge", "home_city")


def test_refused_again_under_the_pepper_both_rows_stay(person: EndUser) -> None:
    new = refuse(person, refusal_of_text(LEIDEN))
    old = refuse(person, old_digest(BEFORE, "text", "lives in leiden"))
    assert refused(person, refusal_key_of_text(LEIDEN)) == {refusal_key_of_text(LEIDEN)}
    assert set(FactRefusal.objects.values_list("pk", flat=True)) == {new.pk, old.pk}


def test_nothing_is_asked_for_nothing(person: EndUser, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert refused(person) == frozenset()


def test_what_was_forgotten_under_a_key_of_before_does_not_come_back(person: EndUser) -> None:
    refuse(person, old_digest(BEFORE, "text", "lives in leiden"))
    again, other = (
        add_fact(end_user=person, draft=FactDraft(text, "identity"), actor=KEY, now=NOW).row
        for text in (LEIDEN, "Lives in Delft")
    )
    assert (again.status, other.status) == ("pending", "active")


def test_forgetting_it_again_refuses_it_once(person: EndUser) -> None:
    row = refuse(person, old_digest(BEFORE, "text", "likes tea"))
    fact = factories.fact(person, "Likes tea")
    forget_fact(fact_id=fact.pk, tenant=None, actor=Actor.operator(factories.operator()), now=NOW)
    assert FactRefusal.objects.get().pk == row.pk
    assert Fact.objects.get().status == "trashed"
