"""What comes between: a person who is restricted or erased while a pass is at work, a worker that dies, two at once."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from memories.capture.trajectories import locked_trajectory
from memories.curation.skills import deciding, proposing
from memories.curation.skills.deciding import EditedText
from memories.models import EndUser, Skill, SkillEvidence, SkillPass, SkillText, SkillTrial, Trajectory
from memories.skills import attempts, founding, serving, trials
from memories.skills.attempts import Attempt
from memories.skills.serving import Session
from tests import factories
from tests.database import at_once
from tests.factories import NOW, STAFF
from tests.skills.acting import lessons, people

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("what", ["restricted", "deleted"])
def test_what_a_pass_read_must_be_there_at_its_commit(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    persons = people()
    rows = lessons(persons)
    drafted = proposing.drafted

    def meanwhile(*given: object) -> proposing.Draft:
        found = drafted(*given)  # type: ignore[arg-type]
        if what == "restricted":
            EndUser.objects.filter(pk=persons[0].pk).update(restricted_at=NOW)
        else:
            founding.forget([rows[0].pk], now=NOW)
            Trajectory.objects.filter(pk=rows[0].pk).delete()
        return found

    monkeypatch.setattr(proposing, "drafted", meanwhile)
    assert not proposing.run_slice(now=NOW, seconds=3600)
    assert not Skill.objects.exists()
    assert SkillPass.objects.get().state == "nothing"
    # What is there is read at the next look.
    monkeypatch.setattr(proposing, "drafted", drafted)
    EndUser.objects.update(restricted_at=None)
    lessons(persons, now=NOW + timedelta(days=1))
    assert not proposing.run_slice(now=NOW + timedelta(days=2), seconds=3600)
    assert Skill.objects.count() == 1


def test_a_pass_is_one_workers_and_goes_on_after_it() -> None:
    persons = people()
    lessons(persons)
    row = proposing.begin(persons[0].tenant, "release service", now=NOW)
    assert row is not None
    assert proposing.begin(persons[0].tenant, "release service", now=NOW) is None
    assert proposing._claim(row) is not None
    assert proposing._claim(row) is None
    # The worker is killed: its lease runs out.
    SkillPass.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert not proposing.run_slice(now=NOW, seconds=3600)
    assert list(SkillPass.objects.values_list("state", flat=True)) == ["proposed"]


def test_a_pass_that_ends_its_workers_is_given_up() -> None:
    persons = people(max_attempts=2)
    lessons(persons)
    row = proposing.begin(persons[0].tenant, "release service", now=NOW)
    assert row is not None
    claimed = 0
    while proposing._claim(row) is not None:
        claimed += 1
        assert claimed < 20
        SkillPass.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert claimed >= 2
    ended = SkillPass.objects.get()
    assert (ended.state, ended.failure) == ("failed", "worker_lost")


@pytest.mark.django_db(transaction=True)
def test_nobody_is_noted_who_was_erased_meanwhile() -> None:
    persons = people(1)
    skill = factories.skill(persons[0])
    stranger = factories.end_user(persons[0].tenant)
    offered = serving.offer(Session(stranger.tenant, stranger, "", "s-9"))
    assert [one.name for one in offered.served] == [skill.name]
    EndUser.objects.filter(pk=stranger.pk).delete()
    trials.note(offered, SkillTrial.Via.FILES, now=NOW)
    assert not SkillTrial.objects.filter(session_id="s-9").exists()


@pytest.mark.django_db(transaction=True)
def test_an_edit_waits_for_no_trajectory_that_is_being_written() -> None:
    """Its outcome may wait for the skill: each would wait for the other."""
    person = people(1)[0]
    skill = factories.skill(person)
    text, row = SkillText.objects.get(), Trajectory.objects.get()

    def edit(_index: int) -> Skill:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '5s'")
            kept = [EditedText("step", "Warm the oven", of=text.pk)]
            return deciding.edit(skill_id=skill.pk, texts=kept, actor=STAFF, now=NOW)

    with transaction.atomic():
        locked_trajectory(row.pk, person.tenant)
        [edited] = at_once(1, edit)
    assert isinstance(edited, Skill), edited
    assert SkillEvidence.objects.filter(trajectory=row).count() == 2


def test_told_is_what_a_trajectory_says() -> None:
    person = people(1)[0]
    [row, *_] = lessons([person])
    [found] = attempts.read([row])
    assert isinstance(found, Attempt)
    assert found.succeeded
    assert "run_migrations" in found.text
