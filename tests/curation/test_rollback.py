"""Roll back: what a session, an agent, a key or a time made is taken back, and nothing else."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest
from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.reverting import revert
from memories.curation.rollback.roll_back import preview_rollback, roll_back
from memories.curation.rollback.selection import Selector
from memories.exceptions import NotFound
from memories.extraction import consolidation
from memories.models import (
    ActorKind,
    AuditEvent,
    EndUser,
    Fact,
    FactRefusal,
    FactRevision,
    ProfileRevision,
    ProfileSection,
    ReviewItem,
    Session,
    Tenant,
)
from memories.queue import queue_rows, session_queue
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held, impatient
from tests.factories import NOW, STAFF
from tests.model import Model, candidate

pytestmark = pytest.mark.django_db
SAID = (("user", "I live in Leiden; before that it was Delft, then Gouda"), ("assistant", "Noted"))
DAY = timedelta(days=1)


@pytest.fixture
def tell(model: Model) -> Callable[..., Session]:
    """Have the model make these candidates of a new session of the person."""

    def tell(person: EndUser, *candidates: Any, at: Any = NOW, said: Any = SAID, **over: Any) -> Session:
        session = factories.session(person, said, flush=True, **over)
        model.say(*candidates)
        consolidation.consolidate(session_id=session.pk, now=at)
        return session

    return tell


Tell = Callable[..., Session]


def city(name: str, **over: Any) -> dict[str, Any]:
    return candidate(f"Lives in {name}", key="home_city", value=name, **over)


def of(session: Session) -> Selector:
    return Selector(session.tenant, session=session.pk)


def rolled_back(selector: Selector, **over: Any) -> dict[str, int]:
    """The counts that are not zero."""
    done = roll_back(selector=selector, actor=STAFF, now=NOW + DAY, **over)
    return {name: count for name, count in done.counts.items() if count}


def statuses() -> dict[str, str]:
    return dict(Fact.objects.values_list("content", "status"))


def states() -> dict[str, Any]:
    """All that tells how facts and sections are, but for their versions."""
    names = [field.attname for field in Fact._meta.concrete_fields if field.attname not in ("version", "updated_at")]
    facts = {row["content"]: row for row in Fact.objects.values(*names)}
    return {"facts": facts, "sections": dict(ProfileSection.objects.values_list("section", "summary"))}


class TestWhatItDoes:
    def test_what_was_born_there_goes_to_the_trash_and_is_not_refused(self, person: EndUser, tell: Tell) -> None:
        poison, honest = tell(person, candidate("Likes tea")), tell(person, candidate("Likes milk"))
        assert rolled_back(of(poison)) == {"trashed": 1}
        assert statuses() == {"Likes tea": "trashed", "Likes milk": "active"}
        assert not FactRefusal.objects.exists()
        tell(person, candidate("Likes tea"))
        assert Fact.objects.filter(content="Likes tea", status="active").count() == 1
        assert honest.runs.exists()

    def test_what_it_superseded_is_active_again(self, person: EndUser, tell: Tell) -> None:
        tell(person, city("Leiden"))
        before = states()["facts"]["Lives in Leiden"]
        poison = tell(person, city("Delft"), at=NOW + DAY)
        assert statuses() == {"Lives in Leiden": "superseded", "Lives in Delft": "active"}
        assert rolled_back(of(poison)) == {"trashed": 1, "put_back": 1}
        assert statuses() == {"Lives in Leiden": "active", "Lives in Delft": "trashed"}
        after = states()["facts"]["Lives in Leiden"]
        assert {name for name in before if before[name] != after[name]} <= {"decay_score", "forget_at"}

    def test_what_it_reinforced_several_times_counts_as_before(self, person: EndUser, tell: Tell) -> None:
        tell(person, candidate("Likes tea", confidence=0.75))
        agent = {"agent_id": "evil"}
        for day in (1, 2):
            tell(person, candidate("Likes tea"), at=NOW + day * DAY, **agent)
        assert Fact.objects.values_list("mentions", "stated_confidence").get() == (3, 0.8)
        assert rolled_back(Selector(person.tenant, agent_id="evil")) == {"put_back": 1}
        assert Fact.objects.values_list("confidence", "mentions", "stated_confidence").get() == (0.75, 1, 0.75)
        assert Fact.objects.get().last_confirmed_at < NOW + DAY

    @pytest.mark.parametrize("born_there", [True, False])
    def test_what_somebody_else_changed_since_stays(self, person: EndUser, tell: Tell, born_there: bool) -> None:
        if not born_there:
            tell(person, candidate("Likes tea"))
        poison = tell(person, candidate("Likes tea"), at=NOW + DAY)
        tell(person, candidate("Likes tea"), at=NOW + 2 * DAY)
        before = states()
        assert rolled_back(of(poison)) == {"kept": 1}
        assert states() == before

    def test_an_operators_word_stays(self, person: EndUser, tell: Tell) -> None:
        poison = tell(person, candidate("Likes tea"), candidate("Likes milk"))
        Fact.objects.filter(content="Likes tea").update(binding=True)
        assert rolled_back(of(poison)) == {"trashed": 1, "kept": 1}
        assert statuses() == {"Likes tea": "active", "Likes milk": "trashed"}

    def test_nothing_comes_back_beside_what_took_its_place_since(self, person: EndUser, tell: Tell) -> None:
        tell(person, city("Leiden"))
        poison = tell(person, city("Delft"), at=NOW + DAY)
        tell(person, city("Gouda"), at=NOW + 2 * DAY)
        assert rolled_back(of(poison)) == {"kept": 2}
        assert statuses()["Lives in Leiden"] == statuses()["Lives in Delft"] == "superseded"

    def test_nothing_comes_back_beside_another_fact_with_its_text(self, person: EndUser, tell: Tell) -> None:
        tell(person, city("Leiden"))
        poison = tell(person, city("Delft"), at=NOW + DAY)
        factories.fact(person, "Lives in Leiden")
        assert rolled_back(of(poison)) == {"trashed": 1, "kept": 1}

    def test_open_questions_about_it_are_settled(self, person: EndUser, tell: Tell) -> None:
        poison = tell(person, candidate("Likes tea", evidence=[2]))
        fact = Fact.objects.get(status="pending")
        ReviewItem.objects.get_or_create(
            fact=fact, kind="quarantined", defaults={"tenant": person.tenant, "end_user": person, "created_at": NOW}
        )
        assert rolled_back(of(poison)) == {"trashed": 1}
        assert ReviewItem.objects.get().state == "settled"

    def test_a_suggestion_that_it_confirmed_waits_again(self, person: EndUser, tell: Tell) -> None:
        tell(person, candidate("Likes tea", evidence=[2]))
        item = ReviewItem.objects.first() or factories.review_item(Fact.objects.get())
        poison = tell(person, candidate("Likes tea"), at=NOW + DAY)
        ReviewItem.objects.update(state="settled", decided_at=FactRevision.objects.latest("version").created_at)
        assert statuses() == {"Likes tea": "active"}
        assert rolled_back(of(poison)) == {"put_back": 1}
        item.refresh_from_db()
        assert (statuses(), item.state) == ({"Likes tea": "pending"}, "open")

    def test_twice_is_once(self, person: EndUser, tell: Tell) -> None:
        tell(person, city("Leiden"))
        poison = tell(person, city("Delft"), at=NOW + DAY)
        assert rolled_back(of(poison)) == {"trashed": 1, "put_back": 1}
        assert rolled_back(of(poison)) == {}

    def test_one_event_with_the_counts_and_one_change_set(self, person: EndUser, tell: Tell) -> None:
        tell(person, city("Leiden"))
        poison = tell(person, city("Delft"), at=NOW + DAY)
        done = roll_back(selector=of(poison), actor=STAFF, now=NOW, reason="password: hunter2hunter2")
        event = AuditEvent.objects.get()
        assert (event.verb, event.object_id, event.counts) == ("roll_back", done.id, done.counts)
        made = FactRevision.objects.filter(change_set=done.id)
        assert set(made.values_list("verb", "actor_kind")) == {("roll_back", "operator")}
        assert made.count() == 2
        assert "hunter2" not in made[0].reason


class TestWhatIsSelected:
    def test_these_and_no_others(self, person: EndUser, tell: Tell) -> None:
        """A fact of each origin: two agents on two days, a key's turn, a key's statement, another person's."""
        key, _ = factories.api_key(person.tenant)
        tell(person, candidate("of the agent"), agent_id="evil", session_id="s1")
        tell(person, candidate("of tomorrow"), agent_id="good", at=NOW + DAY)
        tell(person, candidate("of the key's turn"), agent_id="good", key_id=key.pk)
        said = Actor(kind=ActorKind.KEY, id=str(key.pk))
        draft = FactDraft("stated by the key", "knowledge")
        add_fact(end_user=person, draft=draft, actor=said, now=NOW)
        tell(factories.end_user(person.tenant), candidate("of somebody else"), agent_id="evil", session_id="s1")
        cases: list[tuple[dict[str, Any], set[str]]] = [
            ({"agent_id": "evil"}, {"of the agent", "of somebody else"}),
            ({"agent_id": "evil", "end_user": person}, {"of the agent"}),
            ({"since": NOW + DAY}, {"of tomorrow"}),
            ({"until": NOW}, set()),
            ({"since": NOW, "until": NOW + DAY, "agent_id": "good"}, {"of the key's turn"}),
            ({"key": key.pk}, {"of the key's turn", "stated by the key"}),
            ({"key": key.pk, "agent_id": "good"}, {"of the key's turn"}),
            ({"key": key.pk, "since": NOW + DAY}, set()),
            ({"key": uuid.uuid4()}, set()),
        ]
        for given, gone in cases:
            selector = Selector(person.tenant, **given)
            assert {fact.content for fact in preview_rollback(selector).trashed} == gone, given
            with transaction.atomic():
                roll_back(selector=selector, actor=STAFF, now=NOW)
                assert {content for content, status in statuses().items() if status == "trashed"} == gone, given
                transaction.set_rollback(True)

    def test_another_tenants_is_out_of_reach(self, person: EndUser, tell: Tell) -> None:
        session = tell(person, candidate("Likes tea"), agent_id="evil")
        stranger: Tenant = factories.tenant()
        for given in ({"session": session.pk}, {"agent_id": "evil"}, {"since": NOW}):
            assert rolled_back(Selector(stranger, **given)) == {}
        assert rolled_back(of(session)) == {"trashed": 1}

    def test_without_an_origin_there_is_no_selector(self, person: EndUser) -> None:
        with pytest.raises(TypeError):
            Selector(person.tenant, end_user=person)

    def test_of_a_batch_of_two_keys_only_what_rests_on_the_one(self, person: EndUser, tell: Tell, model: Model) -> None:
        tell(person, city("Leiden"))
        bad, good = (factories.api_key(person.tenant)[0].pk for _ in range(2))
        session = factories.session(person, (("user", "Delft"),), key_id=bad, session_id="s")
        factories.session(person, (("user", "Tea"), ("assistant", "Yes")), key_id=good, session_id="s", flush=True)
        model.say(city("Delft", evidence=[1]), candidate("Likes tea", evidence=[2]))
        consolidation.consolidate(session_id=session.pk, now=NOW + DAY)
        assert rolled_back(Selector(person.tenant, key=bad)) == {"trashed": 1, "put_back": 1}
        assert statuses() == {"Lives in Leiden": "active", "Lives in Delft": "trashed", "Likes tea": "active"}


class TestProfile:
    def wrote(self, session: Session, before: str, after: str, *, version: int) -> None:
        run = session.runs.get()
        given = {"version": version, "before": before, "extraction": run, "actor_id": str(run.pk)}
        factories.profile_revision(session.end_user, after, **given)
        ProfileSection.objects.update_or_create(
            end_user=session.end_user,
            section="work_context",
            defaults={
                "tenant": session.tenant,
                "summary": after,
                "version": version,
                "actor_kind": "run",
                "extraction": run,
                "updated_at": NOW,
            },
        )

    def test_a_section_has_its_text_of_before(self, person: EndUser, tell: Tell) -> None:
        honest, poison = tell(person), tell(person)
        self.wrote(honest, "", "Bakes.", version=1)
        self.wrote(poison, "Bakes.", "Sells arms.", version=2)
        assert rolled_back(of(poison)) == {"sections": 1}
        section = ProfileSection.objects.get()
        assert (section.summary, section.version, section.extraction) == ("Bakes.", 3, None)
        assert ProfileRevision.objects.filter(verb="roll_back", before="Sells arms.", after="Bakes.").count() == 1

    def test_one_that_was_not_there_before_is_emptied_and_can_come_back(self, person: EndUser, tell: Tell) -> None:
        poison = tell(person)
        self.wrote(poison, "", "Sells arms.", version=1)
        done = roll_back(selector=of(poison), actor=STAFF, now=NOW)
        assert ProfileSection.objects.get().summary == ""
        assert revert(change_set=done.id, actor=STAFF, now=NOW)["sections"] == 1
        assert ProfileSection.objects.get().summary == "Sells arms."
        assert rolled_back(of(poison)) == {"sections": 1}

    @pytest.mark.parametrize("binding", [True, False])
    def test_what_others_wrote_since_stays(self, person: EndUser, tell: Tell, binding: bool) -> None:
        poison, later = tell(person), tell(person)
        self.wrote(poison, "", "Sells arms.", version=1)
        if binding:
            ProfileSection.objects.update(binding=True)
        else:
            self.wrote(later, "Sells arms.", "Sells farms.", version=2)
        assert rolled_back(of(poison)) == {"kept": 1}
        assert ProfileSection.objects.get().summary.startswith("Sells")


class TestUndo:
    def test_all_is_as_it_was(self, person: EndUser, tell: Tell) -> None:
        tell(person, city("Leiden"))
        poison = tell(person, city("Delft"), candidate("Said by it", evidence=[2]), at=NOW + DAY)
        item = ReviewItem.objects.first() or factories.review_item(Fact.objects.get(status="pending"))
        before = states()
        done = roll_back(selector=of(poison), actor=STAFF, now=NOW + DAY)
        assert states() != before
        undone = revert(change_set=done.id, actor=STAFF, now=NOW + DAY)
        item.refresh_from_db()
        assert (states(), item.state, undone["put_back"], undone["kept"]) == (before, "open", 3, 0)
        assert list(AuditEvent.objects.values_list("verb", flat=True)) == ["undo_roll_back", "roll_back"]
        assert rolled_back(of(poison)) == {"trashed": 2, "put_back": 1}

    def test_what_changed_since_stays(self, person: EndUser, tell: Tell) -> None:
        poison = tell(person, candidate("Likes tea"), candidate("Likes milk"))
        done = roll_back(selector=of(poison), actor=STAFF, now=NOW)
        tea = Fact.objects.get(content="Likes tea")
        restore_fact(fact_id=tea.pk, tenant=None, actor=STAFF, now=NOW)
        undone = revert(change_set=done.id, actor=STAFF, now=NOW)
        assert (undone["put_back"], undone["kept"]) == (1, 1)

    def test_what_was_said_again_stays_alone(self, person: EndUser, tell: Tell) -> None:
        poison = tell(person, candidate("Likes tea"))
        done = roll_back(selector=of(poison), actor=STAFF, now=NOW)
        tell(person, candidate("Likes tea"))
        undone = revert(change_set=done.id, actor=STAFF, now=NOW)
        assert (undone["put_back"], undone["kept"]) == (0, 1)
        assert Fact.objects.filter(status="active").count() == 1

    def test_of_nothing(self, person: EndUser) -> None:
        with pytest.raises(NotFound):
            revert(change_set=uuid.uuid4(), actor=STAFF, now=NOW)


# What sessions said, one list each. The first is nobody's to roll back.
LIVES: dict[str, list[list[Any]]] = {
    "and back": [[city("Leiden")], [city("Delft")], [city("Leiden")], [city("Delft")]],
    # Tea was known and is said again by both; what the first makes, milk, the second says again, and an assistant rum.
    "all of it": [
        [city("Leiden"), candidate("Likes tea")],
        [city("Delft"), candidate("Likes milk"), candidate("Likes tea"), candidate("Likes rum")],
        [candidate("Likes tea"), city("Gouda"), candidate("Likes milk"), candidate("Likes rum", evidence=[2])],
    ],
}


class TestOneAfterTheOther:
    """What stands of facts and sections depends on which roll backs stand, not on the order in which they were made and
    undone."""

    @pytest.fixture(params=list(LIVES.values()), ids=list(LIVES))
    def sessions(self, request: Any, person: EndUser, tell: Tell) -> list[Session]:
        told = [tell(person, *said, at=NOW + day * DAY) for day, said in enumerate(request.param)]
        for version, session in enumerate(told, start=1):
            TestProfile().wrote(session, f"Text {version - 1}." * (version > 1), f"Text {version}.", version=version)
        return told[1:]

    def standing(self) -> dict[str, Any]:
        """Facts that are not in the trash, and sections."""
        names = ("status", "mentions", "confidence", "stated_confidence", "superseded_by", "valid_to", "valid_from")
        facts = {row.pop("pk"): row for row in Fact.objects.exclude(status="trashed").values("pk", *names)}
        return {"facts": facts, "sections": dict(ProfileSection.objects.values_list("section", "summary"))}

    def test_the_order_does_not_matter(self, sessions: list[Session]) -> None:
        left: dict[frozenset[uuid.UUID], Any] = {}
        orders = list(permutations(sessions))
        # Of three, those in which each is once at each place, and back.
        for order in dict.fromkeys(orders[:1] + orders[-3:]):
            # Of three, only the first one first: that is the harder one.
            for undone in (order, order[::-1])[: 4 - len(order)]:
                with transaction.atomic():
                    done: dict[uuid.UUID, uuid.UUID] = {}
                    seen = [(frozenset(done), self.standing())]
                    for session in order:
                        made = roll_back(selector=of(session), actor=STAFF, now=NOW + DAY)
                        done[session.pk] = made.id
                        seen.append((frozenset(done), self.standing()))
                    for session in undone:
                        revert(change_set=done.pop(session.pk), actor=STAFF, now=NOW + DAY)
                        seen.append((frozenset(done), self.standing()))
                    transaction.set_rollback(True)
                for stand, state in seen:
                    assert left.setdefault(stand, state) == state
        at_once = Selector(sessions[0].tenant, since=NOW + DAY)
        roll_back(selector=at_once, actor=STAFF, now=NOW + 9 * DAY)
        assert self.standing() == left[frozenset(session.pk for session in sessions)]
        assert len({repr(state) for state in left.values()}) > 1


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_an_extraction_that_commits_comes_first_and_is_somebodys_change(
        self, person: EndUser, tell: Tell, model: Model
    ) -> None:
        poison = tell(person, candidate("Likes tea"))
        honest = factories.session(person, SAID, flush=True)
        claim = session_queue.claim(honest.pk)
        assert claim

        def commit() -> None:
            queue_rows.fence(claim)
            fact = Fact.objects.get()
            before, run = audit.snapshot(fact), factories.run(honest)
            fact.mentions, fact.version = 2, 2
            fact.save()
            given: dict[str, Any] = {"verb": "reinforce", "actor": Actor.run(run), "reason": "", "now": NOW}
            audit.revise(fact=fact, before=before, **given)

        with held(commit), impatient():
            rolling = blocked(lambda: rolled_back(of(poison)))
        assert rolling.result(PATIENCE) == {"kept": 1}
        assert Fact.objects.values_list("status", "mentions").get() == ("active", 2)

    def test_an_operator_who_corrects_it_comes_first(self, person: EndUser, tell: Tell) -> None:
        poison = tell(person, candidate("Likes tea"), candidate("Likes milk"))
        fact = Fact.objects.get(content="Likes tea")
        given: dict[str, Any] = {"tenant": None, "actor": STAFF, "now": NOW, "reason": "said so"}
        with held(lambda: correct_fact(fact_id=fact.pk, content="Likes coffee", **given)), impatient():
            rolling = blocked(lambda: rolled_back(of(poison)))
        assert rolling.result(PATIENCE) == {"trashed": 1, "kept": 1}
        assert statuses() == {"Likes coffee": "active", "Likes milk": "trashed"}

    def test_two_do_it_once(self, person: EndUser, tell: Tell) -> None:
        poison = tell(person, candidate("Likes tea"))
        done = at_once(2, lambda _: rolled_back(of(poison)))
        assert sorted(done, key=str) == [{"trashed": 1}, {}]
