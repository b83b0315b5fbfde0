"""Deleting what a turn says: what rests on it alone goes, nobody brings it back, and the same message stays out."""

from typing import Any

import pytest
from django.db import transaction

from memories import conf
from memories.audit import Actor
from memories.capture import ingest
from memories.capture.ingest import Conversation, PostedMessage
from memories.context.window import open_window
from memories.curation.turns import redact_turn
from memories.embedding import turn_vectors
from memories.episodes import compaction
from memories.exceptions import AlreadyRedacted, ExternalIdReused, InvalidInput, NotFound, PersonRestricted
from memories.extraction import consolidation
from memories.invariants import check
from memories.models import (
    AuditEvent,
    EndUser,
    Episode,
    Fact,
    FactEvidence,
    FactRevision,
    ProfileRevision,
    ProfileSection,
    Session,
    SessionQueue,
    Tenant,
    Turn,
    WorkingMemory,
)
from memories.retrieval.turn_index import open_index
from tests import factories
from tests.database import PATIENCE, Gate, at_once, blocked, held
from tests.factories import KEY, NOW, STAFF
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
SAID = (("user", "I live in Leiden and my number is 0612"), ("assistant", "Noted"), ("user", "I drink tea"))


def redact(turn: Turn, *passages: str, actor: Actor = KEY, tenant: Tenant | None = None) -> None:
    redact_turn(turn_id=turn.pk, tenant=tenant, actor=actor, now=NOW, passages=passages)


def turn_of(session: Session, number: int = 1) -> Turn:
    return session.turns.get(number=number)


def resting(content: str, *turns: Turn, quote: str = "", **over: Any) -> Fact:
    fact = factories.fact(turns[0].end_user, content, **over)
    for turn in turns:
        factories.evidence(fact, turn, quote)
    return fact


def contents() -> list[str]:
    return sorted(Fact.objects.values_list("content", flat=True))


class TestTheRow:
    def test_it_keeps_its_place_and_a_hash_and_says_nothing(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        redact(turn_of(session))
        turn = turn_of(session)
        assert (turn.content, turn.parts, turn.metadata, turn.terms, turn.redacted_at) == ("", None, {}, None, NOW)
        assert turn.digest
        assert (session.turns.count(), turn.role, check()) == (3, "user", [])

    def test_passages_are_marked_and_the_rest_stays(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        redact(turn_of(session), "0612")
        assert turn_of(session).content == "I live in Leiden and my number is [redacted]"
        redact(turn_of(session), "0612", "Leiden")
        assert turn_of(session).content == "I live in [redacted] and my number is [redacted]"
        assert check() == []

    def test_in_parts_and_metadata_too(self, person: EndUser) -> None:
        said = PostedMessage("user", "0612", parts=[{"type": "text", "text": "0612"}], metadata={"a": ["is 0612"]})
        names: dict[str, Any] = {"user_id": person.external_id, "session_id": "s1", "agent_id": ""}
        ingest.store_turns(tenant=person.tenant, messages=[said], **names)
        redact(Turn.objects.get(), "0612")
        turn = Turn.objects.get()
        assert (turn.content, turn.parts) == ("[redacted]", [{"type": "text", "text": "[redacted]"}])
        assert turn.metadata == {"a": ["is [redacted]"]}

    def test_what_it_does_not_say_changes_nothing(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        with pytest.raises(InvalidInput) as refused:
            redact(turn_of(session), "0612", "0613")
        assert [fault.pointer for fault in refused.value.faults] == ["/texts/1"]
        assert turn_of(session).content == SAID[0][1]

    def test_twice_is_once(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        for _ in range(2):
            redact(turn_of(session))
        assert (AuditEvent.objects.get().verb, Session.objects.get().redactions) == ("redact", 1)

    def test_the_trail_has_counts_and_no_content(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        resting("Lives in Leiden", turn_of(session))
        redact(turn_of(session))
        event = AuditEvent.objects.get(verb="redact")
        assert (event.object_type, event.object_id) == ("Turn", turn_of(session).pk)
        assert event.counts == {"facts": 1, "sections": 0, "episodes": 0}
        assert not any("eiden" in str(value) for event in AuditEvent.objects.all() for value in vars(event).values())

    def test_another_tenants_was_never_there(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        with pytest.raises(NotFound):
            redact(turn_of(session), tenant=factories.tenant())
        redact(turn_of(session), tenant=person.tenant)
        assert turn_of(session).content == ""

    def test_of_a_restricted_person_only_an_operator_deletes(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        EndUser.objects.update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            redact(turn_of(session))
        redact(turn_of(session), actor=STAFF)
        assert turn_of(session).content == ""


class TestWhatWasMadeOfIt:
    @pytest.mark.parametrize(
        ("status", "passages"),
        [("active", ()), ("pending", ()), ("superseded", ()), ("trashed", ()), ("active", ("0612",))],
    )
    def test_facts_that_rest_on_it_alone_go(self, person: EndUser, status: str, passages: tuple[str, ...]) -> None:
        session = factories.session(person, SAID)
        resting("Lives in Leiden", turn_of(session), status=status)
        resting("Drinks tea", turn_of(session, 3))
        redact(turn_of(session), *passages)
        assert contents() == ["Drinks tea"]

    def test_others_lose_this_evidence_and_its_quote(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        both = resting("Lives in Leiden", turn_of(session), quote="I live in Leiden", raw="I live in Leiden")
        factories.evidence(both, turn_of(session, 3), "tea")
        before, after = {"raw": "I live in Leiden"}, {"raw": "I live in Leiden", "content": "x"}
        given: dict[str, Any] = {"verb": "add", "actor_kind": "key", "created_at": NOW}
        FactRevision.objects.create(tenant_id=both.tenant_id, fact=both, version=1, before=before, after=after, **given)
        word, stated = resting("Sails", turn_of(session), binding=True), resting("Sings", turn_of(session))
        Fact.objects.filter(pk=stated.pk).update(extractor="api")
        redact(turn_of(session))
        assert contents() == ["Lives in Leiden", "Sails", "Sings"]
        assert (Fact.objects.get(pk=both.pk).raw, FactEvidence.objects.get().turn) == ("", turn_of(session, 3))
        revision = FactRevision.objects.get(fact=both)
        assert (revision.before, revision.after) == ({"raw": ""}, {"raw": "", "content": "x"})
        assert Fact.objects.filter(pk=word.pk).exists()

    def test_sections_of_the_profile(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        run = factories.run(session)
        given: dict[str, Any] = {"actor_kind": "run"}
        for section, evidence in (("work_context", [1]), ("top_of_mind", [1, 3]), ("recent_months", [3])):
            text = f"Of {evidence}"
            factories.profile_section(
                person, section=section, summary=text, extraction=run, evidence=evidence, version=1, **given
            )
            factories.profile_revision(
                person, text, section=section, version=1, extraction=run, evidence=evidence, **given
            )
        redact(turn_of(session))
        rows = {row.section: (row.summary, row.evidence) for row in ProfileSection.objects.all()}
        assert rows == {"work_context": ("", []), "top_of_mind": ("Of [1, 3]", [3]), "recent_months": ("Of [3]", [3])}
        texts = {text for pair in ProfileRevision.objects.values_list("before", "after") for text in pair}
        assert "Of [1]" not in texts
        assert "Of [3]" in texts

    def test_episodes_and_the_running_summary(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        factories.episode(session, "Lives in Leiden", last_number=2, fed_turns=2)
        factories.episode(session, "Drinks tea", first_number=3, last_number=3)
        WorkingMemory.objects.update(summary="Lives in Leiden", left_number=2, left_rounds=1)
        tokens = sum(session.turns.filter(number__lte=2).values_list("token_count", flat=True))
        WorkingMemory.objects.update(left_tokens=tokens)
        redact(turn_of(session))
        assert list(Episode.objects.values_list("summary", flat=True)) == ["Drinks tea"]
        window = WorkingMemory.objects.get()
        assert (window.summary, window.left_number, window.episode_number) == ("", 0, 3)
        assert check() == []
        # The last one is made anew.
        redact(turn_of(session, 3))
        assert WorkingMemory.objects.get().episode_number == 2
        assert not Episode.objects.exists()

    def test_an_operators_episode_stays(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        factories.episode(session, "As an operator wrote it", binding=True)
        redact(turn_of(session))
        assert Episode.objects.exists()

    def test_windows_and_searches_forget_it_at_once(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        assert len(open_index(person, None)) == 3
        redact(turn_of(session))
        assert list(open_index(person, None).ids) == [turn_of(session, 2).pk, turn_of(session, 3).pk]
        names: dict[str, Any] = {"agent_id": "", "session_id": session.external_id}
        window = open_window(person, rules=conf.rules(person.tenant), **names)
        assert [message["content"] for message in window.messages("")] == ["Noted", "I drink tea"]


class TestSentAgain:
    def post(self, person: EndUser, content: str = SAID[0][1], *, bulk: bool = False, **over: Any) -> Any:
        messages = [PostedMessage("user", content, **over)]
        names: dict[str, Any] = {"user_id": person.external_id, "session_id": "s1", "agent_id": ""}
        if bulk:
            (receipt,) = ingest.store_conversations(
                tenant=person.tenant, conversations=[Conversation(messages=messages, **names)]
            )
            return receipt
        return ingest.store_turns(tenant=person.tenant, messages=messages, **names)

    @pytest.mark.parametrize(
        ("given", "bulk", "passages"),
        [
            ({}, False, ()),
            ({}, True, ("0612",)),
            ({"external_id": "m1"}, False, ("0612",)),
            ({"external_id": "m1"}, True, ()),
            ({"timestamp": NOW}, False, ()),
            ({"timestamp": NOW}, True, ("0612",)),
        ],
        ids=str,
    )
    def test_it_is_a_duplicate(
        self, person: EndUser, given: dict[str, Any], bulk: bool, passages: tuple[str, ...]
    ) -> None:
        self.post(person, **given)
        redact(Turn.objects.get(), *passages)
        receipt = self.post(person, bulk=bulk, **given)
        assert [(turn.number, turn.duplicate) for turn in receipt.turns] == [(1, True)]
        assert Turn.objects.count() == 1
        assert "0612" not in Turn.objects.get().content

    def test_another_text_time_id_or_session_is_another_message(self, person: EndUser) -> None:
        self.post(person, timestamp=NOW)
        redact(Turn.objects.get())
        others: list[dict[str, Any]] = [
            {"content": "I live in Delft", "timestamp": NOW},
            {},
            {"external_id": "m2", "timestamp": NOW},
        ]
        assert [self.post(person, **other).duplicates for other in others] == [0, 0, 0]
        assert factories.session(person, SAID[:1], session_id="s2").turn_count == 1

    def test_another_text_under_its_id_is_refused(self, person: EndUser) -> None:
        self.post(person, external_id="m1")
        redact(Turn.objects.get())
        with pytest.raises(ExternalIdReused):
            self.post(person, "I live in Delft", external_id="m1")


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.mark.parametrize("redacted", [1, 0])
    def test_an_extraction_in_flight_is_thrown_away_and_made_anew(
        self, person: EndUser, model: Model, redacted: int
    ) -> None:
        session = factories.session(person, SAID, flush=True)
        gate = Gate()

        def answer() -> dict[str, Any]:
            gate.stop()
            return {"new_facts": [candidate("Lives in Leiden", evidence=[1])]}

        def act() -> None:
            if redacted:
                redact(turn_of(session))

        model.answers.append(answer)
        run = gate.meanwhile(lambda: consolidation.consolidate(session_id=session.pk, now=NOW), act)
        assert run
        if not redacted:
            # The positive control: of a turn that is still there it becomes a fact.
            assert (run.status, contents()) == ("committed", ["Lives in Leiden"])
            return
        assert (run.status, contents()) == ("discarded", [])
        queue = SessionQueue.objects.get()
        assert (queue.lease_token, queue.attempts) == (None, 0)
        assert queue.due_at
        model.say(candidate("Drinks tea", evidence=[3]))
        again = consolidation.consolidate(session_id=session.pk, now=NOW)
        assert again
        assert (again.status, contents()) == ("committed", ["Drinks tea"])
        assert "0612" not in str(model.prompts[-1])

    @pytest.mark.parametrize("redacted", [True, False])
    def test_so_is_one_of_another_session_that_was_shown_what_was_made_of_it(
        self, person: EndUser, model: Model, redacted: bool
    ) -> None:
        told, other = factories.session(person, SAID), factories.session(person, SAID, flush=True)
        fact = resting("Lives in Leiden", turn_of(told))
        gate = Gate()

        def answer() -> dict[str, Any]:
            gate.stop()
            return {"new_facts": [candidate("Lives in Leiden with a cat", evidence=[1])]}

        model.answers.append(answer)
        run = gate.meanwhile(
            lambda: consolidation.consolidate(session_id=other.pk, now=NOW),
            lambda: redact(turn_of(told)) if redacted else None,
        )
        assert run
        assert run.status == ("discarded" if redacted else "committed")
        assert Fact.objects.filter(pk=fact.pk).exists() != redacted

    def test_two_at_once_are_one(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        resting("Lives in Leiden", turn_of(session))
        at_once(2, lambda _: redact(turn_of(session)))
        assert (AuditEvent.objects.filter(verb="redact").count(), contents()) == (1, [])

    def test_of_two_at_once_who_ask_for_it_one_gets_it(self, person: EndUser) -> None:
        session = factories.session(person, SAID)

        def take(number: int) -> str:
            redact_turn(turn_id=turn_of(session, number).pk, tenant=None, actor=KEY, now=NOW, once=True)
            return "taken"

        with held(lambda: take(1)):
            other = blocked(lambda: take(1))
        assert isinstance(other.exception(PATIENCE), AlreadyRedacted)
        # The positive control: another turn of the session is there to be taken.
        assert take(3) == "taken"

    def test_a_post_of_it_waits_and_is_a_duplicate(self, person: EndUser) -> None:
        session = factories.session(person, SAID, session_id="s1")
        with held(lambda: redact(turn_of(session))):
            post = blocked(lambda: factories.session(person, SAID[:1], session_id="s1"))
        assert post.result(PATIENCE).turn_count == 3

    def test_vectors_that_are_being_made_of_it_are_not_written(self, person: EndUser) -> None:
        session = factories.session(person, SAID)
        read = list(turn_vectors.with_text(Turn.objects.filter(session=session)))
        redact(turn_of(session))
        with transaction.atomic():
            assert turn_vectors.lock_existing(read) == {turn_of(session, 2).pk, turn_of(session, 3).pk}

    def test_a_summary_in_flight_is_thrown_away(self, person: EndUser, model: Model) -> None:
        factories.set_numbers(person.tenant, window_rounds=1)
        session = factories.session(person, SAID)
        WorkingMemory.objects.update(due_at=NOW, over_since=NOW)
        gate = Gate()

        def answer() -> dict[str, Any]:
            gate.stop()
            return {"summary": "The user lives in Leiden."}

        model.sessions.append(answer)
        done = gate.meanwhile(
            lambda: compaction.compact(session_id=session.pk, now=NOW), lambda: redact(turn_of(session))
        )
        window = WorkingMemory.objects.get()
        assert (done, window.summary, window.left_number, window.lease_token) == (False, "", 0, None)
