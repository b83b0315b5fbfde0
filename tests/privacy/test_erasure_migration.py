"""The migration that takes the planner's samples of personal columns away, and keys the digests of kept answers."""

from hashlib import sha256
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection

from memories import conf
from memories.models import IdempotencyRecord
from tests import factories

MIGRATION = import_module("memories.migrations.0031_erasure")
_SAMPLED = "SELECT count(*) FROM pg_stats WHERE tablename = 'memories_turn' AND attname = %s"


def sampled(column: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_SAMPLED, [column])
        return bool(cursor.fetchone()[0])


@pytest.mark.django_db
def test_samples_of_before_are_forgotten_and_none_are_taken_anew() -> None:
    factories.session(factories.end_user(), [("user", f"I live in Leiden ({n})") for n in range(30)])
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE memories_turn ALTER COLUMN content SET STATISTICS 100")
        cursor.execute("ANALYZE memories_turn")
        assert sampled("content")
        cursor.execute(MIGRATION.no_samples() + MIGRATION.FORGET)
        assert not sampled("content")
        cursor.execute("ANALYZE memories_turn")
    assert not sampled("content")
    assert sampled("role")
    assert sampled("created_at")


@pytest.mark.django_db
def test_before_postgresql_18_they_go_as_well() -> None:
    """By naming the type anew."""
    statement = MIGRATION.FORGET.replace(">= 180000", ">= 990000")
    factories.session(factories.end_user(), [("user", f"I live in Leiden ({n})") for n in range(30)])
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        for target in (100, 0):
            cursor.execute(f"ALTER TABLE memories_turn ALTER COLUMN content SET STATISTICS {target}")
            if target:
                cursor.execute("ANALYZE memories_turn")
        assert sampled("content")
        cursor.execute(statement)
    assert not sampled("content")


@pytest.mark.django_db
def test_keys_of_before_are_still_known() -> None:
    plain = sha256(b"key").digest(), sha256(b"request").digest()
    factories.idempotency_record(factories.end_user(), key_digest=plain[0], request_digest=plain[1])
    MIGRATION.key_digests(apps, None)
    record = IdempotencyRecord.objects.get()
    assert bytes(record.key_digest) == conf.digest("idempotency key", plain[0])
    assert bytes(record.request_digest) == conf.digest("idempotency request", plain[1])
