"""What keys and operators may do to an episode, what each act leaves behind, and what it refuses."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.episodes import (
    delete_episode,
    edit_episode,
    forget_episode,
    pin_episode,
    restore_episode,
    unpin_episode,
)
from memories.curation.review.decisions import approve_edited, approve_item
from memories.curation.sessions import delete_session
from memories.exceptions import Conflict, NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.models import (
    AuditEvent,
    EmbeddingSpace,
    EndUser,
    Episode,
    EpisodeVector,
    ReviewItem,
    Session,
    WorkingMemory,
)
from memories.models.folding import text_digest
from tests import factories
from tests.curation.marks import places_of
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import KEY, LATER, NOW, STAFF

pytestmark = pytest.mark.django_db
Verb = Callable[..., Any]


@pytest.fixture
def session() -> Session:
    return factories.session(factories.end_user(), [("user", "Where is my invoice?"), ("assistant", "Here.")])


@pytest.fixture
def episode(session: Session) -> Episode:
    return factories.episode(session, key_topics=["invoices"], outcomes=["Sent again"])


def call(verb: Verb, episode: Episode, *, actor: Actor = KEY, **over: Any) -> Any:
    of_tenant = {"tenant": episode.tenant} if verb in BY_KEYS else {}
    return verb(**{"episode_id": episode.pk, **of_tenant, "actor": actor, "now": LATER, **over})


def edit(episode: Episode, *, actor: Actor = KEY, **changes: Any) -> Episode:
    changed: Episode = call(edit_episode, episode, actor=actor, changes=changes)
    return changed


def editing(**given: Any) -> Episode:
    return edit_episode(changes={"summary": "Got the invoice"}, **given)


def fresh(episode: Episode) -> Episode:
    return Episode.objects.get(pk=episode.pk)


BY_KEYS: tuple[Verb, ...] = (edit_episode, editing, forget_episode, delete_episode)
OPERATORS: tuple[Verb, ...] = (pin_episode, unpin_episode)
ALL = [*BY_KEYS[1:], *OPERATORS]


class TestEditing:
    def test_sets_the_named_fields_and_what_it_is_found_by(self, episode: Episode) -> None:
        edit(episode, summary="要了五月的发票", key_topics=["发票"], importance=0.9, pinned=True, expires_at=LATER)
        after = fresh(episode)
        assert (after.summary, after.key_topics, after.outcomes) == ("要了五月的发票", ["发票"], ["Sent again"])
        assert (after.importance, after.pinned, after.expires_at, after.updated_at) == (0.9, True, LATER, LATER)
        assert bytes(after.content_hash) == text_digest("要了五月的发票\n发票\nSent again")
        assert (after.version, after.binding, after.status) == (2, False, "active")

    @pytest.mark.parametrize(("actor", "extractor"), [(KEY, "api"), (STAFF, "operator")])
    def test_words_of_a_person_are_not_judged(self, episode: Episode, actor: Actor, extractor: str) -> None:
        Episode.objects.update(quality=0.3, flaws=["boilerplate"])
        edit(episode, actor=actor, outcomes=["Paid"])
        after = fresh(episode)
        assert (after.quality, after.flaws, after.extractor) == (1.0, [], extractor)

    def test_what_is_not_rewritten_keeps_its_maker_and_its_quality(self, episode: Episode) -> None:
        edit(episode, importance=0.1, summary=episode.summary)
        after = fresh(episode)
        assert (after.quality, after.extractor, after.version) == (0.9, "llm:test", 2)

    def test_of_an_operator_is_binding(self, episode: Episode) -> None:
        assert edit(episode, actor=STAFF, importance=0.2).binding
        with pytest.raises(OperatorWord):
            edit(episode, importance=0.9)

    def test_leaves_one_that_waits_waiting(self, session: Session) -> None:
        item = factories.poor_episode(session)
        assert item.episode
        edit(item.episode, summary="Asked for the invoice of May")
        item.refresh_from_db()
        assert (item.state, fresh(item.episode).status) == ("open", "pending")

    def test_cuts_secrets_out(self, episode: Episode) -> None:
        mark = "hunter2hunter2"
        said = f"My password is {mark}"
        edit(episode, summary=said, key_topics=[said], actions_taken=[said], outcomes=["x" * 190, said])
        assert "[redacted:" in fresh(episode).summary
        assert places_of(mark) == []

    def test_of_what_is_in_the_trash_is_refused(self, episode: Episode) -> None:
        call(forget_episode, episode)
        with pytest.raises(Conflict, match="in the trash"):
            edit(episode, summary="x")


class TestPinning:
    def test_is_an_operators_word_until_it_is_lifted(self, episode: Episode) -> None:
        call(pin_episode, episode, actor=STAFF)
        assert (fresh(episode).pinned, fresh(episode).binding) == (True, True)
        with pytest.raises(OperatorWord):
            edit(episode, pinned=False)
        call(unpin_episode, episode, actor=STAFF)
        assert (fresh(episode).pinned, fresh(episode).binding) == (False, False)
        assert edit(episode, importance=0.5).version == 4


class TestForgettingAndRestoring:
    def test_there_and_back(self, episode: Episode) -> None:
        call(forget_episode, episode)
        assert (fresh(episode).status, fresh(episode).trashed_at) == ("trashed", LATER)
        call(restore_episode, episode, actor=STAFF)
        after = fresh(episode)
        assert (after.status, after.trashed_at, after.last_recalled_at) == ("active", None, LATER)

    def test_twice_is_once(self, episode: Episode) -> None:
        call(forget_episode, episode)
        call(forget_episode, episode)
        assert fresh(episode).version == 2
        assert AuditEvent.objects.count() == 1

    @pytest.mark.parametrize(("over", "left"), [(timedelta(0), None), (timedelta(days=1), LATER + timedelta(days=1))])
    def test_what_has_expired_does_not_expire_at_once(self, episode: Episode, over: timedelta, left: Any) -> None:
        Episode.objects.update(expires_at=LATER + over)
        call(forget_episode, episode)
        call(restore_episode, episode, actor=STAFF)
        assert fresh(episode).expires_at == left

    def test_what_is_not_in_the_trash_is_not_restored(self, episode: Episode) -> None:
        with pytest.raises(Conflict, match="not in the trash"):
            call(restore_episode, episode, actor=STAFF)

    def test_settles_what_waits(self, session: Session) -> None:
        item = factories.poor_episode(session)
        assert item.episode
        call(forget_episode, item.episode)
        item.refresh_from_db()
        assert (item.state, item.decided_at) == ("settled", LATER)


class TestDeleting:
    def test_leaves_no_text_and_no_vector(self, session: Session) -> None:
        mark = "xyzzy-4711"
        item = factories.poor_episode(session, f"Spoke of {mark}", key_topics=[mark])
        approve_edited(item_id=item.pk, changes={"summary": "Spoke"}, actor=STAFF, now=NOW)
        assert item.episode
        space = EmbeddingSpace.objects.create(model="test", dimensions=2, state="serving", created_at=NOW)
        EpisodeVector.objects.create(
            episode=item.episode, space=space, tenant=session.tenant, end_user=session.end_user, language="en",
            vector=[1.0, 0.0], text_digest=b"x",
        )  # fmt: skip
        assert places_of(mark)
        call(delete_episode, item.episode, actor=STAFF)
        assert places_of(mark) == []
        assert not Episode.objects.exists()
        assert not EpisodeVector.objects.exists()
        assert not ReviewItem.objects.exists()
        assert AuditEvent.objects.filter(object_id=item.episode.pk, verb="delete").exists()

    def test_the_session_remembers_how_far_it_was_summarised(self, session: Session, episode: Episode) -> None:
        WorkingMemory.objects.filter(session=session).update(episode_number=1)
        call(delete_episode, episode)
        assert WorkingMemory.objects.get(session=session).episode_number == 1


@pytest.mark.parametrize("verb", ALL)
class TestEachVerb:
    def test_as_it_was_seen_it_is_on_record_with_the_version_that_it_made(self, episode: Episode, verb: Verb) -> None:
        with pytest.raises(NotFound):
            call(verb, episode, episode_id=uuid.uuid4())
        with pytest.raises(PreconditionFailed):
            call(verb, episode, expected_version=2)
        assert fresh(episode).version == 1
        call(verb, episode, actor=STAFF, expected_version=1)
        event = AuditEvent.objects.get(object_id=episode.pk)
        assert (event.object_type, event.actor_id, event.request_id) == ("Episode", "7", "r-2")
        assert (event.counts or {"version": 2}) == {"version": 2}

    @pytest.mark.django_db(transaction=True)
    def test_the_second_of_two_sees_what_the_first_left(self, episode: Episode, verb: Verb) -> None:
        with held(lambda: editing(episode_id=episode.pk, tenant=None, actor=STAFF, now=LATER)):
            second = blocked(lambda: call(verb, episode, actor=STAFF, expected_version=1))
        with pytest.raises(PreconditionFailed):
            second.result(PATIENCE)
        assert fresh(episode).summary == "Got the invoice"

    @pytest.mark.django_db(transaction=True)
    def test_a_person_erased_meanwhile(self, episode: Episode, verb: Verb) -> None:
        with held(lambda: EndUser.objects.filter(pk=episode.end_user_id).delete()):
            waiting = blocked(lambda: call(verb, episode, actor=STAFF))
        with pytest.raises(NotFound):
            waiting.result(PATIENCE)
        assert not AuditEvent.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_a_session_deleted_meanwhile(self, episode: Episode, verb: Verb) -> None:
        gone = {"session_id": episode.session_id, "tenant": None, "actor": STAFF, "now": LATER}
        with held(lambda: delete_session(**gone)):  # type: ignore[arg-type]
            waiting = blocked(lambda: call(verb, episode, actor=STAFF))
        with pytest.raises(NotFound):
            waiting.result(PATIENCE)
        assert not Episode.objects.exists()


@pytest.mark.parametrize("verb", BY_KEYS[1:])
class TestAKey:
    def test_reaches_no_operators_word_no_restricted_person_and_no_other_tenant(
        self, episode: Episode, verb: Verb
    ) -> None:
        with pytest.raises(NotFound):
            call(verb, episode, tenant=factories.tenant())
        Episode.objects.update(binding=True)
        with pytest.raises(OperatorWord):
            call(verb, episode)
        Episode.objects.update(binding=False)
        EndUser.objects.update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            call(verb, episode)
        Episode.objects.update(binding=True)
        call(verb, episode, actor=STAFF)


@pytest.mark.django_db(transaction=True)
def test_of_many_restores_at_once_one_counts(episode: Episode) -> None:
    call(forget_episode, episode)
    outcomes = at_once(5, lambda _: call(restore_episode, episode, actor=STAFF))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 4 + ["Episode"]
    assert fresh(episode).version == 3


@pytest.mark.django_db(transaction=True)
def test_deleting_and_deciding_at_once_ends_in_one_of_the_two_orders(session: Session) -> None:
    item = factories.poor_episode(session)
    assert item.episode
    with held(lambda: approve_item(item_id=item.pk, actor=STAFF, now=LATER)):
        waiting = blocked(lambda: call(delete_episode, item.episode))  # type: ignore[arg-type]
    waiting.result(PATIENCE)
    assert not ReviewItem.objects.exists()
