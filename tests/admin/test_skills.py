"""Skills in the admin: what waits, its review by buttons and keys, versions, trials, and hostile texts."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.curation.skills import deciding, proposing
from memories.models import AuditEvent, EndUser, Skill, SkillTrial, SkillVersion
from tests import factories
from tests.admin.pages import HOSTILE, list_of, page_of, queries_of, said, shows_harmless, text_of
from tests.factories import NOW, STAFF
from tests.skills.acting import lessons, people


@pytest.fixture
def persons(db: None) -> list[EndUser]:
    found = people()
    lessons(found)
    return found


@pytest.fixture
def skill(persons: list[EndUser]) -> Skill:
    """One that waits."""
    assert not proposing.run_slice(now=NOW, seconds=3600)
    return Skill.objects.get()


def act(client: Client, skill: Skill, verb: str, **given: Any) -> Any:
    skill.refresh_from_db()
    return client.post(page_of(skill, verb), {"version": skill.version, **given})


def test_what_waits_is_on_the_dashboard_and_decided_on_its_page(admin: Client, skill: Skill) -> None:
    assert "1 skill to review" in text_of(admin.get(reverse("admin:index")))
    assert "release-service" in text_of(admin.get(f"{list_of(Skill)}?tab=waiting"))
    page = admin.get(page_of(skill))
    shown = text_of(page)
    assert "No agent is given it before an operator approves it." in shown
    assert "Use `run_migrations`" in shown
    assert {f'data-key="{key}"' in page.content.decode() for key in "ar"} == {True}
    assert "is in use from now on" in said(act(admin, skill, "approve"))
    assert Skill.objects.get().status == "serving"
    assert "1 skill to review" not in text_of(admin.get(reverse("admin:index")))
    assert "waits for review again" in said(act(admin, skill, "undo"))
    assert "is rejected" in said(act(admin, skill, "reject"))
    assert act(admin, skill, "approve").status_code == 409
    assert admin.post(page_of(skill, "undo"), {"version": 1}).status_code == 412
    verbs = list(AuditEvent.objects.filter(object_type="Skill").order_by("id").values_list("verb", flat=True))
    assert verbs == ["propose", "approve", "undo", "reject"]


def test_an_edit_is_compared_and_put_into_use_and_back(admin: Client, skill: Skill) -> None:
    act(admin, skill, "approve")
    lines = "title: Release\nstep: Use `open_project` (`clean`: `true`), always.\ncheck：Look at the log."
    assert "waits for approval" in said(act(admin, skill, "edit", texts=lines))
    shown = text_of(admin.get(page_of(skill)))
    assert "What would change" in shown
    assert act(admin, skill, "edit", texts="Look at the log.").status_code == 400
    assert act(admin, skill, "edit", texts="step: Write to anna@example.org").status_code == 400
    act(admin, skill, "approve")
    assert SkillVersion.objects.get(state="served").number == 2
    assert "in use again" in said(act(admin, skill, "serve", number=1))
    assert SkillVersion.objects.get(state="served").number == 3
    assert "is changed" in said(act(admin, skill, "share", share=50))
    assert act(admin, skill, "share", share=101).status_code == 400
    assert "no agent is given it" in said(act(admin, skill, "withdraw"))
    assert Skill.objects.get().share == 50


def test_the_page_tells_the_trials(admin: Client, persons: list[EndUser], skill: Skill) -> None:
    deciding.approve(skill_id=skill.pk, actor=STAFF, now=NOW)
    version = SkillVersion.objects.get()
    given = {"tenant": skill.tenant, "of_version": version, "end_user": persons[0], "arm": "served", "via": "files"}
    for number in range(8):
        outcome = "succeeded" if number < 6 else "failed"
        SkillTrial.objects.create(session_id=f"s{number}", outcome=outcome, noted_at=NOW, ended_at=NOW, **given)
    shown = text_of(admin.get(page_of(skill)))
    assert "6 of 8 (41–93 %)" in shown
    # Before: four of six.
    assert "4 of 6 (30–90 %)" in shown
    assert "6 of 8" in text_of(admin.get(list_of(Skill)))
    before = queries_of(admin, page_of(skill)), queries_of(admin, list_of(Skill))
    for number in range(8, 20):
        SkillTrial.objects.create(session_id=f"s{number}", noted_at=NOW, **given)
    assert (queries_of(admin, page_of(skill)), queries_of(admin, list_of(Skill))) == before
    assert max(before) <= 24


def test_who_may_only_look_decides_nothing(staff_who_may: Callable[..., Client], skill: Skill) -> None:
    reader = staff_who_may("view_skill")
    assert "Approve" not in text_of(reader.get(page_of(skill)))
    assert act(reader, skill, "approve").status_code == 403


@pytest.mark.usefixtures("db")
def test_hostile_texts_are_shown_harmless_and_in_chinese(admin: Client) -> None:
    skill = factories.skill(factories.end_user(), text=HOSTILE)
    assert shows_harmless(admin.get(page_of(skill)))
    admin.cookies["django_language"] = "zh-hans"
    assert admin.get(page_of(skill), headers={"accept-language": "zh-hans"}).status_code == 200
