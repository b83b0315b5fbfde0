"""roll_back: says what it would do, and does it when told to."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memories import audit
from memories.audit import Actor
from memories.models import AuditEvent, Fact, Session
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(db: None) -> Session:
    """A session with one fact that its run made."""
    session = factories.session(factories.end_user(factories.tenant(slug="acme")), agent_id="evil")
    run = factories.run(session)
    fact = factories.fact(session.end_user, "Likes tea", extraction=run)
    audit.revise(fact=fact, verb="extract", actor=Actor.run(run), before={}, reason="", now=NOW)
    return session


def say(*arguments: str) -> str:
    said = StringIO()
    call_command("roll_back", "--tenant", "acme", *arguments, stdout=said)
    return said.getvalue()


def test_without_confirm_it_only_counts(session: Session) -> None:
    said = say("--session", str(session.pk))
    assert "Facts to the trash: 1" in said
    assert "Nothing is changed yet" in said
    assert "tea" not in said
    assert Fact.objects.get().status == "active"


@pytest.mark.parametrize("by", ["session", "agent", "time", "person"])
def test_with_confirm_it_is_done(session: Session, by: str) -> None:
    given: dict[str, tuple[str, ...]] = {
        "session": ("--session", str(session.pk)),
        "agent": ("--agent", "Evil"),
        "time": ("--since", "2026-11-03T09:12:00Z", "--until", "2026-11-03 09:12:01"),
        "person": ("--agent", "evil", "--user", session.end_user.external_id),
    }
    assert "Done as " in say(*given[by], "--confirm")
    event = AuditEvent.objects.get()
    assert (Fact.objects.get().status, event.verb, event.actor_kind) == ("trashed", "roll_back", "command")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--user", "nobody", "--agent", "evil"),
        ("--session", "01a201b8-2386-7e1d-b4b8-42d7243c21a1"),
        ("--session", "nonsense"),
        ("--key", "nonsense"),
        ("--since", "yesterday"),
        ("--since", "2026-13-41T00:00:00Z"),
    ],
)
def test_what_is_not_there_is_said(session: Session, arguments: Any) -> None:
    with pytest.raises(CommandError):
        say(*arguments, "--confirm")
    assert Fact.objects.get().status == "active"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--user", "lni", "--agent", "evil"), "There is no person lni in the tenant acme."),
        (("--session", "s-9"), "There is no session s-9 in the tenant acme."),
        (("--key", "mh_nope"), "There is no API key mh_nope in the tenant acme."),
    ],
)
def test_a_mistyped_name_is_told_with_its_tenant(session: Session, arguments: Any, says: str) -> None:
    with pytest.raises(CommandError) as error:
        say(*arguments)
    assert str(error.value) == says


def test_what_there_is_none_of_is_not_listed(session: Session) -> None:
    assert [line.partition(":")[0] for line in say("--session", str(session.pk)).splitlines()] == [
        "Facts to the trash",
        "Nothing is changed yet",
    ]


def test_a_key_is_named_by_its_prefix(session: Session) -> None:
    key, _ = factories.api_key(session.tenant)
    assert "Facts to the trash: 0" in say("--key", key.prefix)
