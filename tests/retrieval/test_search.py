"""Search over a person's memories: what is found, in which order, for whom, at which cost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import OperationalError

from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.llm import embeddings
from memories.models import EndUser, Episode, Session, Turn
from memories.retrieval import episode_search, recalls
from memories.retrieval import search as retrieval
from memories.retrieval.search import Finding, SearchFilters, SearchRequest, SearchResult
from memories.scoring import dense, language, ranking
from memories.scoring.constants import DEFAULT
from memories.scoring.ranking import Query, Units
from tests import factories
from tests.database import reading_only, statements
from tests.factories import NOW
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
TALK = [
    ("user", "I moved to Leiden last spring, near the old canal."),
    ("assistant", "What a lovely place to live."),
    ("user", "My sister Ana runs a bakery there."),
    ("assistant", "Then you never run out of bread."),
]
CHINESE = [
    ("user", "我上个月开始学钢琴，每周三上课。"),
    ("assistant", "听起来不错！"),
    ("user", "我的猫叫豆豆，今年三岁。"),
]


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user(external_id="u1")
    factories.session(person, TALK, session_id="s1")
    factories.session(person, CHINESE, session_id="s2")
    return person


def search(person: EndUser, query: str, **over: Any) -> SearchResult:
    given: dict[str, Any] = {"kinds": ("turn",), "limit": 20, **over}
    asked = SearchRequest(user_id=person.external_id, query=query, **given)
    return retrieval.search(tenant=person.tenant, search=asked, now=NOW)


def texts(found: SearchResult) -> list[str]:
    return [one.text for one in found.results]


def first(person: EndUser, query: str, **over: Any) -> Finding:
    return search(person, query, **over).results[0]


class TestTurns:
    @pytest.mark.parametrize("with_vectors", [False, True])
    def test_the_turn_that_answers_comes_first(self, person: EndUser, with_vectors: bool) -> None:
        if with_vectors:
            embed_all(person)
        for query, said in (
            ("Who has a bakery?", "My sister Ana runs a bakery there."),
            ("Where did they go last spring?", TALK[0][1]),
            ("豆豆多大了？", CHINESE[2][1]),
            ("学什么乐器？", CHINESE[0][1]),
        ):
            assert first(person, query).text == said

    def test_an_english_question_finds_a_chinese_turn_by_meaning(self, person: EndUser) -> None:
        embed_all(person)
        assert first(person, "Which instrument is the user learning?").text == CHINESE[0][1]

    def test_a_turn_of_the_date_that_is_asked_for_comes_first(self, person: EndUser) -> None:
        for month in (5, 6, 7):
            post(person, f"m{month}", "We flew a kite", timestamp=datetime(2023, month, 20, tzinfo=UTC))
        asked = ["the kite", "the kite in June 2023", "the kite in July", "the kite in July 2022"]
        assert [first(person, query).session_id for query in asked] == ["m5", "m6", "m7", "m5"]
        (day,) = search(person, "20 June 2023", kinds=("session",), limit=1).results
        assert (day.session_id, day.score_parts["context"]) == ("m6", DEFAULT.day_of_turn)

    def test_a_turn_is_told_whole(self, person: EndUser) -> None:
        factories.session(person, [("user", "Penicillin makes me sick")], session_id="s3", agent_id="nurse")
        turn = Turn.objects.get(content__startswith="Penicillin")
        found = first(person, "penicillin")
        assert (found.kind, found.id, found.session_id, found.agent_id) == ("turn", turn.pk, "s3", "nurse")
        assert (found.turn_numbers, found.role, found.created_at) == ([1], "user", turn.created_at)
        assert found.score == pytest.approx(sum(found.score_parts.values()), abs=1e-4)

    def test_found_by_words_as_soon_as_it_is_stored(self, person: EndUser) -> None:
        embed_all(person)
        assert "quokka" not in first(person, "quokka").text
        factories.session(person, [("user", "I saw a quokka")], session_id="s1-b")
        post(person, "s1", "Another quokka in the old session")
        assert {one.session_id for one in search(person, "quokka", limit=2).results} == {"s1-b", "s1"}

    def test_hidden_and_system_turns_are_not_found(self, person: EndUser) -> None:
        post(person, "s1", "quokka for all to see")
        post(person, "s1", "quokka hidden", metadata={"hide_from_ui": True})
        post(person, "s1", "quokka of the system", role="system")
        found = [text for text in texts(search(person, "quokka")) if "quokka" in text]
        assert found == ["quokka for all to see"]

    def test_always_as_many_as_asked_for_while_there_are(self, person: EndUser) -> None:
        assert len(search(person, "zzz", limit=5).results) == 5
        assert len(search(person, "zzz", limit=100).results) == len(TALK) + len(CHINESE)

    def test_a_deleted_session_is_not_found(self, person: EndUser) -> None:
        embed_all(person)
        assert first(person, "bakery").session_id == "s1"
        Session.objects.get(external_id="s1").delete()
        assert {one.session_id for one in search(person, "bakery").results} == {"s2"}

    def test_the_order_is_that_of_a_search_through_all(self, person: EndUser) -> None:
        space = embed_all(person)
        turns = list(Turn.objects.filter(end_user=person).order_by("session__created_at", "session", "number"))
        units = Units.of(
            sessions=np.array([0] * len(TALK) + [1] * len(CHINESE), np.int32),
            packed=[bytes(turn.terms or b"") for turn in turns],
            vectors=np.array([turn.vectors.get().vector for turn in turns], np.float32),
            languages=[language.of(turn.content) for turn in turns],
            blocks=dense.blocks(space.model, space.dimensions),
        )
        query = "Where does Ana bake?"
        scores = ranking.score(units, [Query.of(query, embeddings.embed_queries([query], model=space.model)[0])])
        expected = [turns[place].pk for place in ranking.best_first(scores.total, 20)]
        assert [one.id for one in search(person, query).results] == expected


class TestSessions:
    def test_a_session_is_its_best_turn_and_a_share_of_the_others(self, person: EndUser) -> None:
        found = search(person, "bakery", kinds=("session",)).results
        assert [one.session_id for one in found] == ["s1", "s2"]
        assert (found[0].kind, found[0].turn_numbers, found[0].text) == ("session", [3], TALK[2][1])
        best, *others = search(person, "bakery", kinds=("turn",), filters=SearchFilters(session_id="s1")).results
        expected = 0.1 * sum(max(0.0, one.score) for one in others[:3])
        assert expected > 0
        assert found[0].score_parts == best.score_parts | {"others": pytest.approx(expected, abs=1e-5)}
        assert found[0].score == pytest.approx(best.score + expected, abs=1e-5)
        assert found[0].id == Session.objects.get(external_id="s1").pk


class TestFilters:
    def test_by_session_and_agent(self, person: EndUser) -> None:
        factories.session(person, [("user", "The bakery again")], session_id="s1", agent_id="nurse")
        assert len(search(person, "bakery", filters=SearchFilters(session_id="s1")).results) == len(TALK) + 1
        assert texts(search(person, "bakery", filters=SearchFilters(agent_id="nurse"))) == ["The bakery again"]
        assert search(person, "bakery", filters=SearchFilters(session_id="s2", agent_id="nurse")).results == []

    def test_by_the_time_at_which_it_was_said(self, person: EndUser) -> None:
        post(person, "s9", "bakery in spring", timestamp=NOW - timedelta(days=200))
        old = SearchFilters(until=NOW - timedelta(days=100))
        assert texts(search(person, "bakery", filters=old)) == ["bakery in spring"]
        new = SearchFilters(since=NOW - timedelta(days=100))
        assert "bakery in spring" not in texts(search(person, "bakery", filters=new))
        exactly = SearchFilters(since=NOW - timedelta(days=200), until=NOW - timedelta(days=199))
        assert texts(search(person, "bakery", filters=exactly)) == ["bakery in spring"]


class TestFacts:
    def test_the_fact_that_answers_comes_first(self, person: EndUser) -> None:
        factories.fact(person, "Lives in Leiden, near the canal")
        factories.fact(person, "对青霉素过敏", category="constraint")
        embed_all(person)
        assert first(person, "Where is home?", kinds=("fact",)).text == "Lives in Leiden, near the canal"
        assert first(person, "能吃青霉素吗", kinds=("fact",)).text == "对青霉素过敏"

    def test_with_its_evidence_and_parts(self, person: EndUser) -> None:
        fact = factories.fact(person, "Ana runs a bakery", tags=["family"], category="relationship")
        factories.evidence(fact, Turn.objects.get(session__external_id="s1", number=3), "runs a bakery")
        found = first(person, "bakery", kinds=("fact",))
        assert (found.id, found.category, found.tags, found.confidence) == (fact.pk, "relationship", ["family"], 0.9)
        assert [(one.session_id, one.turn_number, one.quote) for one in found.evidence] == [("s1", 3, "runs a bakery")]
        assert (found.session_id, found.turn_numbers) == ("s1", [3])
        assert set(found.score_parts) == {"vector", "lexical", "confidence", "decay", "recency"}

    def test_what_may_not_be_served_is_not_found(self, person: EndUser) -> None:
        """The whole rule is in test_visible_facts.py."""
        shown = factories.fact(person, "A quokka, shown")
        hidden: list[dict[str, Any]] = [{"status": "pending"}, {"confidence": 0.5}, {"allowed_users": ["u2"]}]
        for over in hidden:
            factories.fact(person, f"A quokka, hidden: {over}", **over)
        assert [one.id for one in search(person, "quokka", kinds=("fact",)).results] == [shown.pk]

    def test_narrowed_by_category_tags_and_session(self, person: EndUser) -> None:
        fact = factories.fact(person, "Ana runs a bakery", tags=["family", "food"], category="relationship")
        factories.fact(person, "Likes bread", category="preference", tags=["food"])
        factories.evidence(fact, Turn.objects.get(session__external_id="s1", number=3))
        for filters in (
            SearchFilters(category="relationship"),
            SearchFilters(tags=["food", "family"]),
            SearchFilters(session_id="s1"),
        ):
            assert [one.id for one in search(person, "bread", kinds=("fact",), filters=filters).results] == [fact.pk]

    def test_a_corrected_fact_is_found_by_its_new_words_only(self, person: EndUser) -> None:
        fact = factories.fact(person, "Lives in Leiden")
        embed_all(person)
        fact.set_text("Keeps a quokka")
        fact.save()
        found = first(person, "quokka", kinds=("fact",))
        assert found.score_parts["lexical"] > 1
        # Its vector is that of the old text: not used until it has one of its own.
        assert found.score_parts["vector"] == 0
        embed_all(person)
        assert first(person, "quokka", kinds=("fact",)).score_parts["vector"] > 0

    def test_kinds_share_the_room(self, person: EndUser) -> None:
        factories.fact(person, "Ana runs a bakery")
        found = search(person, "bakery", kinds=("fact", "turn", "session"), limit=3).results
        assert sorted(one.kind for one in found) == ["fact", "session", "turn"]
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


class TestEpisodes:
    @pytest.fixture(autouse=True)
    def _episodes(self, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of more than two an index is kept."""
        monkeypatch.setattr(episode_search, "FEW", 2)
        first, second = Session.objects.order_by("external_id")
        factories.episode(first, "Told of the move to Leiden and of Ana's bakery", last_number=4, key_topics=["moving"])
        factories.episode(second, "聊了学钢琴和猫豆豆", last_number=3, actions_taken=["推荐了练习曲"])

    @pytest.mark.parametrize("with_vectors", [False, True])
    def test_the_episode_that_answers_comes_first(self, person: EndUser, with_vectors: bool) -> None:
        if with_vectors:
            embed_all(person)
        for query, summary in (
            ("Where is the bakery?", "Told of the move to Leiden and of Ana's bakery"),
            ("moving", "Told of the move to Leiden and of Ana's bakery"),
            ("她的猫叫什么", "聊了学钢琴和猫豆豆"),
            ("练习曲", "聊了学钢琴和猫豆豆"),
        ):
            assert first(person, query, kinds=("episode",)).text == summary

    def test_an_english_question_finds_a_chinese_episode_by_meaning(self, person: EndUser) -> None:
        embed_all(person)
        assert first(person, "Which instrument is the user learning?", kinds=("episode",)).text.startswith("聊了")

    def test_with_its_range_and_parts(self, person: EndUser) -> None:
        Session.objects.filter(external_id="s1").update(agent_id="nurse")
        found = first(person, "bakery", kinds=("episode",))
        told = Episode.objects.get(session__external_id="s1")
        assert (found.kind, found.id, found.session_id, found.agent_id) == ("episode", told.pk, "s1", "nurse")
        assert (found.turn_numbers, found.created_at, found.confidence) == ([1, 4], told.ended_at, None)
        assert [(one.session_id, one.turn_number, one.quote) for one in found.evidence] == [
            ("s1", 1, ""),
            ("s1", 4, ""),
        ]
        assert set(found.score_parts) == {"vector", "lexical", "confidence", "decay", "recency"}
        assert found.score_parts["confidence"] == pytest.approx(told.quality)

    def test_quality_decay_and_recency_settle_what_is_equally_near(self, person: EndUser) -> None:
        talk = factories.session(person, [("user", str(n)) for n in range(4)])
        over: list[dict[str, Any]] = [{}, {"quality": 0.5}, {"importance": 0.4}, {"now": NOW - timedelta(days=25)}]
        made = [
            factories.episode(talk, "Saw a quokka", first_number=place, last_number=place, **given)
            for place, given in enumerate(over, start=1)
        ]
        found = [one.id for one in search(person, "quokka", kinds=("episode",), limit=4).results]
        assert found[0] == made[0].pk
        assert set(found[1:]) == {one.pk for one in made[1:]}

    def test_gates(self, person: EndUser) -> None:
        gates: list[tuple[dict[str, Any], bool]] = [
            ({}, True),
            ({"importance": 0.31}, True),
            ({"importance": 0.3}, False),
            ({"status": "pending"}, False),
            ({"status": "trashed"}, False),
            ({"expires_at": NOW}, False),
            ({"expires_at": NOW + timedelta(seconds=1)}, True),
            # 0.6 has halved 30 + 90 days later.
            ({"now": NOW - timedelta(days=119)}, True),
            ({"now": NOW - timedelta(days=121)}, False),
            ({"now": NOW - timedelta(days=121), "last_recalled_at": NOW - timedelta(days=20)}, True),
            ({"now": NOW - timedelta(days=121), "pinned": True}, True),
            ({"now": NOW - timedelta(days=121), "binding": True}, True),
            ({"now": NOW + timedelta(days=400)}, True),
        ]
        talk = factories.session(person, [("user", "quokka")])
        for number, (over, _) in enumerate(gates):
            factories.episode(talk, f"Saw quokka {number}", first_number=number + 1, last_number=number + 1, **over)
        found = {text for text in texts(search(person, "quokka", kinds=("episode",))) if "quokka" in text}
        assert found == {f"Saw quokka {number}" for number, (_, served) in enumerate(gates) if served}

    def test_filters(self, person: EndUser) -> None:
        for filters, count in (
            (SearchFilters(session_id="s1"), 1),
            (SearchFilters(session_id="s3"), 0),
            (SearchFilters(agent_id="nurse"), 0),
            (SearchFilters(since=NOW), 2),
            (SearchFilters(since=NOW + timedelta(seconds=1)), 0),
            (SearchFilters(until=NOW + timedelta(seconds=1)), 2),
            (SearchFilters(until=NOW), 0),
            (SearchFilters(category="goal"), 0),
            (SearchFilters(tags=["food"]), 0),
        ):
            assert len(search(person, "bakery", kinds=("episode",), filters=filters).results) == count, filters

    def test_a_changed_episode_is_found_by_its_new_words_only(self, person: EndUser) -> None:
        embed_all(person)
        assert first(person, "quokka", kinds=("episode",)).score_parts["lexical"] == 0
        told = Episode.objects.get(session__external_id="s1")
        told.set_text("Keeps a quokka")
        told.save()
        found = first(person, "quokka", kinds=("episode",))
        # Its vector is that of the old text: not used until it has one of its own.
        assert (found.id, found.score_parts["vector"]) == (told.pk, 0)
        embed_all(person)
        assert first(person, "quokka", kinds=("episode",)).score_parts["vector"] > 0

    def test_only_when_asked_for_and_counted(self, person: EndUser) -> None:
        asked = SearchRequest(user_id=person.external_id, query="bakery", explain=True)
        found = retrieval.search(tenant=person.tenant, search=asked, now=NOW)
        assert {one.kind for one in found.results} == {"turn"}
        explained = search(person, "bakery", kinds=("episode",), explain=True).explanation
        assert explained
        assert explained.searched == {"episode": 2}

    def test_what_is_found_is_noted_as_recalled(self, person: EndUser) -> None:
        known = factories.fact(person, "Knows a bakery")
        recalls._buffer.take()
        found = search(person, "bakery", kinds=("fact", "turn", "session"), limit=3).results
        assert len(found) == 3
        assert recalls._buffer.take() == {("fact", known.pk): NOW}
        [told] = search(person, "bakery", kinds=("episode",), limit=1).results
        assert recalls._buffer.take() == {("episode", told.id): NOW}

    def test_one_statement_more_and_none_where_there_are_none(self, person: EndUser) -> None:
        embed_all(person)

        def cost(*kinds: str) -> int:
            search(person, "bakery", kinds=kinds)
            return len(statements(lambda: search(person, "bakery", kinds=kinds)))

        assert cost("turn", "episode") == cost("turn") + 1
        Episode.objects.update(status="trashed")
        assert cost("turn", "episode") == cost("turn")


class TestWhom:
    def test_nothing_of_anybody_else(self, person: EndUser) -> None:
        other = factories.end_user(person.tenant, external_id="u2")
        twin = factories.end_user(external_id="u1")
        for somebody in (other, twin):
            talk = factories.session(somebody, [("user", "bakery of somebody else")])
            factories.fact(somebody, "bakery fact of somebody else")
            factories.episode(talk, "bakery episode of somebody else")
            embed_all(somebody)
        factories.episode(Session.objects.get(external_id="s1"), "Own")
        embed_all(person)
        found = search(person, "bakery of somebody else", kinds=("fact", "episode", "turn", "session"))
        assert found.results
        assert not any("somebody" in one.text for one in found.results)
        assert "somebody" in first(twin, "bakery of somebody else").text

    def test_nobody_known(self, person: EndUser) -> None:
        found = retrieval.search(tenant=person.tenant, search=SearchRequest(user_id="nobody", query="x"), now=NOW)
        assert (found.results, found.restricted, found.serve) == ([], False, True)

    def test_restricted_and_switched_off(self, person: EndUser) -> None:
        assert search(person, "bakery").results
        EndUser.objects.update(serve=False)
        assert search(person, "bakery") == SearchResult(serve=False)
        EndUser.objects.update(serve=True, restricted_at=NOW)
        assert search(person, "bakery") == SearchResult(restricted=True)


class TestCost:
    def test_statements_do_not_grow_with_what_there_is(self, person: EndUser) -> None:
        def cost() -> int:
            return len(statements(lambda: search(person, "bakery", kinds=("fact", "turn", "session"))))

        factories.fact(person, "Ana runs a bakery")
        embed_all(person)
        once, again = cost(), cost()
        assert again == once - 4  # the turns, the facts and the vectors of both are kept
        for number in range(3):
            factories.session(person, TALK, session_id=f"more-{number}")
            factories.fact(person, f"Fact {number}")
        embed_all(person)
        assert cost() == once
        assert cost() == again <= 9

    def test_reading_writes_nothing(self, person: EndUser) -> None:
        embed_all(person)
        factories.fact(person, "Ana runs a bakery")
        with reading_only():
            assert search(person, "bakery", kinds=("fact", "turn")).results
        with reading_only(), pytest.raises(OperationalError):
            EndUser.objects.update(serve=True)


class TestExplain:
    def test_how_the_query_was_read(self, person: EndUser) -> None:
        assert search(person, "bakery").explanation is None
        by_words = search(person, "Bakeries in 莱顿", explain=True).explanation
        assert by_words
        assert (by_words.embedding_model, by_words.searched) == (None, {"turn": 7})
        assert "bakeri" in by_words.terms
        embed_all(person)
        by_meaning = search(person, "bakery", explain=True, kinds=("fact", "session")).explanation
        assert by_meaning
        assert (by_meaning.embedding_model, by_meaning.searched) == ("use-multilingual-3", {"fact": 0, "session": 2})


def post(person: EndUser, session_id: str, text: str, role: str = "user", **over: Any) -> None:
    ingest.store_turns(
        tenant=person.tenant,
        user_id=person.external_id,
        session_id=session_id,
        agent_id="",
        messages=[PostedMessage(role=role, content=text, **over)],
    )
