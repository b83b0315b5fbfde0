"""consolidate: what is due of a tenant is extracted here and now."""

from datetime import timedelta
from io import StringIO

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories.capture import flushing
from memories.management.commands import consolidate
from memories.models import EndUser, ExtractionRun, SessionQueue
from tests import factories
from tests.model import Model

pytestmark = pytest.mark.django_db
SAID = (("user", "I live in Leiden"), ("assistant", "Noted"))


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(factories.tenant(slug="acme"))


def say(*arguments: str) -> str:
    said = StringIO()
    call_command("consolidate", "--tenant", "acme", *arguments, stdout=said)
    return said.getvalue()


def test_only_what_is_due_of_this_tenant(model: Model, person: EndUser) -> None:
    due, waits = factories.session(person, SAID, flush=True), factories.session(person, SAID)
    other = factories.session(factories.end_user(), SAID, flush=True)
    assert "1 batch extracted, 0 failed" in say()
    extracted = SessionQueue.objects.exclude(extracted_number=0).values_list("pk", flat=True)
    assert list(extracted) == [due.pk]
    assert {waits.pk, other.pk} == set(SessionQueue.objects.filter(extracted_number=0).values_list("pk", flat=True))


def test_what_will_be_due_by_then(model: Model, person: EndUser) -> None:
    factories.session(person, SAID)
    later = timezone.now() + timedelta(hours=1)
    assert "1 batch extracted" in say("--now", later.isoformat())
    assert "0 batches extracted" in say("--now", later.isoformat())
    assert ExtractionRun.objects.get().started_at >= later


def test_switched_off_it_says_so(settings: LazySettings, person: EndUser) -> None:
    settings.MEMORYHUB_LLM = "off"
    with pytest.raises(CommandError, match="switched off"):
        say()


def test_windows_that_are_due_are_looked_after(model: Model, person: EndUser) -> None:
    session = factories.session(person, [*SAID, ("user", "I sing"), ("assistant", "Nice"), ("user", "I cook")])
    flushing.end_session(tenant=person.tenant, user_id=person.external_id, session_id=session.external_id, agent_id="")
    assert "1 batch extracted, 0 failed, 1 window looked after" in say()
    assert session.episodes.count() == 1
    assert "0 windows looked after" in say()


def test_no_more_than_its_bound(model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidate, "MOST", 1)
    for _ in range(2):
        factories.session(person, SAID, flush=True)
    assert "1 batch extracted" in say()
    assert "1 batch extracted" in say()
    assert "0 batches extracted" in say()
