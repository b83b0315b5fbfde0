"""Trajectories in the admin: the list, and one with its steps; nobody changes one there."""

import pytest
from django.test import Client

from memories.models import EndUser, Trajectory, TrajectoryStep
from tests import factories
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db


def test_the_list_and_a_page_with_its_steps(admin: Client, person: EndUser) -> None:
    row = factories.trajectory(
        person, "Bake rye bread", family="baking", agent_id="baker", outcome="failed", outcome_source="tests",
        outcome_reason="pytest: exit code 1", session_id="s1", skills_named=["knead"],
    )  # fmt: skip
    TrajectoryStep.objects.filter(position=2).update(exit_code=1, is_error=True, cut=3)
    listed = text_of(admin.get(list_of(Trajectory)))
    for shown in ("Bake rye bread", "baking", "baker", "Failed"):
        assert shown in listed
    assert "Bake rye bread" not in text_of(admin.get(f"{list_of(Trajectory)}?outcome__exact=succeeded"))
    page = text_of(admin.get(page_of(row)))
    for shown in (
        "The last test run",
        "pytest: exit code 1",
        "oven",
        "Done: Bake rye bread",
        "exit code 1",
        "knead",
        "s1",
    ):
        assert shown in page
    assert "3 characters more were cut." in page


def test_more_steps_than_a_page_shows_are_counted(admin: Client, person: EndUser) -> None:
    row = factories.trajectory(person, step_count=203)
    assert "3 more steps are not shown." in text_of(admin.get(page_of(row)))
