"""A merge of two people beside whatever else is at work on them: on two connections, with gates."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from memories import audit, invariants
from memories.capture import flushing, ingest
from memories.capture.ingest import Conversation, PostedMessage, Receipt
from memories.context import context
from memories.context.context import ContextRequest
from memories.curation.change_sets import Changes
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import edit_fact
from memories.curation.people.errors import PeopleBusy, PersonMerged
from memories.curation.people.merging import merge as merging
from memories.curation.people.merging import records as merging_records
from memories.curation.people.merging import undo as merging_undo
from memories.curation.people.merging.merge import merge_people
from memories.curation.people.records import update_person
from memories.curation.profile.sections import write_profile_section
from memories.curation.reverting import revert
from memories.curation.review.decisions import approve_item
from memories.curation.statements.documents import import_document
from memories.embedding import batching, memory_vectors, reembedding, turn_vectors, vectors
from memories.episodes import compaction
from memories.exceptions import Conflict
from memories.extraction import consolidation
from memories.models import (
    AuditEvent,
    ChangeSet,
    EmbeddingSpace,
    EndUser,
    Episode,
    ExtractionRun,
    Fact,
    FactVector,
    ReviewItem,
    Session,
    SessionQueue,
    Turn,
    TurnVector,
    WorkingMemory,
)
from memories.retrieval import turn_drafts, turn_files, turn_index
from memories.retrieval.turn_index import open_index
from tests import factories
from tests.database import PATIENCE, at_once, blocked, elsewhere, held
from tests.factories import LATER, NOW, STAFF
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db(transaction=True)
SAID = (("user", "I live in Leiden"), ("assistant", "Noted"))


@pytest.fixture
def ours(db: None) -> EndUser:
    return factories.end_user(external_id="app-1")


@pytest.fixture
def theirs(ours: EndUser) -> EndUser:
    return factories.end_user(ours.tenant, external_id="chat-9")


@pytest.fixture(autouse=True)
def ended_sound(db: None) -> Any:
    yield
    assert invariants.check() == []


def merge(ours: EndUser, theirs: EndUser) -> Changes:
    return merge_people(survivor=ours.pk, merged=theirs.pk, actor=STAFF, now=LATER)


def undo(done: Changes | ChangeSet) -> Mapping[str, int]:
    return revert(change_set=done.id, actor=STAFF, now=LATER)


def post(person: EndUser, session_id: str) -> Receipt:
    return ingest.store_turns(
        tenant=person.tenant,
        user_id=person.external_id,
        session_id=session_id,
        agent_id="",
        messages=[PostedMessage(role="user", content="Hello")],
    )


def known(person: EndUser, content: str = "Bakes bread", **over: Any) -> Fact:
    fact = factories.fact(person, content, **over)
    audit.revise(fact=fact, verb="extract", actor=factories.COMMAND, before={}, reason="", now=NOW)
    return fact


def due(session: Session) -> None:
    for model in (SessionQueue, WorkingMemory):
        model.objects.filter(pk=session.pk).update(due_at=Now() - timedelta(minutes=5))


def owners(model: Any) -> set[Any]:
    return set(model.objects.values_list("end_user", flat=True))


class TestIngest:
    @pytest.mark.parametrize("session_id", ["known", "new"])
    def test_turns_that_come_while_two_are_merged_are_the_survivors(
        self, ours: EndUser, theirs: EndUser, session_id: str
    ) -> None:
        factories.session(theirs, session_id="known")
        with held(lambda: merge(ours, theirs)):
            posting = blocked(lambda: post(theirs, session_id))
        assert posting.result(PATIENCE).accepted == 1
        assert (owners(Session), owners(Turn)) == ({ours.pk}, {ours.pk})

    @pytest.mark.parametrize("session_id", ["known", "new"])
    def test_a_merge_waits_for_turns_that_are_being_stored(
        self, ours: EndUser, theirs: EndUser, session_id: str
    ) -> None:
        factories.session(theirs, session_id="known")
        with held(lambda: post(theirs, session_id)):
            merging_them = blocked(lambda: merge(ours, theirs))
        merging_them.result(PATIENCE)
        assert (owners(Session), owners(Turn)) == ({ours.pk}, {ours.pk})

    def test_a_merge_gives_way_to_who_holds_on(self, ours: EndUser, theirs: EndUser, monkeypatch: Any) -> None:
        monkeypatch.setattr("memories.curation.people.merging.locks.LOCK_TIMEOUT", "10ms")
        with held(lambda: post(theirs, "new")), pytest.raises(PeopleBusy):
            elsewhere(lambda: merge(ours, theirs))
        assert (ChangeSet.objects.filter(verb="merge").count(), owners(Session)) == (0, {theirs.pk})

    def test_a_bulk_post_about_both_is_stored_whole(self, ours: EndUser, theirs: EndUser) -> None:
        for person in (ours, theirs):
            factories.session(person, session_id="known")
        talks = [
            Conversation(person.external_id, session_id, "", [PostedMessage(role="user", content="Hi")])
            for person in (ours, theirs)
            for session_id in ("known", "new")
        ]

        def act(number: int) -> Any:
            if number:
                return merge(ours, theirs)
            return ingest.store_conversations(tenant=ours.tenant, conversations=talks)

        receipts, done = at_once(2, act)
        assert isinstance(receipts, list), receipts
        assert isinstance(done, Changes | PeopleBusy), done
        assert Turn.objects.count() == 6

    def test_many_posts_and_a_merge_lose_nothing(self, ours: EndUser, theirs: EndUser) -> None:
        def act(number: int) -> Any:
            return merge(ours, theirs) if number == 4 else [post(theirs, f"s{step % 3}") for step in range(6)]

        outcomes = at_once(8, act)
        assert [one for one in outcomes if isinstance(one, Exception) and not isinstance(one, PeopleBusy)] == []
        assert Turn.objects.count() == 7 * 6
        assert len(owners(Turn)) == 1

    def test_a_session_that_moves_meanwhile_can_be_ended(self, ours: EndUser, theirs: EndUser) -> None:
        factories.session(theirs, session_id="known")
        named: dict[str, Any] = {"tenant": ours.tenant, "user_id": "chat-9", "session_id": "known", "agent_id": ""}
        with held(lambda: merge(ours, theirs)):
            ending = blocked(lambda: flushing.end_session(**named))
        assert ending.result(PATIENCE).session.end_user_id == ours.pk


class TestWorkers:
    def meanwhile(self, act: Callable[[], object]) -> Callable[[], dict[str, Any]]:
        """An answer of the model that comes after `act`."""

        def answer() -> dict[str, Any]:
            elsewhere(act)
            return {"new_facts": [candidate()]}

        return answer

    @pytest.mark.parametrize("whose", [0, 1])
    def test_an_extraction_in_flight_is_thrown_away_and_done_anew(
        self, model: Model, ours: EndUser, theirs: EndUser, whose: int
    ) -> None:
        session = factories.session((ours, theirs)[whose], SAID)
        due(session)
        model.answers.append(self.meanwhile(lambda: merge(ours, theirs)))
        run = consolidation.consolidate(session_id=session.pk, now=LATER)
        assert run
        assert (run.status, Fact.objects.count()) == ("discarded", 0)
        # At once, without waiting for the lease to end, and with all its attempts.
        assert SessionQueue.objects.due().filter(pk=session.pk, attempts=0).exists()
        model.say(candidate())
        consolidation.consolidate(session_id=session.pk, now=LATER)
        assert (owners(Fact), owners(ExtractionRun)) == ({ours.pk}, {ours.pk})

    def test_one_that_is_undone_meanwhile_too(self, model: Model, ours: EndUser, theirs: EndUser) -> None:
        session = factories.session(theirs, SAID)
        due(session)
        done = merge(ours, theirs)
        model.answers.append(self.meanwhile(lambda: undo(done)))
        run = consolidation.consolidate(session_id=session.pk, now=LATER)
        assert run
        assert (run.status, owners(ExtractionRun), Fact.objects.count()) == ("discarded", {theirs.pk}, 0)

    def test_a_commit_under_way_is_waited_for(self, model: Model, ours: EndUser, theirs: EndUser) -> None:
        session = factories.session(theirs, SAID)
        due(session)
        model.say(candidate())

        def extract() -> None:
            consolidation.consolidate(session_id=session.pk, now=LATER)

        with held(extract):
            merging_them = blocked(lambda: merge(ours, theirs))
        assert merging_them.result(PATIENCE).counts["facts"] == 1
        assert owners(Fact) == {ours.pk}

    def test_a_summary_in_flight_is_thrown_away(self, model: Model, ours: EndUser, theirs: EndUser) -> None:
        session = factories.session(theirs, SAID * 4, flush=True)
        flushing.end_session(
            tenant=ours.tenant, user_id="chat-9", session_id=session.external_id, agent_id=session.agent_id
        )
        due(session)
        done: list[Changes] = []

        def answer() -> dict[str, Any]:
            done.append(elsewhere(lambda: merge(ours, theirs)))
            return {}

        model.episodes.append(answer)
        compaction.compact(session_id=session.pk, now=LATER)
        assert (len(done), Episode.objects.count()) == (1, 0)
        compaction.compact(session_id=session.pk, now=LATER)
        assert owners(Episode) == {ours.pk}

    @pytest.mark.parametrize("place", [turn_vectors, memory_vectors])
    def test_vectors_in_flight_are_not_another_persons(
        self, ours: EndUser, theirs: EndUser, monkeypatch: pytest.MonkeyPatch, place: Any
    ) -> None:
        factories.session(theirs, SAID)
        known(theirs)
        vectors.embed_some()
        TurnVector.objects.all().delete()
        Session.objects.update(embedded_number=0)
        Fact.objects.update(embedded_hash=None)
        embed = place.embed_each

        def meanwhile(*given: Any) -> Any:
            found = embed(*given)
            if not ChangeSet.objects.exists():
                elsewhere(lambda: merge(ours, theirs))
            return found

        with monkeypatch.context() as patch:
            patch.setattr(place, "embed_each", meanwhile)
            vectors.embed_some()
        while vectors.embed_some().moved:
            """Until every text has its vector."""
        assert (owners(TurnVector), owners(FactVector)) == ({ours.pk}, {ours.pk})
        assert TurnVector.objects.count() == 2

    def test_vectors_of_another_model_in_flight_neither(
        self, ours: EndUser, theirs: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        factories.session(theirs, SAID)
        known(theirs)
        while vectors.embed_some().moved:
            """Until every text has its vector."""
        space = EmbeddingSpace.objects.get()
        EmbeddingSpace.objects.update(model="an-older-one")
        merged: list[Changes] = []
        embed = batching.embed_each

        def meanwhile(*given: Any) -> Any:
            found = embed(*given)
            if not merged:
                merged.append(elsewhere(lambda: merge(ours, theirs)))
            return found

        monkeypatch.setattr(reembedding, "embed_each", meanwhile)
        reembedding.reembed(model=space.model)
        assert (owners(TurnVector), owners(FactVector)) == ({ours.pk}, {ours.pk})

    def test_what_is_read_meanwhile_is_not_kept(
        self, ours: EndUser, theirs: EndUser, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
    ) -> None:
        for person in (ours, theirs):
            factories.session(person, SAID)
        done = merge(ours, theirs)
        talks = turn_index._read_sessions

        def meanwhile(*given: Any) -> Any:
            found = talks(*given)
            elsewhere(lambda: undo(done))
            return found

        with monkeypatch.context() as patch:
            patch.setattr(turn_index, "_read_sessions", meanwhile)
            assert len(open_index(EndUser.objects.get(pk=ours.pk), None)) == 2
        # Nor is a file that is being made.
        settings.HOME, write = tmp_path, turn_drafts.Draft._write
        monkeypatch.setattr(turn_files, "FILE_FROM", 2)

        def written(*given: Any) -> Any:
            elsewhere(lambda: merge(ours, theirs))
            return write(*given)

        with monkeypatch.context() as patch:
            patch.setattr(turn_drafts.Draft, "_write", written)
            assert len(open_index(EndUser.objects.get(pk=theirs.pk), None)) == 2
        assert [path.name for path in (tmp_path / "indexes").iterdir()] == ["lock"]
        assert len(open_index(EndUser.objects.get(pk=ours.pk), None)) == 4


class TestPeopleAtWork:
    def test_whoever_states_something_of_the_merged_person_is_told(self, ours: EndUser, theirs: EndUser) -> None:
        verbs: tuple[Callable[[], object], ...] = (
            lambda: add_fact(end_user=theirs, draft=FactDraft("Sails", "other"), actor=STAFF, now=LATER),
            lambda: write_profile_section(
                end_user=theirs, section="work_context", summary="Sails", actor=STAFF, now=LATER
            ),
            lambda: update_person(end_user=theirs, changes={"language": "zh"}, actor=STAFF, now=LATER),
            lambda: import_document(end_user=theirs, sections={}, facts=[], actor=STAFF, now=LATER),
        )
        for verb in verbs:
            with held(lambda: merge(ours, theirs)):
                stating = blocked(verb)
            with pytest.raises(PersonMerged):
                stating.result(PATIENCE)
            undo(ChangeSet.objects.get(verb="merge", undone_at=None))
        assert Fact.objects.count() == 0

    def test_an_edit_waits_and_is_of_the_survivors_fact(self, ours: EndUser, theirs: EndUser) -> None:
        fact = known(theirs)
        edit: dict[str, Any] = {
            "fact_id": fact.pk,
            "tenant": None,
            "changes": {"content": "Bakes cakes"},
            "actor": STAFF,
            "now": LATER,
        }
        with held(lambda: merge(ours, theirs)):
            editing = blocked(lambda: edit_fact(**edit))
        assert editing.result(PATIENCE).end_user_id == ours.pk

    def test_a_decision_waits_and_stands(self, ours: EndUser, theirs: EndUser) -> None:
        item = factories.review_item(known(theirs, status="pending"))
        with held(lambda: merge(ours, theirs)):
            deciding = blocked(lambda: approve_item(item_id=item.pk, actor=STAFF, now=LATER))
        assert deciding.result(PATIENCE).state == "approved"
        assert (owners(Fact), owners(ReviewItem)) == ({ours.pk}, {ours.pk})
        undo(ChangeSet.objects.get(merged=theirs))
        assert owners(ReviewItem) == {theirs.pk}

    def test_a_merge_waits_for_a_decision(self, ours: EndUser, theirs: EndUser) -> None:
        item = factories.review_item(known(theirs, status="pending"))
        with held(lambda: approve_item(item_id=item.pk, actor=STAFF, now=LATER)):
            merging_them = blocked(lambda: merge(ours, theirs))
        merging_them.result(PATIENCE)
        assert Fact.objects.get().status == "active"

    def test_of_many_at_once_one_merges_and_one_undoes(self, ours: EndUser, theirs: EndUser) -> None:
        pairs = ((ours, theirs), (theirs, ours))
        outcomes = at_once(4, lambda number: merge(*pairs[number % 2]))
        done = [one for one in outcomes if isinstance(one, Changes)]
        assert len(done) == 1
        assert all(isinstance(one, PersonMerged | PeopleBusy | Changes) for one in outcomes), outcomes
        undone = at_once(4, lambda _: undo(done[0]))
        assert sum(isinstance(one, Mapping) for one in undone) == 1
        assert all(isinstance(one, Conflict | Mapping) for one in undone), undone

    def test_two_who_merge_one_person_into_two_others(self, ours: EndUser, theirs: EndUser) -> None:
        third = factories.end_user(ours.tenant)
        known(theirs)
        outcomes = at_once(2, lambda number: merge((ours, third)[number], theirs))
        assert sum(isinstance(one, Changes) for one in outcomes) == 1
        assert len(owners(Fact)) == 1

    def test_a_context_waits_for_nobody(self, ours: EndUser, theirs: EndUser) -> None:
        known(theirs)
        request = ContextRequest(user_id="chat-9")
        with held(lambda: merge(ours, theirs)):
            assert "Bakes bread" in context.build(tenant=ours.tenant, request=request, now=LATER).memory
        assert "Bakes bread" in context.build(tenant=ours.tenant, request=request, now=LATER).memory


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize(
    "place",
    [(merging, "reassign"), (merging, "move_questions"), (merging, "discard_work_in_flight"), (audit, "record")],
)
def test_killed_anywhere_a_merge_never_was(
    ours: EndUser, theirs: EndUser, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    known(theirs)
    known(ours)
    factories.session(theirs)
    before = rows()
    with monkeypatch.context() as patch:
        patch.setattr(*place, _killed)
        with pytest.raises(Killed):
            merge(ours, theirs)
    assert rows() == before
    assert merge(ours, theirs)
    assert rows() != before


@pytest.mark.parametrize("place", [(merging_undo, "reassign"), (merging_records, "separate"), (audit, "record")])
def test_killed_anywhere_it_is_not_undone(
    ours: EndUser, theirs: EndUser, monkeypatch: pytest.MonkeyPatch, place: tuple[Any, str]
) -> None:
    known(theirs)
    factories.session(theirs)
    done = merge(ours, theirs)
    before = rows()
    with monkeypatch.context() as patch:
        patch.setattr(*place, _killed)
        with pytest.raises(Killed):
            undo(done)
    assert rows() == before
    assert undo(done)


def rows() -> list[Any]:
    return [
        list(model.objects.order_by("pk").values()) for model in (EndUser, Fact, Session, Turn, ChangeSet, AuditEvent)
    ]


def _killed(*given: Any, **named: Any) -> None:
    raise Killed
