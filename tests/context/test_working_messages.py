"""Contexts with working memory: the messages of the agent's own session, and that nothing is told twice."""

from collections.abc import Sequence
from typing import Any

import pytest

from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.context import context, parts, rendering, window
from memories.context.context import Context, ContextRequest
from memories.models import EndUser, Episode, Session, SessionQueue, Tenant, Turn, WorkingMemory
from memories.models.memories.episodes import EXTRACTIVE
from tests import factories
from tests.database import statements
from tests.factories import NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
MESSAGES = frozenset({"working_memory"})
EVERYTHING = frozenset(parts.INCLUDABLE)
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TALK = [
    ("system", "You are a vet."),
    ("user", "My quokka swam in the lake."),
    ("assistant", "A swimming quokka!"),
    ("user", "它叫豆豆"),
    ("assistant", "好名字"),
]


@pytest.fixture
def talk(person: EndUser) -> Session:
    return factories.session(person, TALK, session_id="s1", agent_id="vet")


def build(person: EndUser, **over: Any) -> Context:
    given = {"user_id": person.external_id, "session_id": "s1", "agent_id": "vet", "include": MESSAGES, **over}
    return context.build(tenant=person.tenant, request=ContextRequest(**given), now=NOW)


def messages(person: EndUser, **over: Any) -> list[tuple[str, Any]]:
    """(role, content) of each."""
    told = build(person, **over).messages
    assert told is not None
    return [(one["role"], one["content"]) for one in told]


def post(person: EndUser, turns: Sequence[tuple[str, str]], **over: Any) -> None:
    given = {"session_id": "s1", "agent_id": "vet", **over}
    factories.session(EndUser.objects.get(pk=person.pk), turns, **given)


class TestMessages:
    def test_the_systems_own_the_memory_the_summary_and_the_window(self, person: EndUser, talk: Session) -> None:
        factories.fact(person, "Has a <quokka>")
        WorkingMemory.objects.update(summary="They met\n& <talked>.", left_number=3)
        told = build(person, include=MESSAGES | {"facts"})
        assert told.memory.startswith("<memory>")
        assert told.messages == [
            {"role": "system", "content": "You are a vet."},
            {"role": "system", "content": told.memory},
            {"role": "system", "content": rendering.render_summary("They met & <talked>.")},
            {"role": "user", "content": "它叫豆豆"},
            {"role": "assistant", "content": "好名字"},
        ]

    def test_without_a_memory_and_without_a_summary(self, person: EndUser, talk: Session) -> None:
        assert messages(person) == TALK

    @pytest.mark.parametrize(
        "over", [{"session_id": "s2"}, {"agent_id": ""}, {"agent_id": "nurse"}, {"session_id": ""}]
    )
    def test_without_a_session_just_the_memory(self, person: EndUser, talk: Session, over: dict[str, str]) -> None:
        assert messages(person, **over) == []
        factories.fact(person)
        given = build(person, include=MESSAGES | {"facts"}, **over)
        assert given.messages == [{"role": "system", "content": given.memory}]

    def test_only_when_asked_for(self, person: EndUser, talk: Session) -> None:
        assert build(person, include=frozenset({"facts"})).messages is None
        assert build(person).messages

    def test_nobody_elses_session(self, person: EndUser, talk: Session) -> None:
        neighbour = factories.end_user(person.tenant)
        namesake = factories.end_user(factories.tenant(), external_id=person.external_id)
        assert messages(neighbour) == messages(namesake) == []
        assert messages(person)

    @pytest.mark.parametrize("kept_back", ["restricted", "off", "tenant", "unknown"])
    def test_people_who_are_served_nothing(self, person: EndUser, talk: Session, kept_back: str) -> None:
        match kept_back:
            case "restricted":
                EndUser.objects.update(restricted_at=NOW)
            case "off":
                EndUser.objects.update(serve=False)
            case "tenant":
                Tenant.objects.update(serve=False)
                person.tenant.refresh_from_db()
            case "unknown":
                person.external_id = "nobody"
        given = build(person, include=EVERYTHING)
        assert (given.messages, given.memory, given.items) == ([], "", [])

    def test_hidden_turns_stay_and_secrets_are_gone(self, person: EndUser, talk: Session) -> None:
        hidden = PostedMessage(role="user", content="my password is hunter2hunter2", metadata={"hide_from_ui": True})
        named: dict[str, Any] = {"tenant": person.tenant, "user_id": "u1", "session_id": "s1", "agent_id": "vet"}
        ingest.store_turns(messages=[hidden], **named)
        role, content = messages(person)[-1]
        assert role == "user"
        assert "[redacted:" in content
        assert "hunter2" not in content

    def test_system_turns_each_once_and_none_that_repeat_ours(self, person: EndUser, talk: Session) -> None:
        factories.fact(person)
        memory = build(person, include=frozenset({"facts"})).memory
        summaries = [rendering.render_summary("They met."), "Earlier in this conversation: They met."]
        ours = [("system", text) for text in (memory, *summaries)]
        post(person, [("system", "You are a vet."), *ours, ("system", "Be brief."), ("user", "Hi")])
        told = messages(person)
        assert [content for role, content in told if role == "system"] == ["You are a vet.", "Be brief."]
        assert told[-1] == ("user", "Hi")


class TestLimits:
    def test_rounds(self, person: EndUser) -> None:
        post(person, [(role, f"{role} {n}") for n in range(15) for role in ("user", "assistant")])
        assert messages(person)[0] == ("user", "user 5")
        assert len(messages(person)) == 20

    def test_the_system_takes_room_first_each_text_once(self, person: EndUser) -> None:
        prompt = "word " * 3_000
        rounds = [("system", prompt), ("user", "word " * 2_000)] * 5
        post(person, rounds)
        assert [role for role, _ in messages(person)] == ["system", "user", "user"]
        post(person, [("system", "word " * 9_000)])
        assert [role for role, _ in messages(person)] == ["system", "system", "user"]

    def test_what_has_left_is_not_shown(self, person: EndUser, talk: Session) -> None:
        WorkingMemory.objects.update(left_number=5)
        assert messages(person) == TALK[:1]
        # Without a row all of it is in the window.
        WorkingMemory.objects.all().delete()
        assert messages(person) == TALK

    @pytest.mark.parametrize(("most", "shown"), [(6, (6, 6, 7, 7, 8, 8)), (5, (7, 7, 8, 8)), (1, (8,))])
    def test_a_long_session_is_not_read_whole(
        self, person: EndUser, monkeypatch: pytest.MonkeyPatch, most: int, shown: tuple[int, ...]
    ) -> None:
        monkeypatch.setattr(window, "MOST_TURNS", most)
        post(person, [("system", "First"), *((role, str(n)) for n in range(9) for role in ("user", "assistant"))])
        assert [content for _, content in messages(person)] == ["First", *(str(n) for n in shown)]

    def test_two_statements_however_long_it_is(self, person: EndUser, talk: Session) -> None:
        def cost(include: frozenset[str]) -> int:
            return len(statements(lambda: build(person, include=include)))

        assert cost(MESSAGES) == cost(frozenset()) + 2
        post(person, [("user", "more")] * 100)
        assert cost(MESSAGES) == cost(frozenset()) + 2
        assert {one.split()[0] for one in statements(lambda: build(person))} <= {"SELECT", "WITH"}


class TestNothingTwice:
    def told(self, person: EndUser, **over: Any) -> list[str]:
        """Lines of turns and episodes in the block."""
        include = frozenset({"turns", "unextracted", "episodes", "working_memory"})
        given = build(person, **{"include": include, "query": "quokka lake", **over})
        return [line for line in given.memory.split("\n") if line.startswith("- ")]

    def test_what_the_window_shows_is_neither_recalled_nor_unextracted(self, person: EndUser, talk: Session) -> None:
        Turn.objects.update(created_at=NOW)
        factories.session(person, [("user", "Another quokka, by a lake")], session_id="s2")
        said = " ".join(self.told(person))
        assert "Another quokka" in said
        assert "swam" not in said
        assert "豆豆" not in said
        # The control: of another agent's window it is told.
        assert "swam" in " ".join(self.told(person, agent_id="nurse"))
        embed_all(person)
        SessionQueue.objects.update(extracted_number=5)
        assert "swam" not in " ".join(self.told(person))
        assert "swam" in " ".join(self.told(person, agent_id="nurse"))

    def test_what_has_left_the_window_is_recalled(self, person: EndUser, talk: Session) -> None:
        SessionQueue.objects.update(extracted_number=5)
        WorkingMemory.objects.update(left_number=3)
        said = " ".join(self.told(person))
        assert "swam" in said
        assert "豆豆" not in said

    @pytest.mark.parametrize(
        ("left", "first", "last", "told"),
        [(0, 1, 5, False), (0, 2, 3, False), (3, 1, 3, True), (3, 4, 5, False), (3, 3, 4, True)],
    )
    def test_an_episode_that_the_window_shows_whole_is_not_told(
        self, person: EndUser, talk: Session, left: int, first: int, last: int, told: bool
    ) -> None:
        WorkingMemory.objects.update(left_number=left)
        factories.episode(talk, "Spoke of a pet", first_number=first, last_number=last)
        for query in ("", "pet"):
            given = build(person, include=MESSAGES | {"episodes"}, query=query)
            assert ("Spoke of a pet" in given.memory) == told
        assert "Spoke of a pet" in build(person, include=frozenset({"episodes"})).memory

    def test_an_episode_of_another_session_with_the_same_numbers_is_told(self, person: EndUser, talk: Session) -> None:
        other = factories.session(person, TALK, session_id="s2", agent_id="vet")
        factories.episode(other, "Spoke of a pet", last_number=5)
        assert Episode.objects.get().session_id != talk.pk
        assert "Spoke of a pet" in build(person, include=MESSAGES | {"episodes"}).memory

    @pytest.mark.parametrize("query", ["quokka", ""])
    def test_a_turn_that_an_episode_says_comes_last(self, person: EndUser, query: str) -> None:
        other = factories.session(person, [("user", "My quokka swam."), ("user", "Cold.")], session_id="s2")
        swam, cold = (str(turn.pk) for turn in other.turns.order_by("number"))
        include = frozenset({"turns", "episodes"})
        asked = [one["id"] for one in build(person, include=include, query=query).items]
        assert asked == ([swam, cold] if query else [cold, swam])
        factories.episode(other, "My quokka swam.")
        assert [one["id"] for one in build(person, include=include, query=query).items][1:] == [cold, swam]

    @pytest.mark.parametrize("query", ["quokka", ""])
    def test_a_turn_that_an_episode_quotes_keeps_its_place(self, person: EndUser, query: str) -> None:
        """It says more than the sentence that was quoted."""
        said = [("user", "My quokka swam. Anna saw it."), ("user", "Cold.")]
        other = factories.session(person, said, session_id="s2")
        swam, cold = (str(turn.pk) for turn in other.turns.order_by("number"))
        asked = {"include": frozenset({"turns", "episodes"}), "query": query, "fill": "budget"}
        quoting = factories.episode(other, "My quokka swam.", extractor=EXTRACTIVE)
        places = [swam, cold] if query else [cold, swam]
        assert [one["id"] for one in build(person, **asked).items] == [str(quoting.pk), *places]
        Episode.objects.update(extractor="llm:test")
        assert [one["id"] for one in build(person, **asked).items][1:] == [cold, swam]


class TestSameAgain:
    def test_same_bytes_and_revision_whatever_the_budget(self, person: EndUser, talk: Session) -> None:
        factories.fact(person, "Has a quokka")
        for budget in (0, 50, 2_000):
            first, again = (build(person, include=EVERYTHING, max_tokens=budget, query="quokka") for _ in range(2))
            assert first == again
            assert first.revision == again.revision
            assert first.messages
            assert [one["content"] for one in first.messages[1:-4]] == ([first.memory] if first.memory else [])

    def test_a_new_turn_changes_the_revision(self, person: EndUser, talk: Session) -> None:
        before = build(person).revision
        post(person, [("user", "more")])
        assert build(person).revision != before
