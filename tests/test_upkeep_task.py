"""The worker's upkeep: begun behind a pass, in slices, and without anything but its name in the queue."""

import pytest
from django.conf import LazySettings
from django.utils import timezone
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from memories import tasks
from memories.forgetting import decay_passes, upkeep
from memories.models import DecayPass, EndUser, Fact
from tests import factories
from tests.forgetting.upkeeping import DAY, old, passed, stale, switch
from tests.model import Model, install

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Model:
    switch(monkeypatch)
    return install(settings, monkeypatch)


def queued() -> list[str]:
    found = [SignedPackage.loads(payload) for payload in OrmQ.objects.values_list("payload", flat=True)]
    assert not any(task["args"] or task["kwargs"] for task in found)
    return [task["func"] for task in found]


def neglected() -> EndUser:
    person = factories.end_user()
    old(person, now=timezone.now() - 100 * DAY)
    return person


def test_a_night_wakes_it(model: Model) -> None:
    tenant = neglected().tenant
    tenant.decayed_on = timezone.now().date() + DAY
    tenant.save()
    now = timezone.now()
    decay_passes.begin(tenant=tenant, trigger=DecayPass.Trigger.SCHEDULE, as_of=now, now=now)
    tasks.forget()
    assert queued() == ["memories.tasks.keep_up"]
    model.answers.append(stale(1))
    assert tasks.keep_up() == 1
    assert Fact.objects.filter(status="archived").count() == 1
    OrmQ.objects.all().delete()
    tasks.forget()
    assert queued() == []


def test_a_slice_at_a_time(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "UPKEEP_SECONDS", -1.0)
    person = neglected()
    old(factories.end_user(person.tenant), now=timezone.now() - 100 * DAY)
    upkeep.begin(passed(person))
    model.answers += [stale(1), stale(1)]
    assert [tasks.keep_up() for _ in range(3)] == [0, 0, 1]
    assert queued() == ["memories.tasks.keep_up"] * 2
    assert len(model.prompts) == 2
