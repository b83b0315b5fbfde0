import django.contrib.postgres.indexes
from django.db import migrations, models

from memories import conf

# What tells of people, by table: the planner keeps no samples of it, and forgets those that it has. It goes by ids,
# states, numbers and dates, which stay; equality with a caller's id is served by unique indexes.
PERSONAL = {
    "memories_enduser": "external_id display_name time_zone language metadata",
    "memories_session": "external_id agent_id",
    "memories_sessionqueue": "signals",
    "memories_turn": "content parts name tool_calls tool_call_id metadata external_id terms",
    "memories_fact": (
        "content content_hash terms raw structured key value tags source_error agent_id allowed_users allowed_roles"
        " embedded_hash"
    ),
    "memories_factevidence": "quote",
    "memories_factrevision": "before after reason",
    "memories_factmerge": "traces",
    "memories_factrefusal": "digest",
    "memories_reviewitem": "note traces",
    "memories_profilesection": "summary",
    "memories_profilerevision": "before after reason",
    "memories_episode": "summary key_topics actions_taken outcomes content_hash terms embedded_hash",
    "memories_workingmemory": "summary",
    "memories_turnvector": "language vector",
    "memories_factvector": "language vector text_digest",
    "memories_episodevector": "language vector text_digest",
    "memories_idempotencyrecord": "body key_digest request_digest",
    "memories_privacycase": (
        "channel reference extension_reason refusal_reason hold_reason told outcome needles preview counts findings"
        " receipt subject"
    ),
    "memories_privacyexport": "content",
    "memories_tombstone": "digest",
    "django_q_ormq": "payload",
    "django_q_task": "name group args kwargs result",
    "django_q_schedule": "name args kwargs",
    "django_session": "session_data",
    "django_admin_log": "object_id object_repr change_message",
    "axes_accessattempt": "username path_info get_data post_data",
}
# What SET STATISTICS 0 leaves behind: old samples go by a function of PostgreSQL 18, before it by naming the type anew,
# which rewrites nothing.
FORGET = """
DO $$
DECLARE one record;
BEGIN
    FOR one IN
        SELECT attrelid, relname, attname, format_type(atttypid, atttypmod) AS type
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        JOIN pg_statistic ON starelid = attrelid AND staattnum = attnum
        WHERE relnamespace = current_schema()::regnamespace AND attstattarget = 0 AND NOT attisdropped
            AND relkind = 'r'
    LOOP
        IF current_setting('server_version_num')::int >= 180000 THEN
            EXECUTE format('SELECT pg_clear_attribute_stats(%L, %L, %L, false)', current_schema(), one.relname, one.attname);
        ELSE
            EXECUTE format('ALTER TABLE %I ALTER COLUMN %I TYPE %s', one.relname, one.attname, one.type);
        END IF;
    END LOOP;
END $$;
"""
# Serves finding the history of facts that name their readers, when one of these is erased; few name any.
READERS = """
CREATE INDEX revision_readers_idx ON memories_factrevision (fact_id)
WHERE after->'allowed_users' <> '[]' OR before->'allowed_users' <> '[]'
"""
AT_ONCE = 2_000


def no_samples() -> str:
    statements = []
    for table, columns in PERSONAL.items():
        actions = ", ".join(f'ALTER COLUMN "{column}" SET STATISTICS 0' for column in columns.split())
        statements.append(f"ALTER TABLE {table} {actions};")
    return "\n".join(statements)


def key_digests(apps, schema_editor):
    """Plain hashes of keys and requests, which could be guessed, become keyed ones of these hashes."""
    records = apps.get_model("memories", "IdempotencyRecord").objects.order_by("pk")
    last = 0
    while some := list(records.filter(pk__gt=last).only("key_digest", "request_digest")[:AT_ONCE]):
        for record in some:
            record.key_digest = conf.digest("idempotency key", bytes(record.key_digest))
            record.request_digest = conf.digest("idempotency request", bytes(record.request_digest))
        records.model.objects.bulk_update(some, ["key_digest", "request_digest"])
        last = some[-1].pk


class Migration(migrations.Migration):
    """No samples of what tells of people in the planner's statistics; keyed digests of kept answers; an index of the
    facts that name who may read them."""

    dependencies = [
        ("memories", "0030_privacy_cases"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("axes", "0006_remove_accesslog_trusted"),
        ("django_q", "0012_auto_20200702_1608"),
        ("sessions", "0001_initial"),
    ]
    operations = [
        migrations.RunPython(key_digests, migrations.RunPython.noop, elidable=True),
        migrations.AlterField(
            model_name="idempotencyrecord",
            name="request_digest",
            field=models.BinaryField(help_text="Keyed, of path, query and body as they came.", max_length=32),
        ),
        migrations.AddIndex(
            model_name="fact",
            index=django.contrib.postgres.indexes.GinIndex(
                condition=models.Q(("allowed_users", []), _negated=True),
                fields=["allowed_users"],
                name="fact_readers_idx",
            ),
        ),
        migrations.RunSQL(READERS, "DROP INDEX revision_readers_idx"),
        migrations.RunSQL(no_samples() + FORGET, migrations.RunSQL.noop),
    ]
