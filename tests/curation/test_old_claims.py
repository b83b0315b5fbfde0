"""After a correction the other memories that say the old claim are found, and each is mended, and undone, by itself."""

import uuid
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.old_claims import (
    REPLACEABLE,
    Mend,
    OccurrenceKind,
    claim_of,
    correction_of,
    mend,
    occurrences,
    redact_turns,
)
from memories.curation.reverting import revert
from memories.curation.running_summaries import version_of_summary
from memories.curation.sessions import delete_session
from memories.exceptions import Conflict, InvalidInput, NotFound, PreconditionFailed
from memories.models import (
    ActorKind,
    Change,
    ChangeSet,
    DiaryEntry,
    EndUser,
    Episode,
    Fact,
    FactRefusal,
    FileVersion,
    GraphTriple,
    MemoryFile,
    ProfileRevision,
    ProfileSection,
    Session,
    Turn,
    WorkingMemory,
)
from memories.models.ids import new_id
from memories.text.claims import OldClaim
from tests import factories
from tests.factories import LATER, NOW

pytestmark = pytest.mark.django_db
BY_STAFF: dict[str, Any] = {"actor": Actor(kind=ActorKind.OPERATOR, id="7"), "now": LATER}


@pytest.fixture
def session(person: EndUser) -> Session:
    made = factories.session(person)
    WorkingMemory.objects.filter(pk=made.pk).update(summary="The user moved to Leiden.", extractor="llm:test")
    return made


@pytest.fixture
def said(person: EndUser, session: Session) -> dict[OccurrenceKind, uuid.UUID]:
    """A memory of each kind that says it."""
    episode = factories.episode(session, "Asked for a dentist in Leiden")
    return {
        OccurrenceKind.SECTION: factories.profile_section(person, summary="A baker from Leiden.").pk,
        OccurrenceKind.FACT: factories.fact(person, "Rents a flat in Leiden").pk,
        OccurrenceKind.PENDING: factories.fact(person, "Was born in Leiden", status="pending").pk,
        OccurrenceKind.EPISODE: episode.pk,
        OccurrenceKind.SUMMARY: session.pk,
        OccurrenceKind.FILE: factories.memory_file(person, "/memories/trip.md", "# Home\r\nLeiden\r\n").pk,
        OccurrenceKind.TRIPLE: factories.triple(person, "user", "lives_in", "Leiden").pk,
        OccurrenceKind.DIARY: factories.diary_entry(person, "Asked about trains from Leiden").pk,
    }


@pytest.fixture
def corrected(person: EndUser, said: dict[OccurrenceKind, uuid.UUID]) -> Fact:
    factories.fact(person, "Likes tea")
    factories.fact(factories.end_user(person.tenant), "Works in Leiden")
    fact = factories.fact(person)
    return correct_fact(fact_id=fact.pk, tenant=None, content="Lives in Utrecht", reason="Phoned", **BY_STAFF)


def claim(fact: Fact) -> OldClaim:
    found = claim_of(fact)
    assert found
    return found


def mend_it(fact: Fact, kind: OccurrenceKind, row: uuid.UUID, how: Mend = Mend.REPLACE, **over: Any) -> None:
    one = next(one for one in occurrences(fact, claim(fact)) if one.kind == kind)
    given = {"text": one.proposed, "expected_version": one.version, "end_user": fact.end_user, **BY_STAFF, **over}
    mend(claim=claim(fact), kind=kind, row_id=row, how=how, **given)


def text_of(kind: OccurrenceKind, row: uuid.UUID) -> str:
    models: dict[OccurrenceKind, Any] = {
        OccurrenceKind.SECTION: ProfileSection, OccurrenceKind.EPISODE: Episode, OccurrenceKind.SUMMARY: WorkingMemory,
        OccurrenceKind.FILE: MemoryFile, OccurrenceKind.TRIPLE: GraphTriple, OccurrenceKind.DIARY: DiaryEntry,
    }  # fmt: skip
    found: Any = models.get(kind, Fact)._default_manager.get(pk=row)
    return found.object.name if kind == OccurrenceKind.TRIPLE else str(getattr(found, "content", "") or found.summary)


def undo_last() -> None:
    revert(change_set=ChangeSet.objects.filter(undone_at=None).order_by("-id")[0].pk, **BY_STAFF)


def test_each_kind_of_memory_of_the_person_is_found(corrected: Fact, said: dict[OccurrenceKind, uuid.UUID]) -> None:
    assert {one.kind: one.id for one in occurrences(corrected, claim(corrected))} == said


def test_without_a_correction_or_with_it_undone_there_is_no_claim(corrected: Fact, person: EndUser) -> None:
    assert correction_of(factories.fact(person, "Likes milk")) is None
    undo_last()
    assert correction_of(corrected) is None


@pytest.mark.parametrize("kind", sorted(REPLACEABLE - {OccurrenceKind.FILE}))
def test_each_is_mended_by_the_new_words_and_undone(
    corrected: Fact, said: dict[OccurrenceKind, uuid.UUID], kind: OccurrenceKind
) -> None:
    before = text_of(kind, said[kind])
    mend_it(corrected, kind, said[kind])
    assert text_of(kind, said[kind]) == before.replace("Leiden", "Utrecht")
    assert kind not in {one.kind for one in occurrences(corrected, claim(corrected))}
    undo_last()
    assert text_of(kind, said[kind]) == before


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (OccurrenceKind.FACT, "trashed"), (OccurrenceKind.PENDING, "rejected"), (OccurrenceKind.EPISODE, "trashed"),
        (OccurrenceKind.TRIPLE, "trashed"),
    ],
)  # fmt: skip
def test_or_goes_away(
    corrected: Fact, said: dict[OccurrenceKind, uuid.UUID], kind: OccurrenceKind, status: str
) -> None:
    mend_it(corrected, kind, said[kind], Mend.DROP)
    model: Any = {OccurrenceKind.EPISODE: Episode, OccurrenceKind.TRIPLE: GraphTriple}.get(kind, Fact)
    assert model.objects.get(pk=said[kind]).status == status
    undo_last()
    assert model.objects.get(pk=said[kind]).status == ("pending" if kind == OccurrenceKind.PENDING else "active")
    assert FactRefusal.objects.filter(fact=said[kind]).count() == 0


@pytest.mark.parametrize("kind", [OccurrenceKind.SECTION, OccurrenceKind.SUMMARY])
def test_a_section_and_a_summary_cannot_go_away(
    corrected: Fact, said: dict[OccurrenceKind, uuid.UUID], kind: OccurrenceKind
) -> None:
    with pytest.raises(NotFound):
        mend_it(corrected, kind, said[kind], Mend.DROP)


def test_a_file_is_rewritten_with_its_ends_of_lines_or_deleted(
    corrected: Fact, said: dict[OccurrenceKind, uuid.UUID]
) -> None:
    file = said[OccurrenceKind.FILE]
    mend_it(corrected, OccurrenceKind.FILE, file, text="# Home\r\nUtrecht\r\n")
    assert text_of(OccurrenceKind.FILE, file) == "# Home\r\nUtrecht\r\n"
    version = FileVersion.objects.filter(file=file).latest("version")
    assert (version.actor_kind, version.reason) == ("operator", "It said what was corrected.")
    MemoryFile.objects.filter(pk=file).update(content="Leiden\n", encoding="base64")
    assert OccurrenceKind.FILE not in {one.kind for one in occurrences(corrected, claim(corrected))}
    MemoryFile.objects.filter(pk=file).update(encoding="utf-8")
    mend_it(corrected, OccurrenceKind.FILE, file, Mend.DROP)
    assert MemoryFile.objects.get(pk=file).trashed_at
    assert OccurrenceKind.FILE not in {one.kind for one in occurrences(corrected, claim(corrected))}


def test_a_note_of_an_agent_goes_to_the_trash(corrected: Fact, said: dict[OccurrenceKind, uuid.UUID]) -> None:
    mend_it(corrected, OccurrenceKind.DIARY, said[OccurrenceKind.DIARY], Mend.DROP)
    assert DiaryEntry.objects.get(pk=said[OccurrenceKind.DIARY]).trashed_at


@pytest.mark.parametrize("kind", [OccurrenceKind.TRIPLE, OccurrenceKind.DIARY])
def test_nobody_rewrites_a_triple_or_a_note(
    corrected: Fact, said: dict[OccurrenceKind, uuid.UUID], kind: OccurrenceKind
) -> None:
    with pytest.raises(NotFound):
        mend_it(corrected, kind, said[kind])


def test_what_follows_a_fact_or_is_over_is_not_asked_about(corrected: Fact, person: EndUser) -> None:
    before = len(occurrences(corrected, claim(corrected)))
    fact = factories.fact(person, "Has an aunt somewhere")
    factories.triple(person, "Ann", "lives_in", "Leiden", fact=fact)
    factories.triple(person, "Bob", "lives_in", "Leiden", valid_to=NOW)
    assert len(occurrences(corrected, claim(corrected))) == before


class TestLists:
    """Topics, actions and outcomes of an episode are found and mended line by line, and say which they are."""

    @pytest.fixture
    def episode(self, corrected: Fact, session: Session) -> Episode:
        lines = ["Booked a table", "Found a flat in Leiden", "Signed for the flat in Leiden"]
        return factories.episode(session, "Talked about moving", first_number=2, last_number=2, outcomes=lines)

    def test_the_field_that_matched_is_told_and_no_other_text(self, corrected: Fact, episode: Episode) -> None:
        (one,) = [one for one in occurrences(corrected, claim(corrected)) if one.id == episode.pk]
        assert (one.field, one.text) == ("outcomes", "Found a flat in Leiden\nSigned for the flat in Leiden")
        assert one.proposed == "Found a flat in Utrecht\nSigned for the flat in Utrecht"

    def test_words_of_several_fields_together_say_nothing(self, person: EndUser, session: Session) -> None:
        factories.episode(session, "Sold a vintage lamp", outcomes=["Fixed a fountain"], key_topics=["flowers"])
        fact = factories.fact(person, "Collects vintage typewriters and fountain pens")
        forget_fact(fact_id=fact.pk, tenant=None, **BY_STAFF)
        fact.refresh_from_db()
        assert [one for one in occurrences(fact, claim(fact)) if one.kind == OccurrenceKind.EPISODE] == []

    def test_its_lines_are_mended(self, corrected: Fact, episode: Episode) -> None:
        self.mend(corrected, episode, Mend.REPLACE, text="Found a flat in Utrecht")
        episode.refresh_from_db()
        assert (episode.summary, episode.outcomes) == (
            "Talked about moving", ["Booked a table", "Found a flat in Utrecht"],
        )  # fmt: skip
        undo_last()
        episode.refresh_from_db()
        assert len(episode.outcomes) == 3

    def test_or_cut_out_and_the_episode_stays(self, corrected: Fact, episode: Episode) -> None:
        self.mend(corrected, episode, Mend.DROP)
        episode.refresh_from_db()
        assert (episode.status, episode.outcomes) == ("active", ["Booked a table"])

    def test_of_no_other_field(self, corrected: Fact, episode: Episode) -> None:
        with pytest.raises(NotFound):
            self.mend(corrected, episode, Mend.DROP, field="flaws")

    def mend(self, fact: Fact, episode: Episode, how: Mend, *, field: str = "outcomes", text: str = "") -> None:
        given: dict[str, Any] = {"row_id": episode.pk, "how": how, "text": text, "field": field, **BY_STAFF}
        given |= {"end_user": fact.end_user, "expected_version": episode.version}
        mend(claim=claim(fact), kind=OccurrenceKind.EPISODE, **given)


class TestForgotten:
    """After Forget the same memories are found; there are no new words to put in."""

    def test_the_same_is_found_and_nothing_is_proposed(
        self, person: EndUser, said: dict[OccurrenceKind, uuid.UUID]
    ) -> None:
        fact = factories.fact(person)
        assert claim_of(fact) is None
        forget_fact(fact_id=fact.pk, tenant=None, **BY_STAFF)
        fact.refresh_from_db()
        found = occurrences(fact, claim(fact))
        assert {one.kind: one.id for one in found} == said
        assert not any(one.has_words for one in found)
        undo_last()
        fact.refresh_from_db()
        assert claim_of(fact) is None

    def test_what_faded_was_not_forgotten(self, person: EndUser) -> None:
        assert claim_of(factories.fact(person, status="trashed", trashed_at=NOW)) is None


class TestTurns:
    """What turns say of it is cut out of those that are chosen, the fact's own evidence last."""

    def test_the_sentences_are_redacted(self, person: EndUser) -> None:
        talk = factories.session(
            person, [("user", "I live in Leiden. I like tea."), ("user", "Leiden is where I live.")]
        )
        Turn.objects.update(created_at=NOW)
        first, second = talk.turns.order_by("number")
        fact = factories.fact(person)
        factories.evidence(fact, first, "I live in Leiden.")
        forget_fact(fact_id=fact.pk, tenant=None, **BY_STAFF)
        other = factories.session(factories.end_user(person.tenant), [("user", "I live in Leiden.")]).turns.get()
        assert redact_turns(fact, [first.pk, second.pk, other.pk], **BY_STAFF) == 2
        texts = [turn.content for turn in Turn.objects.filter(session=talk).order_by("number")]
        assert texts == ["[redacted] I like tea.", "[redacted]"]
        assert Turn.objects.get(pk=other.pk).content == "I live in Leiden."
        # It rested on the turn alone.
        assert not Fact.objects.filter(pk=fact.pk).exists()

    def test_only_the_chosen_ones(self, person: EndUser) -> None:
        talk = factories.session(person, [("user", "I live in Leiden."), ("user", "We live in Leiden.")])
        Turn.objects.update(created_at=NOW)
        fact = correct_fact(
            fact_id=factories.fact(person).pk, tenant=None, content="Lives in Utrecht", reason="", **BY_STAFF
        )
        assert redact_turns(fact, [talk.turns.get(number=2).pk], **BY_STAFF) == 1
        assert [one.content for one in talk.turns.order_by("number")] == ["I live in Leiden.", "[redacted]"]
        assert redact_turns(fact, [talk.turns.get(number=2).pk], **BY_STAFF) == 0


def test_a_section_gets_a_revision_with_the_reason(corrected: Fact, said: dict[OccurrenceKind, uuid.UUID]) -> None:
    mend_it(corrected, OccurrenceKind.SECTION, said[OccurrenceKind.SECTION])
    revision = ProfileRevision.objects.latest("id")
    assert (revision.after, revision.reason) == ("A baker from Utrecht.", "It said what was corrected.")


@pytest.mark.parametrize("kind", sorted(REPLACEABLE))
def test_of_another_version_or_person_nothing_is_changed(
    corrected: Fact, said: dict[OccurrenceKind, uuid.UUID], kind: OccurrenceKind
) -> None:
    with pytest.raises(PreconditionFailed):
        mend_it(corrected, kind, said[kind], expected_version=77)
    with pytest.raises(NotFound):
        mend_it(corrected, kind, said[kind], end_user=factories.end_user(corrected.tenant))
    with pytest.raises(NotFound):
        mend_it(corrected, kind, new_id())
    with pytest.raises(InvalidInput):
        mend_it(corrected, kind, said[kind], text="  ")
    assert "Leiden" in text_of(kind, said[kind])


class TestSummary:
    """The running summary: what reads it meanwhile is thrown away, and what it said before does not outlive it."""

    def test_a_compaction_in_flight_loses_its_lease(self, corrected: Fact, session: Session) -> None:
        held = {"lease_token": new_id(), "lease_until": LATER, "attempts": 1}
        WorkingMemory.objects.filter(pk=session.pk).update(**held)
        mend_it(corrected, OccurrenceKind.SUMMARY, session.pk)
        row = WorkingMemory.objects.get(pk=session.pk)
        assert (row.lease_token, row.attempts, row.extractor) == (None, 0, "operator")

    def test_one_that_was_written_again_is_not_undone(self, corrected: Fact, session: Session) -> None:
        mend_it(corrected, OccurrenceKind.SUMMARY, session.pk)
        WorkingMemory.objects.filter(pk=session.pk).update(summary="Something new.")
        with pytest.raises(Conflict):
            undo_last()
        assert text_of(OccurrenceKind.SUMMARY, session.pk) == "Something new."

    def test_what_it_said_before_goes_with_the_session(self, corrected: Fact, session: Session) -> None:
        mend_it(corrected, OccurrenceKind.SUMMARY, session.pk)
        assert Change.objects.of_summary(session.pk).count() == 1
        delete_session(session_id=session.pk, tenant=None, **BY_STAFF)
        assert Change.objects.of_summary(session.pk).count() == 0
        with pytest.raises(Conflict):
            undo_last()

    def test_two_texts_have_two_versions(self) -> None:
        assert version_of_summary("Lives in Leiden") != version_of_summary("Lives in Utrecht")
