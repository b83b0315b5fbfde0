"""What was corrected, forgotten or is over is left out of all that is served, and searches mark it, for each kind."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from memories.audit import Actor
from memories.context import context
from memories.context.context import ContextRequest
from memories.context.parts import INCLUDABLE
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.kinds.served import SERVED
from memories.models import ActorKind, EndUser, Fact, FileVersion, MemoryFile, ProfileSection, Turn, WorkingMemory
from memories.retrieval import search
from memories.retrieval.search import SearchFilters, SearchRequest
from tests import factories
from tests.factories import LATER, NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
STAFF = Actor(kind=ActorKind.OPERATOR, id="7")
AGAIN, MUCH_LATER = LATER + timedelta(hours=1), LATER + timedelta(days=1)
BESIDE = "Likes rye bread."


def a_turn(person: EndUser, said: str) -> Any:
    session = factories.session(person, [("user", said)])
    session.turns.update(created_at=NOW, timestamp=NOW)
    return session.turns.get()


def a_group_fact(person: EndUser, said: str) -> Any:
    return factories.group_fact(factories.memory_group(person), person, content=said)


# Kind → a row of it that says a text; a fact that holds is no text about one.
MADE: Mapping[str, Callable[[EndUser, str], Any]] = {
    "profile": lambda person, said: factories.profile_section(person, summary=said),
    "triple": lambda person, said: factories.triple(person, "user", "lives_in", said.split(" in ")[1].split(".")[0]),
    "group_fact": a_group_fact,
    "file": lambda person, said: factories.memory_file(person, content=f"# Notes\n- {said}\n"),
    "diary": factories.diary_entry,
    "episode": lambda person, said: factories.episode(factories.session(person, [("user", "Hm")]), said),
    "document": lambda person, said: factories.attachment(a_turn(person, "Here"), said).passages.get(),
    "turn": lambda person, said: a_turn(person, said.replace("The user lives", "I live")),
}
SEARCHED = {
    "group_fact": "fact",
    "triple": "triple",
    "diary": "diary",
    "document": "document",
    "episode": "episode",
    "turn": "turn",
}
OLD = f"The user lives in Leiden. {BESIDE}"


@pytest.fixture
def fact(person: EndUser) -> Fact:
    return factories.fact(person, "Lives in Leiden")


def corrected(fact: Fact) -> None:
    correct_fact(fact_id=fact.pk, tenant=None, content="Lives in Utrecht", reason="", actor=STAFF, now=LATER)


def forgotten(fact: Fact) -> None:
    forget_fact(fact_id=fact.pk, tenant=None, actor=STAFF, now=LATER)


def over(fact: Fact) -> None:
    after = factories.fact(fact.end_user, "Lives in Utrecht", now=LATER)
    Fact.objects.filter(pk=fact.pk).update(status="superseded", superseded_by=after, valid_to=LATER)


def served(person: EndUser, **given: Any) -> str:
    """The lines of a context with everything, but for those of facts."""
    request = ContextRequest("u1", query="Where is Leiden?", include=frozenset(INCLUDABLE) - {"facts"}, **given)
    return context.build(tenant=person.tenant, request=request, now=MUCH_LATER).memory


def found(person: EndUser, kind: str, **given: Any) -> list[Any]:
    asked = SearchRequest("u1", "Where is Leiden?", [SEARCHED[kind]], filters=SearchFilters(), **given)
    results = search.search(tenant=person.tenant, search=asked, now=MUCH_LATER).results
    return [one for one in results if one.kind == kind]


def test_each_kind_that_is_served_has_a_row_here() -> None:
    assert {*MADE, "fact"} == set(SERVED)


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize(("ends", "with_vectors"), [(corrected, False), (forgotten, True)])
def test_the_sentence_is_left_out_and_the_rest_stays(
    person: EndUser, fact: Fact, kind: str, ends: Callable[[Fact], None], with_vectors: bool
) -> None:
    MADE[kind](person, OLD)
    if with_vectors:
        embed_all(person)
    assert "Leiden" in served(person)
    ends(fact)
    told = served(person)
    assert "Leiden" not in told
    assert (kind == "file") == (f"  | - {BESIDE}" in told)
    # A triple has one sentence.
    assert (BESIDE in told) == (kind != "triple")


@pytest.mark.parametrize("kind", MADE)
def test_of_what_is_over_the_day_is_told(person: EndUser, fact: Fact, kind: str) -> None:
    MADE[kind](person, OLD)
    over(fact)
    assert "in Leiden" in served(person)
    assert f"(no longer true since {LATER.date()})" in served(person)
    assert "no longer true" not in served(person, as_of=NOW + timedelta(hours=1))


@pytest.mark.parametrize("kind", SEARCHED)
def test_a_search_marks_it_and_an_agent_is_not_told(person: EndUser, fact: Fact, kind: str) -> None:
    row = MADE[kind](person, OLD)
    assert [(one.id, one.outdated_since) for one in found(person, kind)] == [(row.pk, None)]
    forgotten(fact)
    (hit,) = found(person, kind)
    assert "in Leiden" in hit.text
    assert hit.outdated_since == LATER
    assert not any("Leiden" in one.text for one in found(person, kind, for_agent=True))


@pytest.mark.parametrize("kind", MADE)
def test_a_fact_that_states_it_again_lifts_it_from_all_that_is_written(person: EndUser, fact: Fact, kind: str) -> None:
    MADE[kind](person, OLD)
    forgotten(fact)
    factories.fact(person, "Lives in Leiden with Tom", trust="assistant", now=AGAIN)
    assert "in Leiden" not in served(person)
    factories.fact(person, "Lives in Leiden with two cats", now=AGAIN)
    # An old turn stays as it is: the new one is told.
    assert ("in Leiden" in served(person)) == (kind != "turn")


TOLD = [
    "They live in Leiden.", "She works at Philips and lives in Leiden.", "He lives in Leiden with his wife.",
    "The user, who lives in Leiden, asked for a dentist.",
    "The user said that she had moved to Leiden.", "Home: Leiden", "Sie wohnt in Leiden.", "Elle habite à Leiden.",
    "他住在Leiden。",
]  # fmt: skip
OTHERS = [
    "Her brother moved, and he lives in Leiden.", "Has a sister. She lives in Leiden.", "Anna lives in Leiden.",
    "Asked for a dentist in Leiden.", "Considers moving to Leiden.", "Does not live in Leiden.", "Works in Leiden.",
    "她的姐姐住在Leiden。",
]  # fmt: skip


@pytest.mark.parametrize("text", TOLD)
def test_who_is_written_about_needs_no_name(person: EndUser, fact: Fact, text: str) -> None:
    factories.diary_entry(person, text)
    forgotten(fact)
    assert "Leiden" not in served(person)


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_told_of_others_or_of_something_else_stays(person: EndUser, fact: Fact, text: str) -> None:
    factories.diary_entry(person, text)
    forgotten(fact)
    assert "Leiden" in served(person)


def test_a_fact_that_holds_is_not_looked_at(person: EndUser, fact: Fact) -> None:
    factories.fact(person, "Lives in Leiden with two cats")
    forgotten(fact)
    request = ContextRequest("u1", include=frozenset({"facts"}))
    assert "Leiden" in context.build(tenant=person.tenant, request=request, now=MUCH_LATER).memory


def test_what_others_say_and_what_shares_a_word_stays(person: EndUser, fact: Fact) -> None:
    other = factories.end_user(person.tenant)
    factories.group_fact(factories.memory_group(person, other), other, content="Lives in Leiden")
    factories.profile_section(person, summary="Their sister lives in Leiden.")
    factories.diary_entry(person, "Asked for a dentist in Leiden.")
    forgotten(fact)
    told = served(person)
    assert told.count("Leiden") == 3


class TestWhenItWasWritten:
    """What is written again and again carries old sentences on; what was not there before says them anew."""

    def test_a_file(self, person: EndUser, fact: Fact) -> None:
        file = factories.memory_file(person, content="- Lives in Leiden\n")
        forgotten(fact)
        rewrite(file, "- Lives in Leiden\n- Likes tea\n")
        assert "Leiden" not in served(person)
        assert "Likes tea" in served(person)
        rewrite(file, "- Moved back and lives in Leiden now\n")
        assert "Leiden" in served(person)
        # Without the version of then nobody knows.
        FileVersion.objects.filter(file=file, version=1).delete()
        assert "Leiden" not in served(person)

    def test_a_file_that_is_new(self, person: EndUser, fact: Fact) -> None:
        forgotten(fact)
        factories.memory_file(person, content="- Lives in Leiden\n", created_at=AGAIN, updated_at=AGAIN)
        assert "Leiden" in served(person)

    @pytest.mark.parametrize(("actor", "is_told"), [("run", False), ("operator", True), ("key", True)])
    def test_a_section_of_the_profile(self, person: EndUser, fact: Fact, actor: str, is_told: bool) -> None:
        forgotten(fact)
        factories.profile_section(person, summary="Lives in Leiden.", actor_kind=actor, updated_at=AGAIN)
        assert ("Leiden" in served(person)) == is_told
        factories.profile_revision(person, "Lives in Leiden. Likes tea.", actor_kind=actor)
        # A key sent again what it had read.
        assert ("Leiden" in served(person)) == (actor == "operator")

    @pytest.mark.parametrize("kind", ["triple", "group_fact", "diary", "episode", "turn"])
    def test_the_others(self, person: EndUser, fact: Fact, kind: str) -> None:
        row = MADE[kind](person, OLD)
        forgotten(fact)
        times = [field.name for field in row._meta.fields if field.name in ("created_at", "said_at", "started_at")]
        type(row)._default_manager.filter(pk=row.pk).update(**dict.fromkeys(times, AGAIN))
        assert "in Leiden" in served(person)


def rewrite(file: MemoryFile, text: str) -> None:
    MemoryFile.objects.filter(pk=file.pk).update(content=text, updated_at=AGAIN)


def test_the_running_summary_of_a_conversation(person: EndUser, fact: Fact) -> None:
    session = factories.session(person, session_id="s1")
    WorkingMemory.objects.filter(pk=session.pk).update(summary=OLD)
    Turn.objects.all().delete()
    request = ContextRequest("u1", session_id="s1", include=frozenset({"working_memory"}))

    def summary() -> str:
        return str(context.build(tenant=person.tenant, request=request, now=MUCH_LATER).messages)

    assert "Leiden" in summary()
    forgotten(fact)
    assert "Leiden" not in summary()
    assert BESIDE in summary()


def test_what_rules_wrote_in_the_persons_own_words(person: EndUser) -> None:
    """Without a model facts and episodes are sentences of turns."""
    fact = factories.fact(person, "I live in Leiden", extractor="rules-v1")
    factories.episode(
        factories.session(person, [("user", "Hm")]), f"I live in Leiden. {BESIDE}", extractor="extractive"
    )
    factories.profile_section(person, summary=OLD)
    forgotten(fact)
    assert "Leiden" not in served(person)
    assert served(person).count(BESIDE) == 2


def test_what_is_left_out_whole_takes_no_line(person: EndUser, fact: Fact) -> None:
    factories.profile_section(person, summary="Lives in Leiden.")
    assert ProfileSection.objects.count() == 1
    forgotten(fact)
    assert served(person) == ""
