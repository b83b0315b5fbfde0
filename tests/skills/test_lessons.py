"""200 scripted trajectories of 20 kinds of task with planted lessons: tasks that nobody saw succeed more often with the
skills that were made of them."""

import random
from collections import Counter

import pytest

from memories.curation.skills import deciding, proposing
from memories.models import Skill, Trajectory
from memories.skills import serving
from memories.skills.serving import Session
from tests.factories import NOW, STAFF
from tests.skills.acting import people, trajectory
from tests.skills.world import act, kinds

pytestmark = pytest.mark.django_db
EACH, HELD_OUT = 10, 20
FLOOR = 0.30


def test_held_out_tasks_succeed_more_often_with_the_skills_that_were_served() -> None:
    persons = people(4)
    chance = random.Random(24)
    for kind in kinds():
        for case in range(EACH):
            calls = act(kind, chance, case=case)
            trajectory(persons[case % 4], calls, succeeded=kind.succeeds(calls), family=kind.name, task=f"{kind.name}")
    assert Trajectory.objects.count() == 200
    while proposing.run_slice(now=NOW, seconds=3600):
        pass
    for skill in Skill.objects.all():
        deciding.approve(skill_id=skill.pk, actor=STAFF, now=NOW)
    came: dict[str, Counter[bool]] = {"with": Counter(), "without": Counter()}
    offered = serving.offer(Session(persons[0].tenant, persons[0], "", "held-out")).served
    by_family = {one.version.skill.family: one.content for one in offered}
    for kind in kinds():
        for case in range(HELD_OUT):
            seed = f"{kind.name} {case}"
            came["without"][kind.succeeds(act(kind, random.Random(seed), case=case))] += 1
            # The same chance, with what is served, if anything is.
            text = by_family.get(kind.name, "")
            came["with"][kind.succeeds(act(kind, random.Random(seed), skill=text, case=case))] += 1
    shares = {name: counted[True] / sum(counted.values()) for name, counted in came.items()}
    told = f"{len(by_family)} skills of 20 kinds, held out {HELD_OUT} each: {shares}"
    assert len(by_family) >= 10, told
    assert shares["with"] >= shares["without"] + FLOOR, told
