"""The planner keeps no samples of columns that can hold personal data.

Samples would outlive an erasure in `pg_statistic`. Queries are planned by ids, states, numbers and dates, which keep
their statistics. Equality with a caller's id uses unique indexes.
"""

from django.db import migrations

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
UNSAMPLED, DEFAULT = 0, -1


def set_statistics(target):
    statements = []
    for table, columns in PERSONAL.items():
        actions = ", ".join(f'ALTER COLUMN "{column}" SET STATISTICS {target}' for column in columns.split())
        statements.append(f"ALTER TABLE {table} {actions};")
    return "\n".join(statements)


class Migration(migrations.Migration):
    replaces = [("memories", "0031_erasure"), ("memories", "0033_export_links")]
    dependencies = [
        ("memories", "0003_cascades_and_storage"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("axes", "0006_remove_accesslog_trusted"),
        ("django_q", "0012_auto_20200702_1608"),
        ("sessions", "0001_initial"),
    ]
    operations = [migrations.RunSQL(set_statistics(UNSAMPLED), set_statistics(DEFAULT))]
