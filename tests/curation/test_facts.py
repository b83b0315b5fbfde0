"""What keys and operators may do to a fact, what each act leaves behind, and what it refuses."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact, edit_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.restoring import restore_fact
from memories.exceptions import Conflict, DuplicateFact, NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.models import (
    AuditEvent,
    EndUser,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRevision,
)
from memories.models.folding import refusal_of_key, refusal_of_text, text_digest
from tests import factories
from tests.curation.marks import places_of
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import KEY, LATER, NOW, STAFF

pytestmark = pytest.mark.django_db
Verb = Callable[..., Any]


@pytest.fixture
def fact(person: EndUser) -> Fact:
    """Stated by a key, so that its history begins with version 1."""
    draft = FactDraft(content="Lives in Leiden", category="knowledge", key="home_city", value="Leiden", confidence=0.8)
    return add_fact(end_user=person, draft=draft, actor=KEY, now=NOW).row


def call(verb: Verb, fact: Fact, *, actor: Actor = KEY, **over: Any) -> Any:
    return verb(**{"fact_id": fact.pk, "tenant": fact.tenant, "actor": actor, "now": LATER, **over})


def change(fact: Fact, changes: dict[str, Any], **over: Any) -> Fact:
    changed: Fact = call(edit_fact, fact, changes=changes, reason="Because", **over)
    return changed


def edit(fact: Fact, **changes: Any) -> Fact:
    return change(fact, changes)


def correct(fact: Fact, content: str = "Lives in Delft", **over: Any) -> Fact:
    corrected: Fact = call(correct_fact, fact, **{"actor": STAFF, "content": content, "reason": "By phone", **over})
    return corrected


def forget(fact: Fact, **over: Any) -> None:
    call(forget_fact, fact, **over)


def delete(fact: Fact, **over: Any) -> None:
    call(delete_fact, fact, **over)


def restore(fact: Fact, **over: Any) -> Fact:
    restored: Fact = call(restore_fact, fact, **over)
    return restored


def change_city(fact: Fact, **over: Any) -> Fact:
    return change(fact, {"value": "Delft"}, **over)


def restore_first(fact: Fact, **over: Any) -> Fact:
    return restore(fact, version=1, **over)


ALL_VERBS = (change_city, correct, forget, delete, restore_first)
KEPT_VERBS = (change_city, correct, forget, restore_first)


def now_of(fact: Fact) -> Fact:
    return Fact.objects.get(pk=fact.pk)


def state() -> tuple[Any, ...]:
    """All that a refused act must leave alone."""
    models = (Fact, FactRevision, FactRefusal, AuditEvent)
    return tuple(sorted(map(str, model._default_manager.values_list())) for model in models)


def refused_digests(person: EndUser) -> set[bytes]:
    return {bytes(one) for one in FactRefusal.objects.filter(end_user=person).values_list("digest", flat=True)}


class TestEveryVerb:
    @pytest.mark.parametrize("verb", ALL_VERBS)
    def test_an_event_says_who_did_what_and_nothing_of_the_content(self, fact: Fact, verb: Verb) -> None:
        before = AuditEvent.objects.count()
        verb(fact, actor=STAFF)
        assert AuditEvent.objects.count() == before + 1
        event = AuditEvent.objects.first()
        assert event
        assert event.verb in {"edit", "correct", "forget", "delete", "restore"}
        assert (event.object_type, event.object_id, event.tenant_uuid) == ("Fact", fact.pk, fact.tenant_id)
        assert (event.actor_kind, event.actor_id, event.request_id) == ("operator", "7", "r-2")
        assert event.created_at == LATER
        told = str(vars(event)).casefold()
        assert not any(word in told for word in ("leiden", "delft", "home_city", "because", "phone"))

    @pytest.mark.parametrize("verb", KEPT_VERBS)
    def test_a_revision_tells_what_changed(self, fact: Fact, verb: Verb) -> None:
        verb(fact, actor=STAFF)
        changed = now_of(fact)
        assert (changed.version, changed.updated_at) == (2, LATER)
        revision = FactRevision.objects.get(fact=fact, version=2)
        assert (revision.actor_kind, revision.actor_id, revision.created_at) == ("operator", "7", LATER)
        first = FactRevision.objects.get(fact=fact, version=1)
        for name, value in revision.after.items():
            if name in revision.before:
                assert revision.before[name] == first.after[name] != value, name
            else:
                assert first.after[name] == value, name
        assert revision.after["content"] == changed.content
        assert revision.after["status"] == changed.status

    @pytest.mark.parametrize("verb", ALL_VERBS)
    def test_a_stale_version_changes_nothing(self, fact: Fact, verb: Verb) -> None:
        edit(fact, tags=["seen"])
        before = state()
        for stale in (1, 3):
            with pytest.raises(PreconditionFailed):
                verb(fact, actor=STAFF, expected_version=stale)
        assert state() == before
        verb(fact, actor=STAFF, expected_version=2)
        assert state() != before

    @pytest.mark.parametrize("verb", ALL_VERBS)
    def test_another_tenants_fact_does_not_exist(self, fact: Fact, verb: Verb) -> None:
        before = state()
        for target in ({"tenant": factories.tenant()}, {"fact_id": uuid.uuid4()}):
            with pytest.raises(NotFound):
                verb(fact, actor=STAFF, **target)
        assert state() == before
        verb(fact, actor=STAFF)
        assert state() != before

    @pytest.mark.parametrize("verb", [change_city, forget, delete, restore_first])
    def test_a_key_does_not_overrule_an_operator(self, fact: Fact, verb: Verb) -> None:
        correct(fact)
        before = state()
        with pytest.raises(OperatorWord):
            verb(fact, actor=KEY)
        assert state() == before
        verb(fact, actor=STAFF)
        assert state() != before

    @pytest.mark.parametrize("verb", [change_city, forget, delete, restore_first])
    def test_a_restricted_person_is_out_of_reach_for_keys(self, fact: Fact, verb: Verb) -> None:
        EndUser.objects.update(restricted_at=NOW)
        before = state()
        with pytest.raises(PersonRestricted):
            verb(fact, actor=KEY)
        assert state() == before
        verb(fact, actor=STAFF)
        assert state() != before

    @pytest.mark.parametrize("verb", KEPT_VERBS)
    def test_forget_at_follows_every_change(self, fact: Fact, verb: Verb) -> None:
        Fact.objects.update(forget_at=NOW, decay_score=0.0)
        verb(fact, actor=STAFF)
        changed = now_of(fact)
        assert changed.decay_score > 0
        assert changed.forget_at != NOW
        assert (changed.forget_at is None) is changed.binding


class TestEdit:
    def test_named_fields_change_and_no_others(self, fact: Fact) -> None:
        before = vars(now_of(fact))
        edit(fact, content="住在代尔夫特", tags=["城市"], importance=0.9, pinned=True)
        after = vars(now_of(fact))
        changed = {name for name in after if not name.startswith("_") and after[name] != before[name]}
        assert changed == {
            "content",
            "content_hash",
            "terms",
            "tags",
            "importance",
            "pinned",
            "version",
            "updated_at",
            "decay_score",
            "forget_at",
        }
        assert bytes(after["content_hash"]) == text_digest("住在代尔夫特")
        revision = FactRevision.objects.get(version=2)
        assert revision.reason == "Because"
        assert revision.before == {"content": "Lives in Leiden", "tags": [], "importance": 0.5, "pinned": False}

    def test_a_stated_confidence_is_the_one_to_beat(self, fact: Fact) -> None:
        edit(fact, confidence=0.95)
        assert now_of(fact).stated_confidence == 0.95
        edit(fact, value="Delft")
        assert now_of(fact).stated_confidence == 0.95

    def test_pinned_facts_do_not_fade(self, fact: Fact) -> None:
        assert edit(fact, pinned=True).forget_at is None
        assert edit(fact, pinned=False).forget_at

    def test_another_facts_text_is_refused(self, fact: Fact, person: EndUser) -> None:
        twin = factories.fact(person, "Lives in Delft")
        before = state()
        with pytest.raises(DuplicateFact) as raised:
            edit(fact, content="lives in DELFT")
        assert (raised.value.fact_id, state()) == (twin.pk, before)
        edit(fact, content="lives in leiden")

    @pytest.mark.parametrize("status", ["trashed", "superseded", "rejected", "archived"])
    def test_what_no_longer_lives_is_not_edited(self, fact: Fact, status: str) -> None:
        Fact.objects.update(status=status)
        before = state()
        for verb in (change_city, correct):
            with pytest.raises(Conflict, match="in the trash" if status == "trashed" else status):
                verb(fact, actor=STAFF)
        assert state() == before

    def test_a_pending_fact_stays_pending(self, fact: Fact) -> None:
        Fact.objects.update(status="pending")
        assert edit(fact, value="Delft").status == "pending"

    @pytest.mark.django_db(transaction=True)
    def test_of_two_edits_of_one_version_one_wins(self) -> None:
        fact = factories.fact(factories.end_user())
        outcomes = at_once(4, lambda writer: change(fact, {"value": str(writer)}, expected_version=1))
        winners = [outcome for outcome in outcomes if isinstance(outcome, Fact)]
        assert len(winners) == 1
        assert sum(isinstance(outcome, PreconditionFailed) for outcome in outcomes) == 3
        assert (now_of(fact).version, now_of(fact).value) == (2, winners[0].value)

    @pytest.mark.django_db(transaction=True)
    def test_edits_without_a_version_come_one_after_the_other(self) -> None:
        fact = factories.fact(factories.end_user())
        changes = [("key", "home"), ("value", "Delft"), ("tags", ["city"]), ("importance", 0.7)]
        outcomes = at_once(4, lambda writer: change(fact, dict([changes[writer]])))
        assert all(isinstance(outcome, Fact) for outcome in outcomes)
        changed = now_of(fact)
        assert [(name, getattr(changed, name)) for name, _ in changes] == changes
        assert changed.version == 5
        assert set(FactRevision.objects.values_list("version", flat=True)) == {2, 3, 4, 5}

    @pytest.mark.django_db(transaction=True)
    def test_an_edit_sees_what_a_job_has_just_committed(self) -> None:
        fact = factories.fact(factories.end_user())

        def job() -> None:
            row = Fact.objects.select_for_update().get(pk=fact.pk)
            row.mentions, row.version = 7, 2
            row.save()

        with held(job):
            late = blocked(lambda: edit(fact, value="Delft"))
        assert late.result(PATIENCE).version == 3
        assert (now_of(fact).mentions, now_of(fact).value) == (7, "Delft")


class TestCorrect:
    def test_an_operators_word_binds(self, fact: Fact) -> None:
        corrected = correct(fact)
        assert corrected.content == "Lives in Delft"
        assert (corrected.binding, corrected.status) == (True, "active")
        assert (corrected.source, corrected.trust) == ("corrected_memory", "operator")
        assert (corrected.confidence, corrected.stated_confidence) == (1.0, 1.0)
        assert (corrected.last_confirmed_at, corrected.forget_at) == (LATER, None)
        revision = FactRevision.objects.get(version=2)
        assert (revision.verb, revision.reason) == ("correct", "By phone")

    def test_the_category_may_change(self, fact: Fact) -> None:
        assert correct(fact).category == "knowledge"
        assert correct(fact, "Was born in Delft", category="identity").category == "identity"

    def test_a_pending_fact_is_approved_by_it(self, fact: Fact) -> None:
        Fact.objects.update(status="pending")
        assert correct(fact).status == "active"

    def test_the_old_text_is_refused_from_now_on(self, fact: Fact, person: EndUser) -> None:
        correct(fact)
        assert refused_digests(person) == {refusal_of_text("Lives in Leiden")}

    def test_another_spelling_refuses_nothing(self, fact: Fact, person: EndUser) -> None:
        correct(fact, "lives in LEIDEN")
        assert refused_digests(person) == set()

    def test_back_and_forth_refuses_only_what_is_wrong_now(self, fact: Fact, person: EndUser) -> None:
        correct(fact)
        correct(fact, "Lives in Leiden")
        assert refused_digests(person) == {refusal_of_text("Lives in Delft")}

    def test_another_facts_text_is_refused(self, fact: Fact, person: EndUser) -> None:
        twin = factories.fact(person, "Lives in Delft")
        before = state()
        with pytest.raises(DuplicateFact) as raised:
            correct(fact)
        assert (raised.value.fact_id, state()) == (twin.pk, before)


class TestForget:
    def test_to_the_trash_and_refused_for_good(self, fact: Fact, person: EndUser) -> None:
        forget(fact, reason="Was a joke")
        gone = now_of(fact)
        assert (gone.status, gone.trashed_at) == ("trashed", LATER)
        assert refused_digests(person) == {
            refusal_of_text("Lives in Leiden"),
            refusal_of_key("knowledge", "home_city"),
        }
        assert set(FactRefusal.objects.values_list("kind", "fact")) == {("text", fact.pk), ("key", fact.pk)}
        assert FactRevision.objects.get(version=2).reason == "Was a joke"

    def test_without_a_key_only_the_text_is_refused(self, person: EndUser) -> None:
        forget(factories.fact(person, "喜欢喝茶"))
        assert refused_digests(person) == {refusal_of_text("喜欢喝茶")}

    def test_a_second_time_nothing_happens(self, fact: Fact) -> None:
        forget(fact)
        before = state()
        forget(fact, expected_version=1)
        assert state() == before

    def test_the_same_text_of_two_agents_is_refused_once(self, person: EndUser) -> None:
        for agent in ("", "support"):
            forget(factories.fact(person, "Likes tea", agent_id=agent))
        assert FactRefusal.objects.count() == 1

    def test_what_stands_for_a_refusal_is_no_text(self, person: EndUser) -> None:
        fact = factories.fact(person, "Owns a quetzalcoatl", key="exotic_quetzalcoatl")
        forget(fact)
        kept = FactRefusal.objects.values_list("kind", "digest")
        assert all(len(bytes(digest)) == 32 for _, digest in kept)
        assert bytes(fact.content_hash) not in {bytes(digest) for _, digest in kept}
        assert "memories_factrefusal.digest" not in places_of("quetzalcoatl")


class TestDelete:
    MARK = "quetzalcoatl"

    def known(self, person: EndUser) -> Fact:
        """A fact with the mark in every field that takes text, evidence and a history."""
        talk = factories.session(person, [("user", "Nothing of note")])
        fact = factories.fact(
            person,
            f"Owns a {self.MARK}",
            category="correction",
            raw=f"my {self.MARK}",
            structured={self.MARK: [self.MARK]},
            key=self.MARK,
            value=self.MARK,
            tags=[self.MARK],
            source_error=self.MARK,
            agent_id=self.MARK,
            allowed_users=[self.MARK],
            allowed_roles=[self.MARK],
            prompt_version=self.MARK,
        )
        factories.evidence(fact, talk.turns.get(), quote=f"my {self.MARK}")
        edit(fact, value=f"{self.MARK}!")
        correct(fact, f"Owns two {self.MARK}s", reason=f"{self.MARK} confirmed")
        return fact

    def test_no_text_stays_anywhere(self, person: EndUser) -> None:
        fact = self.known(person)
        places = places_of(self.MARK)
        assert {"memories_fact.content", "memories_factevidence.quote", "memories_factrevision.after"} <= set(places)
        digest = bytes(now_of(fact).content_hash).hex()
        delete(fact, actor=STAFF)
        assert places_of(self.MARK) == []
        assert not any(digest in str(row) for row in AuditEvent.objects.values_list())
        assert not Fact.objects.exists()
        assert not FactEvidence.objects.exists()
        assert not FactRevision.objects.exists()

    def test_the_refusal_outlives_it(self, person: EndUser) -> None:
        delete(self.known(person), actor=STAFF)
        assert refusal_of_text(f"Owns two {self.MARK}s") in refused_digests(person)
        assert refusal_of_key("correction", self.MARK) in refused_digests(person)
        assert set(FactRefusal.objects.values_list("fact", flat=True)) == {None}

    def test_from_the_trash_too(self, fact: Fact) -> None:
        forget(fact)
        delete(fact)
        assert places_of("Leiden") == []
        with pytest.raises(NotFound):
            restore(fact)

    def test_others_stay(self, fact: Fact, person: EndUser) -> None:
        newer = factories.fact(person, "Lives in Delft")
        older = factories.fact(person, "Lived in Gouda", status="superseded", superseded_by=fact)
        delete(fact)
        assert set(Fact.objects.all()) == {newer, older}
        assert now_of(older).superseded_by is None


class TestRestore:
    @pytest.mark.parametrize("actor", [KEY, STAFF])
    def test_from_the_trash_as_it_was(self, fact: Fact, person: EndUser, actor: Actor) -> None:
        before = FactRevision.objects.get(version=1).after
        forget(fact)
        restored = restore(fact, actor=actor, reason="Not a joke")
        assert (restored.status, restored.trashed_at, restored.last_confirmed_at) == ("active", None, LATER)
        assert refused_digests(person) == set()
        revision = FactRevision.objects.get(version=3)
        confirmed = {"last_confirmed_at": LATER.isoformat()}
        assert (revision.verb, revision.reason, revision.after) == ("restore", "Not a joke", before | confirmed)

    def test_only_its_own_refusals_are_lifted(self, fact: Fact, person: EndUser) -> None:
        forget(factories.fact(person, "Likes tea", key="drink"))
        others = refused_digests(person)
        forget(fact)
        restore(fact)
        assert refused_digests(person) == others

    def test_the_refusal_of_what_the_trash_held_goes_too(self, fact: Fact, person: EndUser) -> None:
        edit(fact, content="Lives in Delft", key="town")
        forget(fact)
        assert len(refused_digests(person)) == 2
        assert restore(fact, version=1).content == "Lives in Leiden"
        assert refused_digests(person) == set()

    def test_to_what_an_earlier_version_said(self, fact: Fact) -> None:
        edit(
            fact, content="Lives in Delft", value="Delft", tags=["moved"], confidence=0.99, importance=0.9, pinned=True
        )
        restored = restore(fact, version=1)
        assert (restored.content, restored.value, restored.tags) == ("Lives in Leiden", "Leiden", [])
        assert (restored.confidence, restored.importance) == (0.8, 0.5)
        assert bytes(now_of(fact).content_hash) == text_digest("Lives in Leiden")
        # Who may see or change a fact is not what it says.
        assert restored.pinned
        assert (restored.binding, restored.trust, restored.version) == (False, "user", 3)

    def test_an_operators_choice_of_version_binds(self, fact: Fact) -> None:
        edit(fact, content="Lives in Delft")
        restored = restore(fact, version=1, actor=STAFF)
        assert (restored.binding, restored.source, restored.trust) == (True, "corrected_memory", "operator")

    @pytest.mark.parametrize("over", [{}, {"version": 9}, {"version": 0}])
    def test_nothing_to_go_back_to(self, fact: Fact, over: dict[str, Any]) -> None:
        before = state()
        with pytest.raises(NotFound if over else Conflict):
            restore(fact, **over)
        assert state() == before

    def test_an_earlier_text_that_another_fact_has_by_now(self, fact: Fact, person: EndUser) -> None:
        forget(fact)
        again = factories.fact(person, "Lives in Leiden")
        before = state()
        with pytest.raises(DuplicateFact) as raised:
            restore(fact)
        assert (raised.value.fact_id, state()) == (again.pk, before)
        delete(again)
        assert restore(fact).status == "active"

    def test_no_key_approves_what_waits_for_review_or_undoes_a_rejection(self, fact: Fact) -> None:
        Fact.objects.update(status="pending")
        assert restore(fact, version=1).status == "pending"
        forget(fact)
        assert restore(fact).status == "pending"
        forget(fact)
        assert restore(fact, version=1).status == "pending"
        Fact.objects.update(status="rejected")
        assert restore(fact, version=1).status == "rejected"
        assert restore(fact, version=1, actor=STAFF).status == "active"

    def test_an_operator_brings_a_suggestion_back_as_a_suggestion(self, fact: Fact) -> None:
        Fact.objects.update(status="pending")
        forget(fact, actor=STAFF)
        restored = restore(fact, actor=STAFF)
        assert (restored.status, restored.binding) == ("pending", False)

    def test_what_an_operator_approved_comes_back_approved(self, fact: Fact) -> None:
        Fact.objects.update(status="pending")
        correct(fact)
        forget(fact, actor=STAFF)
        restored = restore(fact, actor=STAFF)
        assert (restored.status, restored.binding) == ("active", True)

    def test_a_superseded_fact_comes_back_superseded_and_alive_when_its_version_is_named(
        self, fact: Fact, person: EndUser
    ) -> None:
        newer = factories.fact(person, "Lives in Delft")
        Fact.objects.filter(pk=fact.pk).update(status="superseded", superseded_by=newer, valid_to=NOW)
        forget(fact)
        restored = restore(fact)
        assert (restored.status, restored.superseded_by, restored.valid_to) == ("superseded", newer, NOW)
        revived = restore(fact, version=1)
        assert (revived.status, revived.superseded_by, revived.valid_to) == ("active", None, None)

    def test_what_a_job_has_learnt_is_kept(self, fact: Fact) -> None:
        Fact.objects.filter(pk=fact.pk).update(confidence=0.85, mentions=2)
        forget(fact)
        restored = restore(fact)
        assert (restored.mentions, restored.confidence) == (2, 0.85)
