"""No table and no field that can hold personal data may be missing from the privacy registry."""

import pytest
from django.apps import apps

from memories.embedding import vectors
from memories.models import FactEvidence
from memories.models.columns import VALUE, Columns
from memories.privacy import registry
from tests import factories


def test_every_model_and_field_is_registered_or_waived() -> None:
    assert registry.unaccounted() == []


def test_the_guard_sees_a_field_that_nobody_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FactEvidence, "columns", Columns(id=VALUE))
    assert registry.unaccounted() == ["memories.FactEvidence.quote"]


def test_the_guard_sees_a_model_that_leads_to_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        registry, "STORES", tuple(store for store in registry.STORES if store.model != "memories.FactRefusal")
    )
    assert "memories.FactRefusal.(leads to EndUser)" in registry.unaccounted()


def test_every_entry_names_a_model_and_fields_that_exist() -> None:
    entries: list[registry.Store | registry.Waiver] = [*registry.STORES, *registry.WAIVERS]
    for entry in entries:
        names = {field.name for field in apps.get_model(entry.model)._meta.get_fields()}
        assert set(entry.fields) <= names, entry.model


@pytest.mark.django_db
def test_rows_of_a_person_are_found_and_no_one_elses() -> None:
    person, other = factories.end_user(), factories.end_user()
    for someone in (person, other):
        conversation = factories.session(someone)
        known = factories.fact(someone)
        factories.episode(conversation)
        factories.evidence(known, conversation.turns.get())
        factories.run(conversation)
        factories.profile_section(someone)
        factories.profile_revision(someone)
        factories.review_note(factories.review_item(known))
        factories.idempotency_record(someone)
        factories.logged_context(someone, [known])
        factories.sent_block(someone, [known])
        factories.imported_row(someone)
        factories.seen_text(someone)
        factories.person_link(someone)
        factories.store_item(someone)
        factories.triple(someone, "user", "is", "user")
        factories.memory_file(someone)
        factories.diary_entry(someone)
        factories.attachment(conversation.turns.get(), "A rye loaf costs 6.40 euros.")
        factories.dream(someone)
        factories.skill(someone)
        factories.group_fact(factories.memory_group(someone), someone)
        factories.webhook_delivery(factories.webhook(someone.tenant), someone)
        factories.policy_finding(known)
        factories.privacy_export(factories.privacy_case(someone))
    while vectors.embed_some().moved:
        """Until every text has its vector."""
    for store in registry.STORES:
        absent = {f"memories.Fact{name}" for name in ("Revision", "Refusal", "Relation")}
        absent |= {"memories.ChangeSet", "memories.Change"}
        # A call and its result.
        expected = 0 if store.model in absent else 2 if store.model == "memories.TrajectoryStep" else 1
        assert store.rows_of(person).count() == expected, store.model
