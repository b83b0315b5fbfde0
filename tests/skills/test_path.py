"""The thin path of a skill: proposed by rules, reviewed, served as a file, tried, withdrawn, erased."""

import pytest

from memories.curation.skills import deciding, proposing
from memories.models import Skill, SkillPass, SkillTrial, SkillVersion
from memories.skills import serving, trials
from memories.skills.serving import Session
from tests.factories import NOW, STAFF
from tests.skills.acting import lessons, people, trajectory

pytestmark = pytest.mark.django_db


def test_it_is_proposed_reviewed_served_tried_and_withdrawn() -> None:
    anna, bob = people()
    lessons([anna, bob])
    assert not proposing.run_slice(now=NOW, seconds=60)
    print(SkillPass.objects.values("state", "refused", "read"))
    skill = Skill.objects.get()
    session = Session(anna.tenant, anna, "", "s-1")
    assert not serving.offer(session).served
    deciding.approve(skill_id=skill.pk, actor=STAFF, now=NOW)
    served = serving.offer(session).served
    print(served[0].content)
    for number in range(20):
        here = Session(anna.tenant, anna, "", f"s-{number}")
        trials.note(serving.offer(here), SkillTrial.Via.FILES, now=NOW, read=[skill.name])
        ended = trajectory(anna, succeeded=False, session_id=f"s-{number}")
        if trials.end(ended, now=NOW):
            break
    print(number)
    skill.refresh_from_db()
    assert skill.status == "withdrawn"
    assert not serving.offer(session).served
    assert SkillVersion.objects.get().state == "former"
