"""Vectors in the background: which texts, in which order, whatever happens meanwhile."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings
from django.db import connection
from django.db.models.functions import Now

from memories.curation.sessions import delete_session
from memories.embedding import spaces, vectors
from memories.embedding.batching import Round
from memories.llm import embeddings
from memories.llm.backends import hashed_embeddings, openai_client
from memories.models import EmbeddingSpace, EndUser, Episode, EpisodeVector, Fact, FactVector, Session, Turn, TurnVector
from memories.retrieval.prepared_query import prepare
from tests import factories
from tests.database import at_once, blocked, elsewhere, held, statements
from tests.llm import endpoint as at
from tests.llm.endpoint import Endpoint, running
from tests.llm.vectors_endpoint import altered, refuses, sends_vectors

races = pytest.mark.django_db(transaction=True)


@pytest.fixture
def endpoint(settings: LazySettings) -> Iterator[Endpoint]:
    with running() as endpoint:
        settings.MEMORYHUB_EMBEDDINGS = "openai"
        settings.MEMORYHUB_EMBEDDING_BASE_URL = endpoint.url
        endpoint.responds(sends_vectors())
        # What is kept is used during a pause.
        embeddings._queries.clear()
        yield endpoint
    openai_client.client_of.cache_clear()


def embed_all() -> int:
    """Until nothing is left that can be done; how many texts were embedded."""
    total, done = 0, vectors.embed_some()
    while done.moved:
        total += done.embedded
        done = vectors.embed_some()
    return total


def numbers(session: Session) -> list[int]:
    return list(TurnVector.objects.filter(session=session).order_by("number").values_list("number", flat=True))


def resume() -> None:
    """Let the pause of the endpoint be over."""
    EmbeddingSpace.objects.update(paused_until=Now() - timedelta(seconds=1))


@pytest.mark.django_db
def test_the_vector_of_a_turn_is_of_what_it_tells_beside_its_code() -> None:
    block = "```\nfor row in rows:\n    print(row)\n```"
    told = f"Why is the export slow?\n{block}"
    session = factories.session(factories.end_user(), [("user", told), ("user", block), ("user", "rows ```print```")])
    embed_all()
    found = [row.vector for row in TurnVector.objects.filter(session=session).order_by("number")]
    # A turn that is all code is embedded as it is.
    expected = embeddings.embed(["Why is the export slow?", block, "rows ```print```"])
    assert np.einsum("ij,ij->i", found, expected) == pytest.approx(1, abs=1e-3)


@pytest.mark.django_db
def test_every_text_that_can_be_found_gets_its_vector() -> None:
    person = factories.end_user()
    roles = [("user", "你好"), ("system", "Be kind."), ("tool", "{}"), ("assistant", " \u3000\n"), ("user", "Bye")]
    session = factories.session(person, roles)
    known, waiting = factories.fact(person), factories.fact(person, "Likes tea", status="pending")
    factories.fact(person, "Gone", status="trashed")
    told = factories.episode(session, "问候与告别", key_topics=["问候"])
    poor = factories.episode(session, "Poor, and pending", first_number=2, last_number=2, status="pending")
    factories.episode(session, "Gone", first_number=3, last_number=3, status="trashed")
    assert vectors.pending_texts(person) == 7
    assert embed_all() == 7
    assert numbers(session) == [1, 3, 5]
    assert [row.language for row in TurnVector.objects.order_by("number")] == ["zh", "en", "en"]
    assert set(FactVector.objects.values_list("fact", flat=True)) == {known.pk, waiting.pk}
    assert set(EpisodeVector.objects.values_list("episode", "language")) == {(told.pk, "zh"), (poor.pk, "en")}
    assert vectors.pending_texts(person) == 0
    row = TurnVector.objects.get(number=1)
    assert (row.tenant_id, row.end_user_id, row.turn.content) == (person.tenant_id, person.pk, "你好")
    assert np.allclose(np.array(row.vector), embeddings.embed(["你好"])[0], atol=1e-3)


@pytest.mark.django_db
def test_the_rule_is_the_same_in_sql_and_in_python() -> None:
    person = factories.end_user()
    session = factories.session(person, [(role, text) for role in ("user", "system") for text in ("a", " \u200b ", "")])
    first = Turn.objects.filter(session=session).first()
    assert first
    for metadata in ({"hide_from_ui": True}, {"hide_from_ui": "true"}, {"hide_from_ui": False, "a": 1}):
        Turn.objects.filter(pk=first.pk).update(metadata=metadata)
        everything = list(Turn.objects.filter(session=session))
        found = set(Turn.objects.searchable().values_list("pk", flat=True))
        assert found == {turn.pk for turn in everything if turn.is_searchable}
        assert (first.pk in found) == (metadata["hide_from_ui"] is not True)


@pytest.mark.django_db
def test_an_idle_look_is_one_statement_and_a_post_costs_none_more() -> None:
    factories.session(factories.end_user())
    embed_all()
    assert len(statements(vectors.embed_some)) == 1


@pytest.mark.django_db
def test_the_look_is_served_by_partial_indexes() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        for rows in (Session.objects.unembedded().order_by("-last_turn_at"), Fact.objects.order_by("-updated_at")):
            assert ("unembedded_idx" in rows.explain()) == (rows.model is Session)
        for kind in (Fact, Episode):
            assert "unembedded_idx" in kind.objects.unembedded().order_by("-updated_at").explain()


@pytest.mark.django_db
def test_a_long_session_is_done_in_order_and_bounded_batches() -> None:
    session = factories.session(factories.end_user(), [("user", f"text {n}") for n in range(150)])
    vectors.embed_some()
    done = [vectors.embed_some().embedded for _ in range(4)]
    assert done == [64, 64, 22, 0]
    assert numbers(session) == list(range(1, 151))


@pytest.mark.django_db
def test_what_was_said_last_goes_first() -> None:
    person = factories.end_user()
    old, new = (factories.session(person, [("user", "a")] * 64) for _ in range(2))
    Session.objects.filter(pk=old.pk).update(last_turn_at=Now() - timedelta(hours=1))
    vectors.embed_some()
    vectors.embed_some()
    assert (len(numbers(old)), len(numbers(new))) == (0, 64)


@pytest.mark.django_db
def test_a_fact_whose_text_changes_gets_another_vector() -> None:
    known = factories.fact(factories.end_user())
    embed_all()
    before = FactVector.objects.get()
    known.set_text("Lives in Utrecht")
    known.save()
    assert embed_all() == 1
    after = FactVector.objects.get()
    assert (after.pk, bytes(after.text_digest)) == (before.pk, bytes(known.content_hash))
    assert not np.allclose(after.vector, before.vector)


@pytest.mark.django_db
def test_an_episode_is_embedded_with_its_lists_and_anew_when_one_changes() -> None:
    told = factories.episode(factories.session(factories.end_user()), "Paid", key_topics=["invoice"], outcomes=["done"])
    embed_all()
    before = EpisodeVector.objects.get()
    assert np.allclose(np.array(before.vector), embeddings.embed(["Paid\ninvoice\ndone"])[0], atol=1e-3)
    told.outcomes = ["refused"]
    told.set_text(told.summary)
    told.save()
    assert embed_all() == 1
    after = EpisodeVector.objects.get()
    assert (after.pk, bytes(after.text_digest)) == (before.pk, bytes(told.content_hash))
    assert not np.allclose(after.vector, before.vector)


@pytest.mark.django_db
def test_a_fact_saved_by_somebody_who_read_it_before_is_still_right() -> None:
    known = factories.fact(factories.end_user())
    embed_all()
    # Read before it was embedded: a save of all fields takes the mark back, and it is made again.
    known.save()
    assert embed_all() == 1
    assert FactVector.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("respond", [at.fails(500), altered(embedding=[1.0])])
def test_an_endpoint_that_fails_is_paused_and_caught_up_with(endpoint: Endpoint, respond: Any) -> None:
    person = factories.end_user()
    factories.session(person, [("user", "a")])
    embed_all()
    session = factories.session(person, [("user", "b"), ("user", "c")])
    endpoint.responds(respond)
    failed = vectors.embed_some()
    assert failed.failure
    asked = len(endpoint.requests)
    assert vectors.embed_some() == Round()
    assert prepare("anything").embedding_model is None
    assert len(endpoint.requests) == asked
    assert (numbers(session), vectors.pending_texts(person)) == ([], 2)
    endpoint.responds(sends_vectors())
    resume()
    assert embed_all() == 2
    assert (numbers(session), vectors.pending_texts(person)) == ([1, 2], 0)
    space = EmbeddingSpace.objects.get()
    assert (space.failures, space.failure, space.paused_until) == (0, "", None)
    assert prepare("anything").embedding_model is not None


@pytest.mark.django_db
def test_the_pause_grows_and_a_wait_that_is_asked_for_is_kept(endpoint: Endpoint) -> None:
    factories.session(factories.end_user(), [("user", "a")])
    embed_all()
    factories.session(factories.end_user(), [("user", "b")])
    endpoint.responds(at.fails(429, Retry_After="90"))
    vectors.embed_some()
    space = EmbeddingSpace.objects.with_clock().get()
    assert space.paused_until
    assert 80 < (space.paused_until - space.clock).total_seconds() <= 90
    assert [spaces.pause_after(n) for n in (1, 2, 3, 9)] == [1, 2, 4, 30]


@pytest.mark.django_db
@pytest.mark.parametrize("respond", [refuses("bad"), at.fails(400)])
def test_a_text_that_is_refused_does_not_stop_the_others(endpoint: Endpoint, respond: Any) -> None:
    person = factories.end_user()
    factories.session(person, [("user", "first")])
    embed_all()
    session = factories.session(person, [("user", f"good {n}") for n in range(10)] + [("user", "a bad one")])
    factories.fact(person, "a bad fact")
    endpoint.responds(respond)
    if not vectors.embed_some().failure:
        assert numbers(session) == list(range(1, 11))
        assert EmbeddingSpace.objects.get().refused == 2
        assert vectors.pending_texts(person) == 0
        assert not FactVector.objects.exists()
    else:
        # All of them, and a harmless word too: that is the endpoint's fault.
        assert (numbers(session), vectors.pending_texts(person)) == ([], 12)


@pytest.mark.django_db
def test_a_call_to_an_endpoint_holds_one_persons_texts(endpoint: Endpoint) -> None:
    for name in ("anna", "bert"):
        factories.session(factories.end_user(), [("user", f"{name} one"), ("user", f"{name} two")])
    embed_all()
    for request in endpoint.requests:
        assert len({text.split()[0] for text in request["input"]}) == 1


@pytest.mark.django_db
def test_words_alone_while_another_model_is_configured(settings: LazySettings, endpoint: Endpoint) -> None:
    person = factories.end_user()
    factories.session(person, [("user", "a")])
    embed_all()
    settings.MEMORYHUB_EMBEDDINGS = "hashed"
    factories.session(person, [("user", "b")])
    assert embed_all() == 0
    assert prepare("a").embedding_model is None
    assert EmbeddingSpace.objects.count() == 1


@pytest.mark.django_db
def test_a_query_is_asked_in_the_serving_space() -> None:
    assert prepare("early").embedding_model is None
    factories.session(factories.end_user(), [("user", "tea")])
    embed_all()
    asked = prepare("tea")
    assert asked.embedding_model == "hashed"
    assert asked.queries[0].vector is not None
    assert asked.queries[0].vector @ np.array(TurnVector.objects.get().vector) == pytest.approx(1, abs=1e-3)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Have something happen once, elsewhere, while texts are embedded."""

    def arrange(work: Callable[[], Any]) -> None:
        real, ran = hashed_embeddings.embed, threading.Event()

        def embed(*given: Any) -> Any:
            if not ran.is_set():
                ran.set()
                elsewhere(work)
            return real(*given)

        monkeypatch.setattr(hashed_embeddings, "embed", embed)

    return arrange


def space_made() -> EmbeddingSpace:
    return spaces.first_space()


@races
def test_a_session_deleted_meanwhile_leaves_nothing(between: Callable[[Callable[[], Any]], None]) -> None:
    space_made()
    session, other = factories.session(factories.end_user()), factories.session(factories.end_user())
    between(lambda: delete(session))
    assert vectors.embed_some().embedded == 1
    assert (numbers(session), numbers(other)) == ([], [1])


@races
def test_a_session_deleted_afterwards_takes_its_vectors_along() -> None:
    session = factories.session(factories.end_user())
    embed_all()
    assert numbers(session) == [1]
    delete(session)
    assert not TurnVector.objects.exists()


@races
def test_nothing_is_written_for_a_person_erased_meanwhile(between: Callable[[Callable[[], Any]], None]) -> None:
    space_made()
    person = factories.end_user()
    session, known = factories.session(person), factories.fact(person)
    between(lambda: EndUser.objects.filter(pk=person.pk).update(generation=2))
    vectors.embed_some()
    assert known.pk not in FactVector.objects.values_list("fact", flat=True)
    factories.episode(session)
    between(lambda: EndUser.objects.filter(pk=person.pk).delete())
    vectors.embed_some()
    assert (numbers(session), FactVector.objects.count(), EpisodeVector.objects.count()) == ([], 0, 0)


@races
def test_an_episode_of_a_person_erased_meanwhile_gets_no_vector(between: Callable[[Callable[[], Any]], None]) -> None:
    space_made()
    person = factories.end_user()
    factories.episode(factories.session(person))
    between(lambda: EndUser.objects.filter(pk=person.pk).update(generation=2))
    vectors.embed_some()
    assert not EpisodeVector.objects.exists()
    # The control: with nothing in between it gets one.
    embed_all()
    assert EpisodeVector.objects.count() == 1


@races
def test_a_fact_changed_meanwhile_waits_for_its_new_text(between: Callable[[Callable[[], Any]], None]) -> None:
    space_made()
    known = factories.fact(factories.end_user())

    def change() -> None:
        fact = Fact.objects.get(pk=known.pk)
        fact.set_text("Lives in Utrecht")
        fact.save()

    between(change)
    assert vectors.embed_some().embedded == 0
    assert embed_all() == 1
    assert bytes(FactVector.objects.get().text_digest) == bytes(Fact.objects.get().content_hash)


@races
def test_turns_that_come_meanwhile_are_next(between: Callable[[Callable[[], Any]], None]) -> None:
    space_made()
    person = factories.end_user()
    session = factories.session(person, session_id="s")
    between(lambda: factories.session(EndUser.objects.get(pk=person.pk), [("user", "more")], session_id="s"))
    assert vectors.embed_some().embedded == 1
    assert vectors.pending_texts(person) == 1
    assert embed_all() == 1
    assert numbers(session) == [1, 2]


@races
def test_two_embedders_leave_one_vector_each() -> None:
    space_made()
    for _ in range(5):
        factories.session(factories.end_user(), [("user", f"text {n}") for n in range(30)])
    assert all(not isinstance(outcome, Exception) for outcome in at_once(3, lambda _: embed_all()))
    embed_all()
    assert TurnVector.objects.count() == 150
    assert not Session.objects.unembedded().exists()


@races
def test_a_session_that_is_held_does_not_stop_the_others() -> None:
    space_made()
    hot, other = factories.session(factories.end_user()), factories.session(factories.end_user())
    with held(lambda: Session.objects.select_for_update().get(pk=hot.pk)):
        done = vectors.embed_some()
        assert done.held == {hot.pk}
        assert (numbers(hot), numbers(other)) == ([], [1])
    assert vectors.embed_some(passing_over=[hot.pk]).moved == 0
    assert embed_all() == 1


@races
def test_a_post_to_the_session_is_waited_for() -> None:
    space_made()
    session = factories.session(factories.end_user())
    with held(lambda: Session.objects.select_for_update(no_key=True).get(pk=session.pk)):
        waiting = blocked(vectors.embed_some)
    assert waiting.result(10).embedded == 1


@races
def test_one_embedder_is_in_charge() -> None:
    with held(lambda: spaces.try_lock(spaces.EMBEDDING)) as mine:
        assert mine
        assert not elsewhere(lambda: spaces.try_lock(spaces.EMBEDDING))
    # The connection is gone, and the lock with it.
    assert elsewhere(lambda: spaces.try_lock(spaces.EMBEDDING))


def delete(session: Session) -> None:
    delete_session(session_id=session.pk, tenant=session.tenant, actor=factories.COMMAND, now=factories.NOW)
