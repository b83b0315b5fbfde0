"""decay: a pass here and now, its exit codes, and what it would take."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from memories.forgetting import decay_passes
from memories.models import DecayPass, Fact, Tenant
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
LONG_AGO = NOW - timedelta(days=1_000)


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant(slug="acme")


def say(*arguments: str) -> str:
    said = StringIO()
    call_command("decay", "--tenant", "acme", *arguments, stdout=said)
    return said.getvalue()


def many(tenant: Tenant) -> None:
    """More than the brake lets go."""
    person = factories.end_user(tenant)
    for number in range(101):
        factories.fact(person, f"Secretly likes tea number {number}", now=LONG_AGO)


def test_it_runs_a_pass_and_says_counts_alone(tenant: Tenant) -> None:
    factories.fact(factories.end_user(tenant), "Secretly likes tea", now=LONG_AGO)
    said = say()
    assert "1 facts" in said
    assert "tea" not in said
    assert (Fact.objects.get().status, DecayPass.objects.get().trigger) == ("trashed", "command")


def test_it_can_be_another_moment(tenant: Tenant) -> None:
    factories.fact(factories.end_user(tenant), now=NOW)
    assert "0 facts" in say("--now", "2026-11-04T00:00:00Z")
    assert "1 facts" in say("--now", "2036-11-04T00:00:00Z")
    trashed_at = Fact.objects.get().trashed_at
    assert trashed_at
    assert trashed_at.year == 2036
    assert "1 purged" in say("--now", "2036-12-05")


def test_a_preview_changes_nothing(tenant: Tenant) -> None:
    fact = factories.fact(factories.end_user(tenant), now=LONG_AGO)
    said = say("--preview")
    assert "1 facts" in said
    assert str(fact.pk) in said
    assert (Fact.objects.get().status, DecayPass.objects.count()) == ("active", 0)


def test_the_brake_has_an_exit_code_of_its_own(tenant: Tenant) -> None:
    many(tenant)
    assert "The brake would hold it" in say("--preview")
    with pytest.raises(CommandError, match="--confirm") as held:
        say()
    assert held.value.returncode == 3
    assert not Fact.objects.filter(status="trashed").exists()
    assert "101 facts" in say("--confirm")
    assert Fact.objects.filter(status="trashed").count() == 101


def test_beside_another_pass_it_says_so(tenant: Tenant) -> None:
    row = decay_passes.begin(tenant=tenant, trigger=DecayPass.Trigger.SCHEDULE, as_of=NOW, now=NOW)
    assert decay_passes.claim(row)
    with pytest.raises(CommandError, match="pass is running") as refused:
        say()
    assert refused.value.returncode == 1


def test_what_a_worker_left_is_done_first(tenant: Tenant) -> None:
    decay_passes.begin(tenant=tenant, trigger=DecayPass.Trigger.SCHEDULE, as_of=NOW, now=NOW)
    say()
    assert list(DecayPass.objects.values_list("state", flat=True)) == ["done", "done"]


@pytest.mark.parametrize("arguments", [["--tenant", "nobody"], ["--tenant", "acme", "--now", "soon"]])
def test_bad_arguments(tenant: Tenant, arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("decay", *arguments)
