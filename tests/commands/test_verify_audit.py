"""verify_audit and export_audit: what they say, their exit codes, and what they leave in the trail."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from memories import audit
from memories.models import AuditEvent, Tenant
from memories.privacy.trail import heads, sealing
from tests import factories
from tests.factories import COMMAND, NOW

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def tenant(tmp_path: Path, settings: Any) -> Tenant:
    """With two events that are sealed, and one that is not."""
    settings.MEMORYHUB_ERASURE_LEDGER = str(tmp_path / "erasures.jsonl")
    tenant = factories.tenant(slug="acme")
    for verb in ("add", "edit"):
        record(tenant, verb)
    sealing.seal(now=NOW, seconds=60.0, wait_seconds=0.0)
    record(tenant, "forget")
    return tenant


def record(tenant: Tenant, verb: str) -> AuditEvent:
    return audit.record(actor=COMMAND, verb=verb, target=Tenant, object_id=tenant.pk, tenant=tenant, now=NOW)


def say(command: str, *arguments: str) -> str:
    said = StringIO()
    call_command(command, *arguments, stdout=said)
    return said.getvalue()


@pytest.mark.parametrize("arguments", [(), ("--tenant", "acme")])
def test_a_chain_that_holds(arguments: tuple[str, ...]) -> None:
    assert "acme: 2 sealed in 1 link, 1 not yet, 0 pruned. It holds." in say("verify_audit", *arguments)


def test_one_that_does_not_says_where_and_fails(tenant: Tenant) -> None:
    first = AuditEvent.objects.earliest("pk")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE memories_auditevent SET verb = 'approve' WHERE id = %s", [first.pk])
        cursor.execute("SET LOCAL session_replication_role = origin")
    said = StringIO()
    with pytest.raises(CommandError, match="1 of 1 chains do not hold") as failed:
        call_command("verify_audit", stdout=said)
    assert failed.value.returncode == 1
    assert f"An event was changed after it was sealed. (seal 1, event {first.pk})" in said.getvalue()


def test_a_note_that_is_none_is_said() -> None:
    heads.place().write_text("nonsense")
    with pytest.raises(CommandError, match=r"audit-heads\.json"):
        say("verify_audit")


def test_an_unknown_tenant() -> None:
    with pytest.raises(CommandError, match="no tenant nobody"):
        say("verify_audit", "--tenant", "nobody")


def test_the_export_has_a_line_for_each_event_with_its_seal(tenant: Tenant) -> None:
    record(factories.tenant(), "somebody else's")
    told = [json.loads(line) for line in say("export_audit", "--tenant", "acme").splitlines()]
    assert [(line["verb"], line["seal"]) for line in told] == [("add", 1), ("edit", 1), ("forget", None)]
    assert {line["tenant_uuid"] for line in told} == {str(tenant.pk)}
    left = AuditEvent.objects.latest("pk")
    assert (left.verb, left.object_type, left.actor_kind, left.counts) == (
        "export",
        "AuditEvent",
        "command",
        {"rows": 3},
    )


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [(["--since", "2026-11-03"], 3), (["--since", "2026-11-04"], 0), (["--until", "2026-11-03T09:12:00Z"], 0)],
)
def test_the_export_is_of_a_span_of_time(arguments: list[str], lines: int) -> None:
    assert len(say("export_audit", "--tenant", "acme", *arguments).splitlines()) == lines
