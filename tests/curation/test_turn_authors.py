"""An operator corrects whose words a turn holds: what reads turns follows, facts stay, and one undo takes it back."""

from typing import Any

import pytest

from memories.curation.reverting import revert
from memories.curation.sessions import delete_session
from memories.curation.turn_authors import (
    CORRECT,
    correct_author,
    corrections_of,
    facts_resting_on,
    version_of_author,
)
from memories.curation.turns import redact_turn
from memories.embedding import vectors
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.extraction import consolidation
from memories.invariants import check
from memories.models import (
    AuditEvent,
    Author,
    ChangeSet,
    EndUser,
    Fact,
    Session,
    SessionQueue,
    Turn,
    TurnVector,
    WorkingMemory,
)
from memories.retrieval.prepared_query import prepare
from memories.retrieval.turn_index import open_index
from memories.scoring import terms
from tests import factories
from tests.database import PATIENCE, Gate, blocked, held
from tests.factories import NOW, STAFF
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
SAID = (("user", "I live in Leiden"), ("assistant", "Noted"), ("user", "I drink tea"))


def correct(turn: Turn, author: str = Author.APPLICATION, **over: Any) -> None:
    correct_author(turn_id=turn.pk, author=author, actor=STAFF, now=NOW, **over)


def undo(number: int = -1) -> None:
    revert(change_set=list(ChangeSet.objects.filter(verb=CORRECT).order_by("pk"))[number].pk, actor=STAFF, now=NOW)


def turn_of(session: Session, number: int = 1) -> Turn:
    return session.turns.get(number=number)


def state(turn: Turn) -> tuple[Any, ...]:
    turn.refresh_from_db()
    return turn.author, turn.own, turn.is_doubtful


def mixed(session: Session, own: list[list[int]], **over: Any) -> Turn:
    Turn.objects.filter(session=session, number=1).update(own=own, **over)
    return turn_of(session)


class TestTheTurn:
    def test_all_of_it_is_the_authors_and_the_undo_brings_the_parts_back(self, person: EndUser) -> None:
        turn = mixed(factories.session(person, SAID), [[0, 6]], is_doubtful=True)
        correct(turn, Author.PERSON, reason="She typed it")
        assert state(turn) == ("person", None, False)
        assert bytes(turn.terms or b"") == terms.pack("I live in Leiden")
        (done,) = corrections_of(turn)
        assert (done.reason, done.end_user, done.actor_kind) == ("She typed it", person, "operator")
        undo()
        assert state(turn) == ("person", [[0, 6]], True)
        assert bytes(turn.terms or b"") == terms.pack("I live")
        assert check() == []

    def test_the_trail_tells_of_the_turn_and_holds_no_word_of_it(self, person: EndUser) -> None:
        turn = turn_of(factories.session(person, SAID))
        correct(turn)
        undo()
        told = list(AuditEvent.objects.order_by("id").values_list("verb", "object_type", "object_id"))
        assert told == [("correct_author", "Turn", turn.pk), ("undo", "Turn", turn.pk)]
        assert "Leiden" not in str([*ChangeSet.objects.values(), *ChangeSet.objects.values("changes__before")])

    def test_what_it_says_already_changes_nothing(self, person: EndUser) -> None:
        turn = turn_of(factories.session(person, SAID))
        correct(turn, Author.PERSON)
        assert (ChangeSet.objects.count(), AuditEvent.objects.count()) == (0, 0)

    def test_the_role_of_others_says_whose_they_are(self, person: EndUser) -> None:
        turn = turn_of(factories.session(person, SAID), 2)
        with pytest.raises(Conflict):
            correct(turn)
        assert state(turn)[0] == "model"

    def test_who_saw_another_state_is_told(self, person: EndUser) -> None:
        turn = turn_of(factories.session(person, SAID))
        seen = version_of_author(turn)
        correct(turn, Author.MODEL, expected_version=seen)
        with pytest.raises(PreconditionFailed):
            correct(turn, expected_version=seen)
        assert state(turn)[0] == "model"

    def test_what_is_gone_is_not_found(self, person: EndUser) -> None:
        turn = turn_of(factories.session(person, SAID))
        Turn.objects.filter(pk=turn.pk).delete()
        with pytest.raises(NotFound):
            correct(turn)


class TestWhatFollows:
    def test_indexes_and_the_embedder_read_it_again(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        while vectors.embed_some().moved:
            """Until every text has its vector."""
        place = open_index(person, None).ids.index(turn_of(session).pk)
        before = open_index(person, None)
        correct(turn_of(session))
        assert not TurnVector.objects.filter(turn=turn_of(session)).exists()
        assert Session.objects.get().embedded_number == 0
        while vectors.embed_some().moved:
            """Again."""
        assert TurnVector.objects.filter(turn=turn_of(session)).exists()
        after = open_index(person, None)
        assert after is not before
        assert after.ids[place] == turn_of(session).pk
        assert prepare("Leiden")

    def test_a_running_summary_that_may_tell_it_is_made_anew(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        WorkingMemory.objects.update(summary="Lives in Leiden", left_number=2)
        correct(turn_of(session, 3))
        assert WorkingMemory.objects.get().summary == "Lives in Leiden"
        correct(turn_of(session))
        assert (WorkingMemory.objects.get().summary, WorkingMemory.objects.get().left_number) == ("", 0)

    def test_facts_stay_and_those_that_rest_on_it_alone_are_known(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        alone, both, word = (factories.fact(person, text) for text in ("Lives in Leiden", "Drinks tea", "Sails"))
        for fact in (alone, both, word):
            factories.evidence(fact, turn_of(session))
        factories.evidence(both, turn_of(session, 3))
        Fact.objects.filter(pk=word.pk).update(binding=True)
        correct(turn_of(session))
        assert list(facts_resting_on(turn_of(session))) == [alone]
        assert set(Fact.objects.values_list("status", flat=True)) == {"active"}

    def test_what_waits_on_a_branch_that_was_left_is_counted_anew(self, person: EndUser, model: Model) -> None:
        session = factories.session(person, SAID[:1])
        Turn.objects.update(left_at=NOW, terms=None)
        correct(turn_of(session))
        queue = SessionQueue.objects.get()
        assert (queue.pending_user, queue.due_at) == (False, None)
        correct(turn_of(session), Author.PERSON)
        queue = SessionQueue.objects.get()
        assert queue.pending_user
        assert queue.due_at
        assert turn_of(session).terms is None

    def test_extraction_does_not_go_back(self, person: EndUser, model: Model) -> None:
        session = factories.session(person, SAID)
        Turn.objects.filter(number=1).update(author=Author.APPLICATION)
        SessionQueue.objects.update(extracted_number=3, due_at=None, pending_user=False)
        correct(turn_of(session), Author.PERSON)
        queue = SessionQueue.objects.get()
        assert (queue.extracted_number, queue.due_at, queue.pending_user) == (3, None, False)


class TestUndo:
    def test_not_after_another_correction_but_after_its_undo(self, person: EndUser) -> None:
        turn = turn_of(factories.session(person, SAID))
        correct(turn, Author.MODEL)
        correct(turn, Author.OTHER)
        with pytest.raises(Conflict):
            undo(0)
        undo(1)
        assert state(turn)[0] == "model"
        undo(0)
        assert state(turn)[0] == "person"
        with pytest.raises(Conflict):
            undo(0)

    def test_not_after_a_redaction_for_the_parts_are_others_then(self, person: EndUser) -> None:
        turn = mixed(factories.session(person, SAID), [[0, 6]])
        correct(turn)
        redact_turn(turn_id=turn.pk, tenant=None, actor=STAFF, now=NOW, passages=["live"])
        with pytest.raises(Conflict):
            undo()
        assert state(turn) == ("application", None, False)

    def test_not_when_the_turn_is_gone(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        correct(turn_of(session))
        delete_session(session_id=session.pk, tenant=None, actor=STAFF, now=NOW)
        with pytest.raises(Conflict):
            undo()
        assert ChangeSet.objects.get().undone_at is None


class TestRedaction:
    def test_the_parts_move_with_the_text(self, person: EndUser) -> None:
        text = "<doc>0612 is secret</doc>\nmy number is 0612, call me"
        session = factories.session(person, [("user", "placeholder")])
        start = text.index("my")
        Turn.objects.update(content=text, own=[[start, len(text)]])
        redact_turn(turn_id=turn_of(session).pk, tenant=None, actor=STAFF, now=NOW, passages=["0612"])
        turn = turn_of(session)
        assert turn.content == "<doc>[redacted] is secret</doc>\nmy number is [redacted], call me"
        assert turn.own_text == "my number is [redacted], call me"
        assert bytes(turn.terms or b"") == terms.pack(turn.own_text)

    def test_a_passage_over_the_edge_of_a_part_leaves_its_mark_there(self, person: EndUser) -> None:
        session = factories.session(person, [("user", "quoted secret own words")])
        Turn.objects.update(own=[[len("quoted sec"), len("quoted secret own words")]])
        redact_turn(turn_id=turn_of(session).pk, tenant=None, actor=STAFF, now=NOW, passages=["secret"])
        assert turn_of(session).own_text == "[redacted] own words"

    def test_an_emptied_one_has_no_parts(self, person: EndUser) -> None:
        turn = mixed(factories.session(person, SAID), [[0, 6]])
        redact_turn(turn_id=turn.pk, tenant=None, actor=STAFF, now=NOW)
        assert state(turn)[1] is None


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.mark.parametrize("corrected", [True, False])
    def test_an_extraction_in_flight_is_thrown_away_and_made_anew(
        self, person: EndUser, model: Model, corrected: bool
    ) -> None:
        session = factories.session(person, SAID, flush=True)
        gate = Gate()

        def answer() -> dict[str, Any]:
            gate.stop()
            return {"new_facts": [candidate("Lives in Leiden", evidence=[1])]}

        model.answers.append(answer)
        run = gate.meanwhile(
            lambda: consolidation.consolidate(session_id=session.pk, now=NOW),
            lambda: correct(turn_of(session)) if corrected else None,
        )
        assert run
        assert run.status == ("discarded" if corrected else "committed")
        assert Fact.objects.exists() is not corrected
        if corrected:
            model.say(candidate("Drinks tea", evidence=[3]))
            consolidation.consolidate(session_id=session.pk, now=NOW)
            assert list(Fact.objects.values_list("content", flat=True)) == ["Drinks tea"]
            assert "Leiden" not in str(model.prompts[-1])

    def test_of_two_operators_who_saw_the_same_one_wins(self, person: EndUser) -> None:
        turn = turn_of(factories.session(person, SAID))
        seen = version_of_author(turn)
        with held(lambda: correct(turn, Author.MODEL, expected_version=seen)):
            other = blocked(lambda: correct(turn, Author.OTHER, expected_version=seen))
        assert isinstance(other.exception(PATIENCE), PreconditionFailed)
        assert (state(turn)[0], ChangeSet.objects.count()) == ("model", 1)

    def test_a_redaction_meanwhile_refuses_the_correction(self, person: EndUser) -> None:
        turn = turn_of(factories.session(person, SAID))
        seen = version_of_author(turn)
        with held(lambda: redact_turn(turn_id=turn.pk, tenant=None, actor=STAFF, now=NOW)):
            other = blocked(lambda: correct(turn, expected_version=seen))
        assert isinstance(other.exception(PATIENCE), PreconditionFailed)
        assert state(turn)[0] == "person"

    def test_a_person_erased_meanwhile_leaves_nothing_to_correct(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        turn = turn_of(session)
        with held(lambda: delete_session(session_id=session.pk, tenant=None, actor=STAFF, now=NOW)):
            other = blocked(lambda: correct(turn))
        assert isinstance(other.exception(PATIENCE), NotFound)
        assert not ChangeSet.objects.exists()
