"""create_api_key: the key alone on standard output, and nothing made when something is wrong."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories.curation.access.keys import authenticate_key
from memories.models import APIKey, AuditEvent, Scope, Tenant
from tests import factories

pytestmark = pytest.mark.django_db


def create(*arguments: str, tenant: str = "acme", scopes: str = "ingest,read") -> str:
    said = StringIO()
    call_command("create_api_key", "--tenant", tenant, "--scopes", scopes, *arguments, stdout=said)
    return said.getvalue()


def test_the_key_alone_is_printed_and_works() -> None:
    said = create("--name", "客服机器人")
    assert said.count("\n") == 1
    key = authenticate_key(plaintext=said.rstrip("\n"), now=timezone.now())
    assert key
    assert (key.tenant.slug, key.scopes, key.name) == ("acme", ["ingest", "read"], "客服机器人")
    assert key.expires_at == key.created_at + timedelta(days=365)
    assert (key.user_id, key.agent_id, key.writes_as) == ("", "", "user")


@pytest.mark.parametrize(
    ("arguments", "bound"),
    [
        (["--user", "u-1"], ("u-1", "", "user")),
        (["--agent", "Support"], ("", "support", "agent")),
        (["--user", "安娜", "--agent", "a", "--writes-as", "user"], ("安娜", "a", "user")),
        (["--writes-as", "agent"], ("", "", "agent")),
    ],
)
def test_a_key_is_for_one_person_or_agent(arguments: list[str], bound: tuple[str, str, str]) -> None:
    create(*arguments)
    key = APIKey.objects.get()
    assert (key.user_id, key.agent_id, key.writes_as) == bound


def test_a_key_chooses_whose_memory_its_sessions_become() -> None:
    create("--memory-of", "agent")
    create()
    assert list(APIKey.objects.order_by("created_at").values_list("memory_of", flat=True)) == ["agent", ""]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--user", "u\n1"], "--user: An id has"),
        (["--user", "u" * 256], "--user: An id has"),
        (["--agent", " "], "--agent: An id has"),
        (["--agent", "İ" * 255], "--agent: The name becomes too long"),
        (["--writes-as", "tool"], "--writes-as"),
        (["--memory-of", "tool"], "--memory-of"),
        (["--expires-days", "-1"], "--expires-days"),
        (["--expires-days", "soon"], "--expires-days"),
        (["--expires-days", "36501"], "--expires-days"),
    ],
)
def test_what_no_key_is_for(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError) as refused:
        create(*arguments)
    assert message in str(refused.value)
    assert not APIKey.objects.exists()
    assert not Tenant.objects.exists()


@pytest.mark.parametrize(("days", "lives"), [("0", None), ("1", timedelta(days=1)), ("36500", timedelta(days=36500))])
def test_how_long_it_lives(days: str, lives: timedelta | None) -> None:
    create("--expires-days", days)
    key = APIKey.objects.get()
    assert (key.expires_at and key.expires_at - key.created_at) == lives


def test_a_missing_tenant_is_made_and_a_known_one_kept() -> None:
    known = factories.tenant(slug="known", name="Known")
    create(tenant="known")
    create(tenant="new-one")
    assert set(Tenant.objects.values_list("slug", "name")) == {("known", "Known"), ("new-one", "")}
    assert APIKey.objects.filter(tenant=known).count() == 1


def test_it_leaves_events_of_a_command() -> None:
    create()
    told = AuditEvent.objects.order_by("id").values_list("verb", "object_type", "actor_kind")
    assert list(told) == [("add", "Tenant", "command"), ("create", "APIKey", "command")]


@pytest.mark.parametrize(
    ("written", "scopes"),
    [
        ("read", ["read"]),
        (" write , read ", ["write", "read"]),
        ("read,read,", ["read"]),
        ("ingest,read,write,privacy", ["ingest", "read", "write", "privacy"]),
    ],
)
def test_scopes(written: str, scopes: list[str]) -> None:
    create(scopes=written)
    assert APIKey.objects.get().scopes == scopes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"scopes": "read,admin"},
            "--scopes takes a comma-separated list of ingest, read, write, privacy, read_all; got 'read,admin'.",
        ),
        ({"scopes": "READ"}, "--scopes takes"),
        ({"scopes": ""}, "--scopes takes"),
        ({"scopes": " , "}, "--scopes takes"),
        ({"tenant": "acme prod"}, "--tenant takes a slug of 1 to 63 letters, digits, - and _; got 'acme prod'."),
        ({"tenant": "应用"}, "--tenant takes"),
        ({"tenant": ""}, "--tenant takes"),
        ({"tenant": "a" * 64}, "--tenant takes"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_made(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(CommandError) as refused:
        create(**arguments)
    assert message in str(refused.value)
    assert not APIKey.objects.exists()
    assert not Tenant.objects.exists()


def test_the_longest_slug_and_name() -> None:
    create("--name", "n" * 100, tenant="a" * 63)
    assert APIKey.objects.get().name == "n" * 100
    with pytest.raises(CommandError, match="--name"):
        create("--name", "n" * 101, tenant="other")
    assert not Tenant.objects.filter(slug="other").exists()


@pytest.mark.parametrize("missing", ["--tenant", "--scopes"])
def test_both_are_required(missing: str) -> None:
    given = {"--tenant": "acme", "--scopes": "read"}
    del given[missing]
    with pytest.raises(CommandError, match=missing):
        call_command("create_api_key", *[word for pair in given.items() for word in pair])
    assert Scope.values == ["ingest", "read", "write", "privacy", "read_all"]
