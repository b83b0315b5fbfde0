"""retain: what a pass would delete, and a pass here and now."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories.models import EndUser, Episode, RetentionPass, Tenant
from memories.privacy import retention
from memories.privacy.expiry import passes
from tests import factories
from tests.factories import COMMAND
from tests.privacy.retained import DAY

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant(slug="acme", keep_episodes_days=30)


@pytest.fixture(autouse=True)
def person(tenant: Tenant) -> EndUser:
    person = factories.end_user(tenant)
    factories.episode(factories.session(person), "Secretly likes tea", now=timezone.now() - 31 * DAY)
    return person


def say(*arguments: str) -> str:
    said = StringIO()
    call_command("retain", "--tenant", "acme", *arguments, stdout=said)
    return said.getvalue()


def test_without_confirmation_it_only_says_what_would_go() -> None:
    said = say()
    assert "1 episodes" in said
    assert "Nothing was deleted" in said
    assert Episode.objects.exists()
    assert not RetentionPass.objects.exists()


def test_confirmed_it_deletes_and_says_counts_alone() -> None:
    said = say("--confirm")
    assert "1 episodes" in said
    assert "tea" not in said
    assert RetentionPass.objects.get().finished_at
    assert "0 episodes" in say()


def test_it_can_be_another_moment() -> None:
    assert "0 episodes" in say("--now", "2026-01-01")
    assert "0 episodes" in say("--now", "2026-01-01", "--confirm")


def test_beside_another_pass_it_says_so(tenant: Tenant) -> None:
    row = retention.run(tenant=tenant, actor=COMMAND, now=timezone.now())
    assert passes.claim(row)
    with pytest.raises(CommandError, match="pass is running"):
        say("--confirm")
