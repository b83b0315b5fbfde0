"""An erasure beside whatever else is at work on the person: on two connections, with gates; nothing comes back."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from memories import invariants
from memories.audit import Actor
from memories.capture import flushing, ingest
from memories.capture.ingest import PostedMessage, Receipt
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.feedback import give_feedback
from memories.curation.people.merging.merge import merge_people
from memories.curation.people.records import update_person
from memories.curation.profile.sections import write_profile_section
from memories.curation.statements.documents import DocumentSection, import_document
from memories.embedding import batching, memory_vectors, reembedding, turn_vectors, vectors
from memories.episodes import compaction
from memories.exceptions import MemoryHubError, NotFound, PersonRestricted
from memories.extraction import consolidation
from memories.forgetting import decay, trash
from memories.models import (
    ActorKind,
    CaseState,
    ChangeSet,
    DecayPass,
    EmbeddingSpace,
    EndUser,
    ExtractionRun,
    Fact,
    FactVector,
    ModelUse,
    PrivacyCase,
    ProfileSection,
    Session,
    SessionQueue,
    Turn,
    TurnVector,
    WorkingMemory,
)
from memories.privacy import case_leases, erasing, registry, running
from memories.retrieval import recalls, turn_drafts, turn_files, turn_index
from memories.retrieval.cache import indexes
from tests import factories
from tests.database import PATIENCE, at_once, blocked, elsewhere, held
from tests.factories import LATER, NOW, STAFF
from tests.model import Model, candidate
from tests.privacy.erased_world import Neighbours, erasure, known, stand_in

pytestmark = pytest.mark.django_db(transaction=True)
KEY = Actor(kind=ActorKind.KEY, id="8")
SAID = (("user", "I live in Leiden"), ("assistant", "Noted"))


@pytest.fixture(autouse=True)
def neighbours(monkeypatch: pytest.MonkeyPatch) -> Neighbours:
    return stand_in(monkeypatch)


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(external_id="anneke-7")


@pytest.fixture(autouse=True)
def ended_sound(db: None) -> Any:
    yield
    assert invariants.check() == []


def erase(person: EndUser) -> PrivacyCase:
    case = running.carry_out(case_id=erasure(person).pk, now=LATER, wait_seconds=PATIENCE)
    assert case.state == CaseState.COMPLETED, case.failure
    return case


def restrict(person: EndUser) -> None:
    """As the identity check of a case does it."""
    EndUser.objects.filter(pk=person.pk).update(restricted_at=Now())


def post(person: EndUser, session_id: str = "s") -> Receipt:
    said = [PostedMessage(role="user", content="I live in Leiden")]
    named: dict[str, Any] = {"user_id": person.external_id, "session_id": session_id, "agent_id": ""}
    return ingest.store_turns(tenant=person.tenant, messages=said, **named)


def due(session: Session) -> None:
    for model in (SessionQueue, WorkingMemory):
        model.objects.filter(pk=session.pk).update(due_at=Now() - timedelta(minutes=5))


def nothing_is_left() -> bool:
    """Of anybody: nobody else is there in these tests."""
    tables = [store for store in registry.STORES if store.model not in _STAYING]
    left = {store.model: store.table._default_manager.count() for store in tables}
    assert {label for label, rows in left.items() if rows} == set()
    return True


_STAYING = ("memories.PrivacyCase", "memories.IdempotencyRecord")


class TestWorkers:
    def test_an_extraction_in_flight_is_thrown_away(self, model: Model, person: EndUser) -> None:
        session = factories.session(person, SAID)
        due(session)

        def answer() -> dict[str, Any]:
            elsewhere(lambda: erase(person))
            return {"new_facts": [candidate()]}

        model.answers.append(answer)
        run = consolidation.consolidate(session_id=session.pk, now=LATER)
        assert run
        assert run.status == ExtractionRun.RunStatus.DISCARDED
        assert nothing_is_left()

    def test_one_whose_answer_comes_between_two_steps_too(self, model: Model, person: EndUser) -> None:
        session = factories.session(person, SAID)
        due(session)
        case = erasure(person)

        def answer() -> dict[str, Any]:
            elsewhere(partial(_until, case, "memories.Fact"))
            return {"new_facts": [candidate()]}

        factories.fact(person)
        model.answers.append(answer)
        consolidation.consolidate(session_id=session.pk, now=LATER)
        assert Fact.objects.count() == 0
        PrivacyCase.objects.update(lease_until=None)
        running.carry_out(case_id=case.pk, now=LATER)
        assert nothing_is_left()

    def test_a_commit_under_way_is_waited_for(self, model: Model, person: EndUser) -> None:
        session = factories.session(person, SAID)
        due(session)
        model.say(candidate())
        with held(lambda: consolidation.consolidate(session_id=session.pk, now=LATER)):
            erasing_them = blocked(lambda: erase(person))
        assert erasing_them.result(PATIENCE).counts["memories.Fact"] == 1
        assert nothing_is_left()

    def test_a_summary_in_flight_is_thrown_away(self, model: Model, person: EndUser) -> None:
        session = factories.session(person, SAID * 4, flush=True)
        named: dict[str, Any] = {"session_id": session.external_id, "agent_id": session.agent_id}
        flushing.end_session(tenant=person.tenant, user_id=person.external_id, **named)
        due(session)

        def answer() -> dict[str, Any]:
            elsewhere(lambda: erase(person))
            return {}

        model.episodes.append(answer)
        compaction.compact(session_id=session.pk, now=LATER)
        assert nothing_is_left()
        # What it cost is the tenant's, and says nothing of anybody.
        assert set(ModelUse.objects.values_list("tenant", flat=True)) <= {person.tenant_id}

    @pytest.mark.parametrize("place", [turn_vectors, memory_vectors])
    def test_vectors_in_flight_are_not_written(self, person: EndUser, monkeypatch: Any, place: Any) -> None:
        factories.session(person, SAID)
        known(person, "Sails")
        embed = place.embed_each

        def meanwhile(*given: Any) -> Any:
            found = embed(*given)
            if not PrivacyCase.objects.exists():
                elsewhere(lambda: erase(person))
            return found

        monkeypatch.setattr(place, "embed_each", meanwhile)
        while vectors.embed_some().moved:
            """Until every text has its vector."""
        assert (TurnVector.objects.count(), FactVector.objects.count()) == (0, 0)
        assert nothing_is_left()

    def test_vectors_of_another_model_in_flight_neither(self, person: EndUser, monkeypatch: Any) -> None:
        factories.session(person, SAID)
        known(person, "Sails")
        while vectors.embed_some().moved:
            """Until every text has its vector."""
        space = EmbeddingSpace.objects.get()
        EmbeddingSpace.objects.update(model="an-older-one")
        embed = batching.embed_each

        def meanwhile(*given: Any) -> Any:
            found = embed(*given)
            if not PrivacyCase.objects.exists():
                elsewhere(lambda: erase(person))
            return found

        monkeypatch.setattr(reembedding, "embed_each", meanwhile)
        reembedding.reembed(model=space.model)
        assert nothing_is_left()

    def test_a_pass_of_forgetting_goes_on_without_them(self, person: EndUser, monkeypatch: Any) -> None:
        other = factories.end_user(person.tenant)
        for one in (person, other):
            known(one, "Sails", now=NOW - timedelta(days=900), importance=0.1)
        locked = trash._locked

        def meanwhile(*given: Any, **named: Any) -> Any:
            if not PrivacyCase.objects.exists():
                elsewhere(lambda: erase(person))
            return locked(*given, **named)

        monkeypatch.setattr(trash, "_locked", meanwhile)
        done = decay.forget(tenant=person.tenant, now=LATER, trigger=DecayPass.Trigger.COMMAND, confirm=True)
        assert (done.counts["facts"], done.reached, PrivacyCase.objects.count()) == (1, None, 1)
        assert list(Fact.objects.values_list("end_user", "status")) == [(other.pk, "trashed")]

    def test_recalls_noted_before_are_written_to_nobody(self, person: EndUser) -> None:
        fact = factories.fact(person)
        recalls.note("fact", [fact.pk], now=NOW)
        erase(person)
        assert recalls.flush(now=LATER) == 0
        assert nothing_is_left()

    def test_what_was_read_to_be_searched_is_not_found_again(
        self, person: EndUser, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nor is it on another host; and a file that is being made meanwhile does not come to be."""
        monkeypatch.setattr(turn_files, "FILE_FROM", 2)
        factories.session(person, SAID)
        write = turn_drafts.Draft._write

        def meanwhile(*given: Any) -> Any:
            elsewhere(lambda: erase(person))
            return write(*given)

        def opened(host: str) -> tuple[int, list[str]]:
            settings.HOME = tmp_path / host
            settings.HOME.mkdir(exist_ok=True)
            indexes._cache._values.clear()
            found = len(turn_index.open_index(person, None))
            return found, [path.name for path in (settings.HOME / "indexes").iterdir() if path.name != "lock"]

        assert opened("other") == (2, [f"{person.pk}.0.turns"])
        with monkeypatch.context() as patch:
            patch.setattr(turn_drafts.Draft, "_write", meanwhile)
            assert opened("erasing") == (2, [])
        assert opened("erasing") == (0, [])
        # The file of the other host is of no use, and goes.
        assert opened("other") == (0, [f"{person.pk}.0.turns"])
        turn_files.sweep()
        assert opened("other") == (0, [])


class TestPosts:
    @pytest.mark.parametrize("session_id", ["known", "new"])
    def test_turns_that_are_being_stored_are_waited_for_and_go(self, person: EndUser, session_id: str) -> None:
        factories.session(person, session_id="known")
        with held(lambda: post(person, session_id)):
            erasing_them = blocked(lambda: erase(person))
        assert erasing_them.result(PATIENCE).counts["memories.Turn"] == 2
        assert nothing_is_left()

    @pytest.mark.parametrize(
        ("step", "session_id"),
        [(erasing.BEGIN, "known"), (erasing.BEGIN, "new"), ("memories.Turn", "new"), (erasing.STORES, "known")],
    )
    def test_posts_between_two_steps_are_refused(self, person: EndUser, session_id: str, step: str) -> None:
        factories.session(person, session_id="known")
        case = erasure(person)
        _until(case, step)
        with pytest.raises(PersonRestricted):
            post(person, session_id)
        PrivacyCase.objects.update(lease_until=None)
        running.carry_out(case_id=case.pk, now=LATER)
        assert nothing_is_left()

    def test_a_session_begun_before_the_restriction_goes_too(self, person: EndUser) -> None:
        """Its post looked before the person was restricted; its transaction ends after the stores were emptied."""
        case = erasure(person)
        with held(lambda: post(person, "new")):
            blocked_at = blocked(partial(_until, case, erasing.STORES))
        blocked_at.result(PATIENCE)
        assert Turn.objects.count() == 0

    def test_many_posts_and_an_erasure_leave_nothing_of_before(self, person: EndUser) -> None:
        factories.session(person, session_id="s0")

        def act(number: int) -> Any:
            if number == 4:
                return erase(person)
            try:
                return [post(person, f"s{step % 3}") for step in range(6)]
            except (PersonRestricted, MemoryHubError):
                return "refused"

        outcomes = at_once(8, act)
        assert [one for one in outcomes if isinstance(one, Exception)] == []
        # Who comes back under the id is another person, by the case's policy.
        assert not EndUser.objects.filter(pk=person.pk).exists()
        assert not Turn.objects.filter(end_user=person.pk).exists()
        assert not Session.objects.filter(end_user=person.pk).exists()

    def test_two_workers_at_once_do_it_once(self, person: EndUser, neighbours: Neighbours) -> None:
        factories.evidence(known(person, "Sails"), factories.session(person).turns.get())
        case = erasure(person)
        outcomes = at_once(3, lambda _: running.carry_out(case_id=case.pk, now=LATER, wait_seconds=PATIENCE))
        assert [one.state for one in outcomes if isinstance(one, PrivacyCase)] == [CaseState.COMPLETED] * 3
        assert neighbours.asked == ["ledger", "needles", "verify", "receipt", "files"]


class TestPeopleAtWork:
    def test_a_merge_of_somebody_restricted_is_refused_and_one_under_way_waited_for(self, person: EndUser) -> None:
        other = factories.end_user(person.tenant)
        factories.session(other, SAID)
        merge = partial(merge_people, survivor=person.pk, merged=other.pk, actor=STAFF, now=LATER)
        with held(merge):
            erasing_them = blocked(lambda: erase(person))
        erasing_them.result(PATIENCE)
        assert not EndUser.objects.exists()
        assert ChangeSet.objects.count() == 0
        assert nothing_is_left()

    @pytest.mark.parametrize("step", [erasing.BEGIN, "memories.Fact", erasing.STORES])
    def test_what_staff_write_between_two_steps_goes_too(self, person: EndUser, step: str) -> None:
        """A rectification is taken while the person is restricted; an erasure has the last word."""
        fact, gone = known(person, "Sails"), known(person, "Rows")
        case = erasure(person)
        _until(case, step)
        for verb in _verbs(person, fact, STAFF):
            try:
                verb()
            except MemoryHubError:
                continue
        assert ProfileSection.objects.filter(end_user=person).exists()
        PrivacyCase.objects.update(lease_until=None)
        running.carry_out(case_id=case.pk, now=LATER)
        assert nothing_is_left(), gone

    @pytest.mark.parametrize("actor", [STAFF, KEY])
    def test_no_verb_brings_anything_back(self, person: EndUser, actor: Actor) -> None:
        fact = known(person, "Sails")
        stale = EndUser.objects.select_related("tenant").get(pk=person.pk)
        erase(person)
        for place, verb in enumerate(_verbs(stale, fact, actor)):
            with pytest.raises((NotFound, PersonRestricted)):
                verb()
            assert nothing_is_left(), place

    def test_a_key_writes_nothing_of_somebody_restricted(self, person: EndUser) -> None:
        fact = known(person, "Sails")
        restrict(person)
        before = registry.counts(person)
        for place, verb in enumerate(_verbs(person, fact, KEY)):
            with pytest.raises(PersonRestricted):
                verb()
            assert registry.counts(person) == before, place

    def test_a_form_that_was_open_meanwhile_finds_nobody(self, person: EndUser, client: Client) -> None:
        fact = known(person, "Sails")
        client.force_login(factories.operator())
        addresses = [
            reverse("admin:memories_fact_change", args=[fact.pk]),
            reverse("admin:memories_enduser_change", args=[person.pk]),
        ]
        assert [client.get(address).status_code for address in addresses] == [200, 200]
        erase(person)
        for address in addresses:
            answer = client.post(address, {"content": "Sails", "category": "other", "display_name": "Anneke"})
            assert answer.status_code in (302, 404), address
        assert nothing_is_left()

    def test_who_holds_on_is_not_held_up(self, person: EndUser, monkeypatch: Any) -> None:
        """The erasure gives way: what it holds is free again while it waits for the next try."""
        first = factories.session(person, session_id="a")
        factories.session(person, session_id="b")
        with held(lambda: post(person, "b")):
            erasing_them = blocked(lambda: erase(person))
            assert elsewhere(lambda: SessionQueue.objects.select_for_update().filter(pk=first.pk).count()) == 1
        erasing_them.result(PATIENCE)
        assert nothing_is_left()


def _until(case: PrivacyCase, step: str) -> None:
    """The steps of a worker that dies right after this one, its first transaction if it has several."""
    work = case_leases.claim(case.pk)
    assert work
    for taken in erasing.steps(work, now=LATER):
        if taken == step:
            return


def _verbs(person: EndUser, fact: Fact, actor: Actor) -> list[Callable[[], object]]:
    given: dict[str, Any] = {"actor": actor, "now": LATER}
    tenant = person.tenant
    return [
        lambda: edit_fact(fact_id=fact.pk, tenant=tenant, changes={"content": "Rows"}, **given),
        lambda: give_feedback(fact_id=fact.pk, tenant=tenant, useful=True, **given),
        lambda: add_fact(end_user=person, draft=FactDraft("Sails", "other"), **given),
        lambda: write_profile_section(end_user=person, section="work_context", summary="Sails", **given),
        lambda: update_person(end_user=person, changes={"language": "zh"}, **given),
        lambda: import_document(end_user=person, sections={"top_of_mind": DocumentSection("Boats")}, facts=[], **given),
    ]
