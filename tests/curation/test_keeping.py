"""Pin, lock and a date to expire: what operators keep stays out of the hands of keys and jobs until they let it go."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact, edit_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.keeping import expire_fact, lock_fact, pin_fact, unlock_fact, unpin_fact
from memories.exceptions import Conflict, FactLocked, NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.models import AuditEvent, EndUser, Fact, FactRevision
from tests import factories
from tests.database import at_once
from tests.factories import KEY, LATER, NOW, STAFF

pytestmark = pytest.mark.django_db


@pytest.fixture
def fact() -> Fact:
    return factories.fact(factories.end_user(), "Lives in Leiden", key="home_city", value="Leiden")


def now_of(fact: Fact) -> Fact:
    return Fact.objects.get(pk=fact.pk)


def call(verb: Callable[..., Any], fact: Fact, **over: Any) -> Any:
    return verb(**{"fact_id": fact.pk, "actor": STAFF, "now": LATER, **over})


def by_key(fact: Fact, **changes: Any) -> Fact:
    return edit_fact(fact_id=fact.pk, tenant=fact.tenant, changes=changes, actor=KEY, now=LATER)


KEEP = {
    "pin": (pin_fact, unpin_fact, "pinned"),
    "lock": (lock_fact, unlock_fact, "locked"),
}


@pytest.mark.parametrize("name", KEEP)
class TestKeeping:
    def test_it_does_not_fade_and_says_who_kept_it(self, fact: Fact, name: str) -> None:
        keep, _, flag = KEEP[name]
        assert fact.forget_at
        kept = call(keep, fact, reason="She insists", expected_version=fact.version)
        assert (getattr(kept, flag), kept.binding, kept.forget_at, kept.version) == (True, True, None, fact.version + 1)
        revision = FactRevision.objects.get(fact=fact)
        assert (revision.verb, revision.reason, revision.actor_id) == (name, "She insists", "7")
        event = AuditEvent.objects.get(object_id=fact.pk)
        assert (event.verb, event.actor_kind, event.counts) == (name, "operator", {})

    @pytest.mark.parametrize("changes", [{"content": "Lives in Delft"}, {"pinned": False, "locked": False}])
    def test_no_key_changes_it_until_it_is_let_go(self, fact: Fact, name: str, changes: dict[str, Any]) -> None:
        keep, release, flag = KEEP[name]
        call(keep, fact)
        with pytest.raises(OperatorWord):
            by_key(fact, **changes)
        with pytest.raises(OperatorWord):
            forget_fact(fact_id=fact.pk, tenant=None, actor=KEY, now=LATER)
        freed = call(release, fact)
        assert (getattr(freed, flag), freed.binding, freed.forget_at == fact.forget_at) == (False, False, True)
        assert by_key(fact, **changes).version == 4

    def test_another_reason_to_keep_it_outlasts_the_release(self, fact: Fact, name: str) -> None:
        keep, release, _ = KEEP[name]
        other = KEEP["lock" if name == "pin" else "pin"][0]
        call(keep, fact)
        call(other, fact)
        assert call(release, fact).binding is True

    @pytest.mark.parametrize("word", [{"trust": "operator"}, {"scope": "public"}])
    def test_an_operators_word_stays_one(self, fact: Fact, name: str, word: dict[str, str]) -> None:
        keep, release, _ = KEEP[name]
        Fact.objects.filter(pk=fact.pk).update(binding=True, **word)
        call(keep, fact)
        assert call(release, fact).binding is True

    def test_what_is_not_kept_cannot_be_let_go(self, fact: Fact, name: str) -> None:
        with pytest.raises(Conflict):
            call(KEEP[name][1], fact)
        assert now_of(fact).version == fact.version

    def test_only_what_is_live_is_kept(self, fact: Fact, name: str) -> None:
        forget_fact(fact_id=fact.pk, tenant=None, actor=STAFF, now=NOW)
        with pytest.raises(Conflict):
            call(KEEP[name][0], fact)

    def test_what_somebody_changed_meanwhile_is_looked_at_again(self, fact: Fact, name: str) -> None:
        by_key(fact, content="Lives in Delft")
        for verb in KEEP[name][:2]:
            with pytest.raises(PreconditionFailed):
                call(verb, fact, expected_version=fact.version)

    def test_what_is_gone_is_not_found(self, fact: Fact, name: str) -> None:
        Fact.objects.all().delete()
        with pytest.raises(NotFound):
            call(KEEP[name][0], fact)


class TestALockThatAKeySet:
    @pytest.fixture
    def locked(self, fact: Fact) -> Fact:
        return by_key(fact, locked=True)

    @pytest.mark.parametrize("changes", [{"content": "Lives in Delft"}, {"pinned": True}, {"locked": True}])
    def test_stands_against_keys(self, locked: Fact, changes: dict[str, Any]) -> None:
        with pytest.raises(FactLocked):
            by_key(locked, **changes)
        assert now_of(locked).version == locked.version

    @pytest.mark.parametrize("verb", [forget_fact, delete_fact])
    def test_stands_against_deletion_by_keys(self, locked: Fact, verb: Callable[..., Any]) -> None:
        with pytest.raises(FactLocked):
            verb(fact_id=locked.pk, tenant=locked.tenant, actor=KEY, now=LATER)
        assert now_of(locked).status == "active"

    def test_is_lifted_by_a_key_which_may_go_on_at_once(self, locked: Fact) -> None:
        freed = by_key(locked, locked=False, content="Lives in Delft")
        assert (freed.locked, freed.content) == (False, "Lives in Delft")
        forget_fact(fact_id=freed.pk, tenant=freed.tenant, actor=KEY, now=LATER)

    def test_becomes_an_operators(self, locked: Fact) -> None:
        call(lock_fact, locked)
        with pytest.raises(OperatorWord):
            by_key(locked, locked=False)

    def test_is_none_for_an_operator(self, locked: Fact) -> None:
        corrected = call(correct_fact, locked, tenant=None, content="Lives in Delft", reason="Letter")
        assert (corrected.content, corrected.locked) == ("Lives in Delft", True)

    def test_is_told_after_a_restriction(self, locked: Fact) -> None:
        EndUser.objects.update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            by_key(locked, locked=False)


class TestExpire:
    def test_it_holds_until_then(self, fact: Fact) -> None:
        call(expire_fact, fact, expires_at=LATER + timedelta(days=2))
        assert Fact.objects.active(now=LATER).exists()
        assert not Fact.objects.active(now=LATER + timedelta(days=3)).exists()
        assert call(expire_fact, fact, expires_at=None).expires_at is None

    @pytest.mark.parametrize("moment", [LATER, NOW])
    def test_a_moment_that_is_over_is_refused(self, fact: Fact, moment: Any) -> None:
        with pytest.raises(Conflict):
            call(expire_fact, fact, expires_at=moment)

    def test_a_locked_fact_does_not_expire(self, fact: Fact) -> None:
        call(lock_fact, fact)
        with pytest.raises(Conflict):
            call(expire_fact, fact, expires_at=LATER + timedelta(days=2))


def test_nothing_is_added_of_a_restricted_person() -> None:
    person = factories.end_user()
    given: dict[str, Any] = {"end_user": person, "draft": FactDraft("Lives in Leiden", "knowledge"), "now": NOW}
    # Restricted after it was read.
    EndUser.objects.update(restricted_at=NOW)
    for actor in (KEY, STAFF):
        with pytest.raises(PersonRestricted):
            add_fact(actor=actor, **given)
    assert not Fact.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_a_key_that_edits_and_an_operator_that_locks_neither_is_lost(fact: Fact) -> None:
    def act(index: int) -> Any:
        return by_key(fact, content="Lives in Delft") if index else call(lock_fact, fact)

    outcomes = at_once(2, act)
    kept = now_of(fact)
    assert kept.locked
    refused = isinstance(outcomes[1], OperatorWord)
    assert (kept.content, kept.version) == (("Lives in Leiden", 2) if refused else ("Lives in Delft", 3))
