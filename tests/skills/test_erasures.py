"""Fifty planted skills and one erasure: what rested on the person alone is gone from every version, what others showed,
too, stays and rests on them."""

import random
from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.db import transaction

from memories.curation.sessions import delete_session
from memories.curation.trajectories import delete_trajectory
from memories.models import EndUser, Skill, SkillEvidence, SkillText, SkillTrial, SkillVersion, Trajectory
from memories.privacy import registry, running
from memories.skills import founding, serving, trials
from memories.skills.serving import Session
from tests import factories
from tests.factories import NOW, STAFF
from tests.privacy.erased_world import erasure
from tests.skills.acting import people, trajectory

pytestmark = pytest.mark.django_db(transaction=True)
CASES = 50


def planted(
    persons: Sequence[EndUser], name: str, behind: Sequence[Sequence[int]], *, own: Sequence[int] = (), **over: object
) -> Skill:
    """A skill in use whose steps rest on the trajectories of these people, by their numbers; `own`: steps of an
    operator."""
    owner = persons[0].tenant
    given = {"scope": "tenant", "status": "serving", "served": 1, "created_at": NOW, "changed_at": NOW, **over}
    skill = Skill.objects.create(tenant=owner, name=name, family=name, **given)
    version = SkillVersion.objects.create(
        tenant=owner, skill=skill, number=1, state="served", actor_kind="command", created_at=NOW, served_from=NOW,
        reviewed_by=STAFF.id, reviewed_at=NOW,
    )  # fmt: skip
    for place, whose in enumerate(behind, start=1):
        text = SkillText.objects.create(
            tenant=owner, of_version=version, section="step", position=place, text=f"step {place} of {name}",
            is_own=place in own,
        )  # fmt: skip
        for number in whose:
            row = trajectory(persons[number], family=name)
            SkillEvidence.objects.create(tenant=owner, text=text, trajectory=row)
    return skill


def steps(skill: Skill) -> list[str]:
    """Those of the version in use, as an agent gets them."""
    found = serving.offer(Session(skill.tenant, None)).named(skill.name)
    return [one.text for one in found.texts] if found else []


def test_an_erasure_takes_what_rested_on_the_person_alone() -> None:
    persons = people(4)
    gone, *others = persons
    chance = random.Random(50)
    skills, expected, withdrawn = [], [], 0
    for case in range(CASES):
        behind = [sorted(chance.sample(range(4), chance.choice((1, 1, 2, 3)))) for _ in range(chance.randint(1, 4))]
        behind = [[0]] * len(behind) if case % 10 == 0 else behind
        skills.append(planted(persons, f"case-{case}", behind))
        stays = [place for place, whose in enumerate(behind, start=1) if whose != [0]]
        expected.append([f"step {place} of case-{case}" for place in stays])
        withdrawn += not stays
    tried = SkillVersion.objects.earliest("created_at")
    SkillTrial.objects.create(
        tenant=gone.tenant, of_version=tried, end_user=gone, arm="served", via="files", session_id="theirs",
        noted_at=NOW,
    )  # fmt: skip
    counted = SkillVersion.objects.count()
    done = running.carry_out(case_id=erasure(gone).pk, now=NOW + timedelta(days=1), wait_seconds=3600)
    assert done.state == "completed", (done.failure, done.findings)
    assert not Trajectory.objects.filter(end_user=gone.pk).exists()
    assert not SkillTrial.objects.exists()
    right = 0
    for skill, wanted in zip(skills, expected, strict=True):
        skill.refresh_from_db()
        right += steps(skill) == wanted
        if wanted:
            found = SkillText.objects.filter(of_version__skill=skill)
            # Of no version anything is left that only they had shown, and all the rest rests on somebody.
            assert set(found.values_list("text", flat=True)) == set(wanted)
            assert not found.unfounded().exists()
            assert set(found.values_list("evidence__trajectory__end_user", flat=True)) <= {one.pk for one in others}
        else:
            assert (skill.status, skill.reason, skill.family) == ("withdrawn", "no_evidence", "")
            assert not SkillText.objects.filter(of_version__skill=skill).exists()
    assert right == CASES, f"{right} of {CASES} cases right; {withdrawn} withdrawn"
    assert withdrawn >= 5
    assert SkillVersion.objects.count() > counted


def test_what_lost_a_text_is_a_new_version_with_trials_of_its_own() -> None:
    persons = people(2)
    skill = planted(persons, "two-steps", [[0], [1]])
    first = SkillVersion.objects.get()
    SkillTrial.objects.create(
        tenant=skill.tenant, of_version=first, end_user=persons[1], arm="served", via="files", outcome="failed",
        noted_at=NOW, ended_at=NOW,
    )  # fmt: skip
    row = Trajectory.objects.get(end_user=persons[0])
    delete_trajectory(trajectory_id=row.pk, tenant=skill.tenant, actor=STAFF, now=NOW)
    skill.refresh_from_db()
    assert (skill.status, skill.served, steps(skill)) == ("serving", 2, ["step 2 of two-steps"])
    assert [trials.figures(one).served.total for one in SkillVersion.objects.order_by("number")] == [1, 0]


def test_an_operators_own_words_stay() -> None:
    persons = people(1)
    skill = planted(persons, "mixed", [[0], []], own=[2])
    delete_trajectory(trajectory_id=Trajectory.objects.get().pk, tenant=skill.tenant, actor=STAFF, now=NOW)
    skill.refresh_from_db()
    assert steps(skill) == ["step 2 of mixed"]


def test_the_session_takes_its_trajectory_and_the_text_along() -> None:
    persons = people(2)
    skill = planted(persons, "of-a-session", [[0], [1]])
    said = factories.session(persons[0], session_id="s-1")
    Trajectory.objects.filter(end_user=persons[0]).update(session_id="s-1")
    delete_session(session_id=said.pk, tenant=skill.tenant, actor=STAFF, now=NOW)
    skill.refresh_from_db()
    assert steps(skill) == ["step 2 of of-a-session"]


def test_a_text_without_evidence_is_not_served_even_before_it_goes() -> None:
    skill = planted(people(2), "unfounded", [[0], [1]])
    SkillEvidence.objects.filter(text__position=1).delete()
    assert steps(skill) == ["step 2 of unfounded"]
    assert founding.unfounded(skill.tenant) == {skill.pk}
    with transaction.atomic():
        assert founding.settle([skill.pk], now=NOW) == 1
        assert founding.settle([skill.pk], now=NOW) == 0


def test_every_table_of_skills_is_accounted_for() -> None:
    assert not [one for one in registry.unaccounted() if "Skill" in one]
