"""Deleting a session: what rests on it alone goes with it, and nobody who works on it meanwhile brings it back."""

from functools import partial
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation import sessions
from memories.curation.facts.editing import correct_fact
from memories.curation.sessions import delete_session
from memories.exceptions import NotFound, PersonRestricted
from memories.extraction import consolidation
from memories.models import (
    ActorKind,
    AuditEvent,
    EndUser,
    ExtractionRun,
    Fact,
    FactEvidence,
    FactRevision,
    Session,
    SessionQueue,
    Tenant,
    Turn,
)
from memories.queue import queue_rows, session_queue
from tests import factories
from tests.database import PATIENCE, Gate, blocked, held, impatient, statements
from tests.factories import COMMAND, NOW, STAFF
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
SAID = (("user", "I live in Leiden"), ("assistant", "Noted"))


def delete(session: Session, *, actor: Actor = COMMAND, tenant: Tenant | None = None) -> None:
    delete_session(session_id=session.pk, tenant=tenant, actor=actor, now=NOW)


def resting(content: str, *sessions: Session, quote: str = "", **over: Any) -> Fact:
    """A fact with evidence in these sessions."""
    fact = factories.fact(sessions[0].end_user, content, **over)
    for session in sessions:
        factories.evidence(fact, session.turns.earliest("number"), quote)
    return fact


def contents() -> list[str]:
    return sorted(Fact.objects.values_list("content", flat=True))


class TestWhatGoes:
    def test_all_rows_of_the_session_and_none_of_another(self, person: EndUser) -> None:
        gone, kept = factories.session(person, SAID), factories.session(person, SAID)
        for session in (gone, kept):
            factories.run(session)
        delete(gone)
        assert (
            Session.objects.get() == SessionQueue.objects.get().session == ExtractionRun.objects.get().session == kept
        )
        assert set(Turn.objects.values_list("session", flat=True)) == {kept.pk}

    def test_its_turns_are_not_read_and_go_a_few_at_a_time(
        self, person: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sessions, "STEP", 3)
        short, long = factories.session(person, SAID), factories.session(person, SAID * 4)
        for session in (short, long):
            resting("Lives in Leiden", session, quote="I live in Leiden", agent_id=str(session.pk))
        of_short, of_long = (len(statements(partial(delete, one))) for one in (short, long))
        # Eight turns go in three statements, two in one.
        assert of_long == of_short + 2
        assert not Turn.objects.exists()
        assert not FactEvidence.objects.exists()

    def test_facts_that_rest_on_it_alone_with_their_revisions(self, person: EndUser, model: Model) -> None:
        gone, kept = (factories.session(person, SAID, flush=True) for _ in range(2))
        for session, text in ((gone, "Lives in Leiden"), (kept, "喜欢喝茶")):
            model.say(candidate(text))
            consolidation.consolidate(session_id=session.pk, now=NOW)
        assert (contents(), FactRevision.objects.count()) == (["Lives in Leiden", "喜欢喝茶"], 2)
        delete(gone)
        assert (contents(), FactRevision.objects.count(), FactEvidence.objects.count()) == (["喜欢喝茶"], 1, 1)

    @pytest.mark.parametrize("status", ["active", "pending", "superseded", "rejected", "archived", "trashed"])
    def test_whatever_their_status(self, person: EndUser, status: str) -> None:
        session = factories.session(person)
        resting("Lives in Leiden", session, status=status)
        delete(session)
        assert contents() == []

    def test_its_quote_on_a_fact_that_stays(self, person: EndUser) -> None:
        gone, kept = factories.session(person), factories.session(person)
        ours = resting("Drinks tea", gone, quote="I drink tea", raw="I drink tea")
        factories.evidence(ours, kept.turns.get(), "tea for me")
        theirs = resting("Lives in Leiden", gone, raw="I live in Leiden")
        factories.evidence(theirs, kept.turns.get(), "I live in Leiden")
        delete(gone)
        assert dict(Fact.objects.values_list("content", "raw")) == {
            "Drinks tea": "",
            "Lives in Leiden": "I live in Leiden",
        }


class TestWhatStays:
    def test_facts_with_evidence_elsewhere(self, person: EndUser) -> None:
        gone, kept = factories.session(person), factories.session(person)
        resting("Drinks tea", gone, kept)
        resting("Lives in Leiden", gone)
        delete(gone)
        assert (contents(), FactEvidence.objects.get().session) == (["Drinks tea"], kept)

    def test_an_operators_word(self, person: EndUser) -> None:
        session = factories.session(person)
        resting("Drinks tea", session, binding=True)
        resting("Lives in Leiden", session)
        delete(session)
        assert (contents(), FactEvidence.objects.count()) == (["Drinks tea"], 0)

    @pytest.mark.parametrize("extractor", ["api", "operator", "import"])
    def test_what_was_stated_outright_even_when_the_session_confirmed_it(self, person: EndUser, extractor: str) -> None:
        session = factories.session(person)
        factories.fact(person, "Never cited", extractor=extractor)
        resting("Confirmed", session, extractor=extractor)
        resting("Lives in Leiden", session)
        delete(session)
        assert contents() == ["Confirmed", "Never cited"]

    def test_facts_of_other_people(self, person: EndUser) -> None:
        session = factories.session(person)
        resting("Lives in Leiden", factories.session(factories.end_user(person.tenant)))
        delete(session)
        assert contents() == ["Lives in Leiden"]


class TestWho:
    def test_the_trail_has_counts_and_no_content(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        resting("Lives in Leiden", session)
        delete(session, actor=STAFF)
        event = AuditEvent.objects.get()
        assert (event.verb, event.object_type, event.object_id) == ("delete", "Session", session.pk)
        assert (event.actor_kind, event.counts) == ("operator", {"turns": 2, "facts": 1})

    def test_another_tenants_was_never_there(self, person: EndUser) -> None:
        session = factories.session(person)
        with pytest.raises(NotFound):
            delete(session, tenant=factories.tenant())
        assert Session.objects.exists()
        delete(session, tenant=person.tenant)
        assert not Session.objects.exists()

    def test_of_a_restricted_person_only_an_operator_deletes(self, person: EndUser) -> None:
        session = factories.session(person)
        EndUser.objects.update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            delete(session, actor=Actor(kind=ActorKind.KEY))
        delete(session, actor=STAFF)
        assert not Session.objects.exists()


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.mark.parametrize("deleted", [True, False])
    def test_an_extraction_in_flight_writes_nothing(self, person: EndUser, model: Model, deleted: bool) -> None:
        session = factories.session(person, SAID, flush=True)
        gate = Gate()

        def answer() -> dict[str, Any]:
            gate.stop()
            return {"new_facts": [candidate()]}

        def act() -> None:
            if deleted:
                delete(session)

        model.answers.append(answer)
        run = gate.meanwhile(lambda: consolidation.consolidate(session_id=session.pk, now=NOW), act)
        assert run
        # The positive control: of a session that is still there it would have been a fact.
        assert (run.status, contents()) == (("discarded", []) if deleted else ("committed", ["Lives in Leiden"]))
        assert ExtractionRun.objects.count() == Session.objects.count() == (0 if deleted else 1)

    def test_it_waits_for_an_extraction_that_commits(self, person: EndUser, model: Model) -> None:
        session = factories.session(person, SAID, flush=True)
        claim = session_queue.claim(session.pk)
        assert claim

        def commit() -> None:
            queue_rows.fence(claim)
            resting("Lives in Leiden", session)

        with held(commit), impatient():
            deletion = blocked(lambda: delete(session))
        deletion.result(PATIENCE)
        assert (contents(), Session.objects.count()) == ([], 0)

    def test_turns_that_come_meanwhile_begin_a_new_session(self, person: EndUser) -> None:
        session = factories.session(person, SAID, session_id="s1")
        with held(lambda: delete(session)):
            post = blocked(lambda: factories.session(person, [("user", "还在吗")], session_id="s1"))
        anew = post.result(PATIENCE)
        assert anew.pk != session.pk
        assert list(Turn.objects.values_list("session", "number", "content")) == [(anew.pk, 1, "还在吗")]

    def test_a_fact_that_an_operator_corrects_meanwhile_stays(self, person: EndUser) -> None:
        session = factories.session(person)
        fact = resting("Lives in Leiden", session)

        def correct() -> None:
            given: dict[str, Any] = {"tenant": None, "actor": STAFF, "now": NOW, "reason": "said so"}
            correct_fact(fact_id=fact.pk, content="Lives in Utrecht", **given)

        with held(correct):
            deletion = blocked(lambda: delete(session))
        deletion.result(PATIENCE)
        assert (contents(), Session.objects.count()) == (["Lives in Utrecht"], 0)

    def test_the_sessions_neighbours_take_turns_meanwhile(self, person: EndUser) -> None:
        gone, other = factories.session(person), factories.session(person)
        with held(lambda: delete(gone)), impatient():
            factories.session(person, session_id=other.external_id)
        assert Session.objects.get().turn_count == 2
