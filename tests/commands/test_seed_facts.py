"""seed_facts: what it makes is sound, of many ages, and goes in the shares that it promises."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories import invariants
from memories.audit import REVISED_MOMENTS, snapshot
from memories.forgetting import decay
from memories.models import (
    DecayPass,
    EndUser,
    Episode,
    Fact,
    FactRevision,
    ReviewItem,
    Session,
    SessionQueue,
    Status,
    Tenant,
    Turn,
)
from tests import factories

pytestmark = pytest.mark.django_db
COMMAND = DecayPass.Trigger.COMMAND


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant(slug="acme")


def say(*arguments: str, people: int = 8, facts: int = 50) -> str:
    said = StringIO()
    given = ["--tenant", "acme", "--people", str(people), "--facts-per-person", str(facts)]
    call_command("seed_facts", *given, *arguments, stdout=said)
    return said.getvalue()


def test_what_it_makes_is_sound_and_finished(tenant: Tenant) -> None:
    assert say() == "8 people with 50 facts each.\n"
    assert EndUser.objects.filter(tenant=tenant).count() == 8
    assert set(Fact.objects.values_list("end_user__external_id").distinct()) == {(f"seeded-{n}",) for n in range(8)}
    assert Fact.objects.count() == 400
    assert invariants.check() == []
    assert not Fact.objects.unembedded().exists()
    assert not SessionQueue.objects.exists()


def test_a_copy_is_a_fact_of_its_own_time(tenant: Tenant) -> None:
    say()
    copied = Fact.objects.get(end_user__external_id="seeded-3", content__contains="(10)")
    model = Fact.objects.get(end_user__external_id="seeded-0", content=copied.content)
    behind = model.last_confirmed_at - copied.last_confirmed_at
    assert timedelta(0) < behind < timedelta(days=7)
    for name in ("expires_at", "forget_at", "created_at"):
        assert getattr(model, name) - getattr(copied, name) == behind
    revision = FactRevision.objects.get(fact=copied)
    # PostgreSQL writes moments without the zeros at their ends.
    assert {**revision.after, **dict.fromkeys(REVISED_MOMENTS)} == {
        **snapshot(copied),
        **dict.fromkeys(REVISED_MOMENTS),
    }
    assert revision.created_at == copied.created_at


def test_as_much_goes_as_it_says_and_again_nine_days_later(tenant: Tenant) -> None:
    say()
    now = timezone.now()
    for as_of in (now, now + timedelta(days=9)):
        done = decay.forget(tenant=tenant, now=now, as_of=as_of, trigger=COMMAND)
        assert done.state == DecayPass.PassState.DONE
        taken = {name: done.counts[name] for name in ("facts", "expired", "purged")}
        assert taken == {"facts": 16, "expired": 8, "purged": 8}
        # Not of all: what was written a few days ago is near enough.
        assert 0 < done.counts["refreshed"] < 300
    assert Fact.objects.filter(status=Status.TRASHED).count() == 48


def test_it_refuses_a_tenant_that_has_people(tenant: Tenant) -> None:
    factories.end_user(tenant)
    with pytest.raises(CommandError, match="--force"):
        say()
    assert not Fact.objects.exists()
    say("--force", people=2)
    say("--force", people=1, facts=1)
    assert Fact.objects.count() == 101
    assert invariants.check() == []


@pytest.mark.parametrize(("people", "facts"), [(0, 50), (1, 0), (1, 5_001)])
def test_it_refuses_what_makes_no_sense(tenant: Tenant, people: int, facts: int) -> None:
    with pytest.raises(CommandError, match="--people takes"):
        say(people=people, facts=facts)


def test_talk_is_sound_and_finished_but_for_what_waits_for_people(tenant: Tenant) -> None:
    say("--talk", people=25, facts=5)
    assert invariants.check() == []
    assert Fact.objects.filter(end_user__external_id="seeded-0", status=Status.ACTIVE).count() > 400
    assert Turn.objects.filter(end_user__external_id="seeded-0").count() == 2_000
    assert Session.objects.exclude(end_user__external_id="seeded-0").count() == 24
    assert Episode.objects.count() == Session.objects.count()
    assert ReviewItem.objects.waiting().count() == 5
    assert not Episode.objects.unembedded().exists()
    assert not SessionQueue.objects.filter(due_at__isnull=False).exists()
