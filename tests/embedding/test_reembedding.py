"""Changing the embedding model while the hub serves."""

from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.db.models import Q

from memories.embedding import reembedding, spaces, vectors
from memories.exceptions import EmbeddingUnavailable, ReembedRunning, ReembedUnfinished
from memories.llm import embeddings
from memories.management.commands import reembed as command
from memories.models import EmbeddingSpace, EndUser, EpisodeVector, Fact, FactVector, Session, TurnVector
from memories.models.keyset import beyond
from memories.retrieval.prepared_query import prepare
from tests import factories
from tests.database import elsewhere, held

USE = "use-multilingual-3"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def person() -> EndUser:
    """With texts in the space of the hashed model."""
    person = factories.end_user()
    talk = factories.session(person, [("user", f"text {n}") for n in range(70)], session_id="s")
    factories.fact(person)
    factories.episode(talk)
    embed_all()
    return person


def embed_all() -> None:
    while vectors.embed_some().moved:
        """Until nothing is left."""


def serving() -> str:
    return EmbeddingSpace.objects.serving().get().model


def test_everything_moves_to_the_new_space(person: EndUser) -> None:
    assert serving() == "hashed"
    rebuild = reembedding.reembed(model=USE)
    assert rebuild
    assert (rebuild.embedded, serving()) == (72, USE)
    old = EmbeddingSpace.objects.get(model="hashed")
    assert TurnVector.objects.filter(space=old).count() == 70
    assert reembedding.clear_retired() == 72
    assert set(TurnVector.objects.values_list("space__model", flat=True)) == {USE}
    assert FactVector.objects.get().space.model == EpisodeVector.objects.get().space.model == USE
    asked = prepare("text 7").queries[0].vector
    assert asked is not None
    assert asked.shape == (512,)
    best = max(TurnVector.objects.all(), key=lambda row: float(np.array(row.vector) @ asked))
    assert best.number == 8
    assert vectors.pending_texts(person) == 0


def test_what_serves_already_is_left_alone(person: EndUser) -> None:
    assert reembedding.reembed(model="hashed") is None
    assert reembedding.reembed(model=USE) is not None


def test_there_and_back(person: EndUser, settings: LazySettings) -> None:
    for model in (USE, "hashed", USE):
        assert reembedding.reembed(model=model)
        reembedding.clear_retired()
        assert serving() == model
        assert (TurnVector.objects.count(), FactVector.objects.count(), EpisodeVector.objects.count()) == (70, 1, 1)


def test_texts_that_come_meanwhile_are_in_the_new_space(person: EndUser) -> None:
    came: list[int] = []

    def come(done: int) -> None:
        """A turn and another text of the fact, embedded in the old space while the new one is filled."""
        if not came:
            came.append(done)
            elsewhere(everything)

    def everything() -> None:
        post(person)
        change()
        embed_all()

    rebuild = reembedding.reembed(model=USE, report=come)
    assert rebuild
    assert came == [64]
    space = rebuild.space
    assert TurnVector.objects.filter(space=space).count() == 71
    assert bytes(FactVector.objects.get(space=space).text_digest) == bytes(Fact.objects.get().content_hash)


def test_texts_that_come_and_wait_get_the_new_vectors_alone(person: EndUser) -> None:
    posted: list[int] = []

    def come(done: int) -> None:
        if not posted:
            posted.append(done)
            elsewhere(lambda: post(person))

    reembedding.reembed(model=USE, report=come)
    assert vectors.pending_texts(person) == 1
    embed_all()
    assert TurnVector.objects.filter(space__model=USE).count() == 71
    assert TurnVector.objects.filter(space__model="hashed").count() == 70


def test_the_embedder_writes_nothing_while_the_switch_is_under_way(person: EndUser) -> None:
    post(person)
    with held(lambda: spaces._locked("pg_try_advisory_lock", spaces.SWITCHING)):
        assert vectors.embed_some().moved == 0
    embed_all()
    assert TurnVector.objects.count() == 71


def test_a_batch_of_the_old_space_comes_too_late(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    post(person)
    real = embeddings.embed
    switched: list[Any] = []

    def embed(*given: Any, **named: Any) -> Any:
        if not switched:
            switched.append(True)
            switched.append(elsewhere(lambda: reembedding.reembed(model=USE)))
        return real(*given, **named)

    monkeypatch.setattr(embeddings, "embed", embed)
    assert vectors.embed_some().moved == 0
    assert TurnVector.objects.filter(space__model="hashed").count() == 70
    embed_all()
    assert TurnVector.objects.filter(space__model=USE).count() == 71


def test_each_batch_of_a_session_begins_behind_the_one_before(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Q] = []
    missing = reembedding._missing_turns

    def note(rebuild: Any, sessions: Any, behind: Q) -> list[Any]:
        asked.append(behind)
        return missing(rebuild, sessions, behind)

    monkeypatch.setattr(reembedding, "_missing_turns", note)
    reembedding.reembed(model=USE)
    session = Session.objects.get().pk
    ends = [beyond(("session", "number"), (session, last), "gt") for last in (64, 70)]
    # Once more before the switch, for what has come meanwhile.
    assert asked == [Q(), *ends, Q()]


def test_one_that_was_cut_off_goes_on(person: EndUser) -> None:
    def die(_done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reembedding.reembed(model=USE, report=die)
    assert serving() == "hashed"
    assert TurnVector.objects.filter(space__model=USE).count() == 64
    rebuild = reembedding.reembed(model=USE)
    assert rebuild
    assert (rebuild.embedded, serving()) == (8, USE)


def test_a_change_of_mind_drops_what_was_begun(person: EndUser) -> None:
    space = EmbeddingSpace.objects.create(model="other", dimensions=3, state="building", created_at=factories.NOW)
    assert reembedding.reembed(model=USE)
    space.refresh_from_db()
    assert space.state == "retired"


def test_an_endpoint_that_fails_leaves_the_old_space_serving(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    real = embeddings.embed

    def fail(texts: Any, **named: Any) -> Any:
        if len(texts) > 1:
            raise EmbeddingUnavailable
        return real(texts, **named)

    with monkeypatch.context() as patch:
        patch.setattr(embeddings, "embed", fail)
        with pytest.raises(ReembedUnfinished):
            reembedding.reembed(model=USE)
    assert serving() == "hashed"
    assert prepare("a").embedding_model == "hashed"
    assert reembedding.reembed(model=USE)


def test_the_second_command_refuses(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "GRACE_SECONDS", 0.0)
    with held(lambda: spaces.try_lock(spaces.REEMBEDDING)):
        with pytest.raises(ReembedRunning), reembedding.alone():
            pytest.fail("two at once")
        with pytest.raises(CommandError, match="Another process"):
            call_command("reembed", model=USE)
    said = StringIO()
    call_command("reembed", model=USE, stdout=said)
    assert said.getvalue().splitlines() == [
        f"{USE} serves: 72 texts embedded, 0 refused.",
        "72 vectors of earlier models removed.",
    ]


def test_a_model_that_is_not_configured_is_refused(person: EndUser) -> None:
    with pytest.raises(CommandError, match="not configured"):
        call_command("reembed", model="openai:m")
    assert serving() == "hashed"


def test_an_empty_hub_changes_at_once() -> None:
    assert reembedding.reembed(model=USE)
    assert serving() == USE
    assert not Session.objects.exists()


def post(person: EndUser) -> None:
    factories.session(EndUser.objects.get(pk=person.pk), [("user", "one more")], session_id="s")


def change() -> None:
    fact = Fact.objects.get()
    fact.set_text("Lives in Utrecht")
    fact.save()
