"""check_memory: silent about sound data, and each invariant found when a row breaks it."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F

from memories import invariants
from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.forgetting import delete_fact
from memories.llm import embeddings
from memories.models import (
    ActorKind,
    EndUser,
    EpisodeVector,
    ExtractionRun,
    Fact,
    FactRelation,
    FactVector,
    GraphTriple,
    ProfileSection,
    Session,
    SessionQueue,
    StoreItem,
    Tenant,
    Turn,
    TurnVector,
    WorkingMemory,
)
from tests import factories, vectors
from tests.database import statements, undone

pytestmark = pytest.mark.django_db
KEY = Actor(kind=ActorKind.KEY, id="7")
SECRET = "对青霉素过敏 penicillin"


@pytest.fixture
def with_model(settings: Any) -> None:
    """An endpoint is configured, so that turns are armed for extraction; nobody calls it."""
    settings.MEMORYHUB_LLM, settings.OPENAI_BASE_URL = "openai", "http://127.0.0.1:9/v1"


def sound() -> tuple[Session, Fact]:
    """An extracted session of three turns, one more that waits, and a fact that rests on its first."""
    person = factories.end_user()
    session = factories.session(person, [("user", SECRET), ("assistant", "Noted."), ("user", "ok")])
    SessionQueue.objects.filter(session=session).update(extracted_number=3, due_at=None, pending_user=False)
    run = factories.run(session, last_number=2)
    draft = FactDraft(content=SECRET, category="constraint")
    fact = add_fact(end_user=person, draft=draft, actor=factories.COMMAND, now=factories.NOW).row
    Fact.objects.filter(pk=fact.pk).update(extraction=run)
    factories.evidence(fact, session.turns.get(number=1), quote="penicillin")
    factories.profile_section(person)
    factories.episode(session, last_number=3, fed_turns=2)
    factories.session(person, [("user", "Still waiting")])
    draft = FactDraft(content="Carries an allergy card", category="other")
    other = add_fact(end_user=person, draft=draft, actor=factories.COMMAND, now=factories.NOW).row
    FactRelation.objects.create(
        tenant_id=fact.tenant_id, fact=fact, target=other, type="related_to", created_at=factories.NOW
    )
    vectors.embed_all(person, vectors.space(embeddings.HASHED, 16))
    return session, fact


def suggestion() -> Fact:
    """Of another person: a value that waits, and is asked about, because it is less sure than the one known."""
    person = factories.end_user()
    for city, confidence in (("Leiden", 0.9), ("Delft", 0.7)):
        draft = FactDraft(f"Lives in {city}", "identity", key="home_city", value=city, confidence=confidence)
        add_fact(end_user=person, draft=draft, actor=KEY, now=factories.NOW)
    assert invariants.check() == []
    return Fact.objects.get(status="pending")


def check() -> str:
    said = StringIO()
    call_command("check_memory", stdout=said)
    return said.getvalue()


def test_an_empty_database_is_sound(db: None) -> None:
    assert check() == f"All {len(invariants.INVARIANTS)} invariants hold.\n"


def test_sound_data(with_model: None) -> None:
    sound()
    assert invariants.check() == []


def test_the_demo_is_sound(with_model: None, tmp_path: Any, settings: Any) -> None:
    settings.HOME = tmp_path
    call_command("seed_demo")
    assert invariants.check() == []


def gap(session: Session, fact: Fact) -> None:
    Turn.objects.filter(session=session, number=2).update(number=4)


def lost_turn(session: Session, fact: Fact) -> None:
    Turn.objects.filter(session=session, number=3).delete()


def miscounted(session: Session, fact: Fact) -> None:
    Session.objects.filter(pk=session.pk).update(token_count=F("token_count") + 1)


def no_queue_row(session: Session, fact: Fact) -> None:
    SessionQueue.objects.filter(session=session).delete()


def watermark_too_high(session: Session, fact: Fact) -> None:
    SessionQueue.objects.filter(session=session).update(extracted_number=4)


def second_run(session: Session, fact: Fact) -> None:
    factories.run(session, first_number=2, last_number=3)


def run_beyond(session: Session, fact: Fact) -> None:
    SessionQueue.objects.filter(session=session).update(extracted_number=1)


def run_missing(session: Session, fact: Fact) -> None:
    ExtractionRun.objects.filter(session=session).update(status="failed")


def disarmed(session: Session, fact: Fact) -> None:
    SessionQueue.objects.exclude(session=session).update(due_at=None)


def foreign_turn(session: Session, fact: Fact) -> None:
    Turn.objects.filter(session=session, number=2).update(end_user=factories.end_user())


def foreign_session(session: Session, fact: Fact) -> None:
    Session.objects.filter(pk=session.pk).update(tenant=factories.tenant())


def foreign_run(session: Session, fact: Fact) -> None:
    ExtractionRun.objects.update(tenant=factories.tenant())


def foreign_fact(session: Session, fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(tenant=factories.tenant())


def foreign_revision(session: Session, fact: Fact) -> None:
    fact.revisions.update(tenant=factories.tenant())


def foreign_profile(session: Session, fact: Fact) -> None:
    ProfileSection.objects.update(tenant=factories.tenant())


def foreign_evidence(session: Session, fact: Fact) -> None:
    other = factories.session(factories.end_user(session.tenant), [("user", "Mine")])
    factories.evidence(fact, other.turns.get())


def misnumbered_evidence(session: Session, fact: Fact) -> None:
    fact.evidence.update(turn_number=2)


def no_evidence(session: Session, fact: Fact) -> None:
    fact.evidence.all().delete()


def other_text(session: Session, fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(content="Something else")


def closed(session: Session, fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(valid_to=factories.NOW)


def no_successor(session: Session, fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(status="superseded", valid_to=factories.NOW)


def never_closed(session: Session, fact: Fact) -> None:
    draft = FactDraft(content="newer", category="other")
    newer = add_fact(end_user=fact.end_user, draft=draft, actor=factories.COMMAND, now=factories.NOW).row
    Fact.objects.filter(pk=fact.pk).update(status="superseded", superseded_by=newer)


def unrevised(session: Session, fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(version=2)


def revision_lost(session: Session, fact: Fact) -> None:
    fact.revisions.all().delete()


def unasked(session: Session, fact: Fact) -> None:
    suggestion().review_items.update(state="settled")


def foreign_question(session: Session, fact: Fact) -> None:
    suggestion().review_items.update(known=fact)


def question_of_another_tenant(session: Session, fact: Fact) -> None:
    suggestion().review_items.update(tenant=fact.tenant)


def question_about_anothers_section(session: Session, fact: Fact) -> None:
    suggestion().review_items.update(proposed_section=factories.profile_revision(fact.end_user, version=None))


def foreign_relation(session: Session, fact: Fact) -> None:
    FactRelation.objects.update(target=suggestion())


def vector_of_another_text(session: Session, fact: Fact) -> None:
    FactVector.objects.update(text_digest=b"another")


def foreign_vector(session: Session, fact: Fact) -> None:
    FactVector.objects.update(end_user=factories.end_user())


def vector_of_another_tenants(session: Session, fact: Fact) -> None:
    FactVector.objects.update(tenant=factories.tenant())


def no_working_memory(session: Session, fact: Fact) -> None:
    WorkingMemory.objects.filter(session=session).delete()


def rounds_miscounted(session: Session, fact: Fact) -> None:
    Session.objects.filter(pk=session.pk).update(round_count=3)


def left_beyond_the_turns(session: Session, fact: Fact) -> None:
    turns = session.turns.all()
    tokens = sum(turn.token_count for turn in turns)
    WorkingMemory.objects.filter(session=session).update(left_number=4, left_tokens=tokens, left_rounds=2)


def left_miscounted(session: Session, fact: Fact) -> None:
    WorkingMemory.objects.filter(session=session).update(left_tokens=1)


def left_rounds_miscounted(session: Session, fact: Fact) -> None:
    WorkingMemory.objects.filter(session=session).update(left_rounds=1)


def told_twice(session: Session, fact: Fact) -> None:
    factories.episode(session, first_number=3, last_number=3)


def told_beyond(session: Session, fact: Fact) -> None:
    WorkingMemory.objects.filter(session=session).update(episode_number=2)


def untold(session: Session, fact: Fact) -> None:
    session.episodes.update(first_number=2)


def episode_of_another_text(session: Session, fact: Fact) -> None:
    EpisodeVector.objects.update(text_digest=b"another")


def foreign_episode_vector(session: Session, fact: Fact) -> None:
    EpisodeVector.objects.update(end_user=factories.end_user())


def foreign_turn_vector(session: Session, fact: Fact) -> None:
    TurnVector.objects.update(end_user=factories.end_user(session.tenant))


def memories_of_a_name(session: Session, fact: Fact) -> None:
    EndUser.objects.filter(pk=fact.end_user_id).update(merged_into=factories.end_user(session.tenant))


def name_of_a_name(session: Session, fact: Fact) -> None:
    name = factories.end_user(session.tenant, merged_into=fact.end_user)
    factories.end_user(session.tenant, merged_into=name)


def item_of_nobody(session: Session, fact: Fact) -> None:
    item = factories.store_item(fact.end_user)
    assert invariants.check() == []
    StoreItem.objects.filter(pk=item.pk).update(end_user=None)


def item_of_another_tenant(session: Session, fact: Fact) -> None:
    item = factories.store_item(fact.end_user)
    StoreItem.objects.filter(pk=item.pk).update(tenant=factories.tenant())


def triple_lost(session: Session, fact: Fact) -> None:
    draft = FactDraft("Lives in Delft", "identity", key="home_city", value="Delft")
    add_fact(end_user=fact.end_user, draft=draft, actor=factories.COMMAND, now=factories.NOW)
    assert invariants.check() == []
    GraphTriple.objects.all().delete()


def triple_of_another(session: Session, fact: Fact) -> None:
    stranger = factories.end_user(fact.end_user.tenant)
    triple = factories.triple(stranger, "Max", "works_at", "Acme")
    GraphTriple.objects.filter(pk=triple.pk).update(end_user=fact.end_user)


def version_lost(session: Session, fact: Fact) -> None:
    file = factories.memory_file(fact.end_user)
    assert invariants.check() == []
    file.versions.all().delete()


def unknown_number(session: Session, fact: Fact) -> None:
    Tenant.objects.filter(pk=session.tenant_id).update(numbers={"capacity": 50, "nonsense": 1})


def number_out_of_range(session: Session, fact: Fact) -> None:
    Tenant.objects.filter(pk=session.tenant_id).update(numbers={"half_lives": {"goal": None, "other": -1}})


BREAKS: list[tuple[Callable[[Session, Fact], None], set[str]]] = [
    (gap, {"turn_numbers"}),
    (lost_turn, {"turn_numbers", "windows"}),
    (miscounted, {"turn_numbers"}),
    (no_queue_row, {"queue_rows"}),
    (watermark_too_high, {"watermarks"}),
    (second_run, {"runs_apart"}),
    (run_beyond, {"runs_below", "armed"}),
    (run_missing, {"turns_covered"}),
    (disarmed, {"armed"}),
    (foreign_turn, {"owners"}),
    (foreign_session, {"owners", "tenants"}),
    (foreign_revision, {"tenants"}),
    (foreign_run, {"owners"}),
    (foreign_turn_vector, {"owners"}),
    (memories_of_a_name, {"names"}),
    (name_of_a_name, {"names"}),
    (foreign_fact, {"owners", "evidence", "vectors", "tenants"}),
    (foreign_profile, {"owners"}),
    (foreign_evidence, {"evidence"}),
    (misnumbered_evidence, {"evidence"}),
    (no_evidence, {"sources"}),
    (other_text, {"hashes"}),
    (closed, {"active_open"}),
    (no_successor, {"successors"}),
    (never_closed, {"successors"}),
    (unrevised, {"revisions"}),
    (revision_lost, {"revisions"}),
    (unasked, {"asked"}),
    (foreign_question, {"questions"}),
    (question_of_another_tenant, {"questions"}),
    (question_about_anothers_section, {"questions"}),
    (foreign_relation, {"relations"}),
    (item_of_nobody, {"store_owners"}),
    (item_of_another_tenant, {"store_tenants"}),
    (triple_lost, {"triples_of_facts"}),
    (triple_of_another, {"graph_owners"}),
    (version_lost, {"file_versions"}),
    (unknown_number, {"numbers"}),
    (number_out_of_range, {"numbers"}),
    (vector_of_another_text, {"vectors"}),
    (foreign_vector, {"vectors"}),
    (vector_of_another_tenants, {"vectors"}),
    (no_working_memory, {"windows"}),
    (rounds_miscounted, {"windows"}),
    (left_beyond_the_turns, {"windows"}),
    (left_miscounted, {"windows"}),
    (left_rounds_miscounted, {"windows"}),
    (told_twice, {"episodes_apart"}),
    (told_beyond, {"episodes_below"}),
    (untold, {"turns_told"}),
    (episode_of_another_text, {"vectors"}),
    (foreign_episode_vector, {"vectors"}),
]


def test_each_broken_row_is_found(with_model: None) -> None:
    session, fact = sound()
    found = {}
    for damage, _ in BREAKS:
        # The database refuses some of these rows at the commit.
        with undone():
            damage(session, fact)
            found[damage.__name__] = {broken.name for broken in invariants.check()}
    assert found == {damage.__name__: names for damage, names in BREAKS}


def test_every_invariant_has_a_row_that_breaks_it() -> None:
    assert {name for _, names in BREAKS for name in names} == {invariant.name for invariant in invariants.INVARIANTS}


def test_it_fails_with_ids_and_without_content(with_model: None, capsys: pytest.CaptureFixture[str]) -> None:
    _, fact = sound()
    other_text(fact.evidence.get().session, fact)
    said = StringIO()
    with pytest.raises(CommandError, match=f"1 of {len(invariants.INVARIANTS)} invariants do not hold") as refused:
        call_command("check_memory", stdout=said)
    assert refused.value.returncode == 1
    assert f"hashes: broken by 1. Every fact's hash is that of its text.\n    {fact.pk}\n" in said.getvalue()
    assert "Something else" not in said.getvalue()


def test_many_are_counted_and_the_first_named(with_model: None) -> None:
    person = factories.end_user()
    for number in range(invariants.SHOWN_IDS + 3):
        factories.fact(person, f"Fact {number}")
    [broken] = invariants.check()
    assert (broken.name, broken.count, len(broken.ids)) == ("revisions", 23, 20)
    assert all(isinstance(one, uuid.UUID) for one in broken.ids)


def test_a_successor_that_was_deleted_for_good_is_no_breach(with_model: None) -> None:
    _, fact = sound()
    no_successor(fact.evidence.get().session, fact)
    later = factories.NOW + timedelta(hours=1)
    draft = FactDraft(content="newer", category="other")
    newer = add_fact(end_user=fact.end_user, draft=draft, actor=factories.COMMAND, now=later).row
    delete_fact(fact_id=newer.pk, tenant=None, actor=factories.COMMAND, now=later)
    assert invariants.check() == []


def test_an_episode_that_was_deleted_for_good_is_no_breach(with_model: None) -> None:
    session, _ = sound()
    session.episodes.all().delete()
    assert invariants.check() == []


def test_without_a_model_nothing_needs_to_be_armed() -> None:
    session, fact = sound()
    disarmed(session, fact)
    assert invariants.check() == []


def test_parked_is_armed_enough(with_model: None) -> None:
    session, fact = sound()
    disarmed(session, fact)
    SessionQueue.objects.exclude(session=session).update(parked_at=factories.NOW)
    assert invariants.check() == []


def test_one_query_each_whatever_the_size(with_model: None) -> None:
    sound()
    few = len(statements(invariants.check))
    for _ in range(3):
        sound()
    assert len(statements(invariants.check)) == few
    assert connection.in_atomic_block
