"""The log of contexts. What is deleted for good takes the texts along that repeat it."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

from memories.models.access.roles import grant


# As in 0004_unsampled_columns.
UNSAMPLED = "ALTER TABLE memories_loggedcontext " + ", ".join(
    f"ALTER COLUMN {column} SET STATISTICS 0"
    for column in ("agent_id", "query", "memory", "items", "rests_on", "revision")
)
# Memories are deleted for good in many places: trash, retention, sessions, redactions. Each locks the person first, and
# so does the writer of the log.
FORGET = """
CREATE FUNCTION memories_forget_logged_texts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := array(SELECT id FROM gone);
BEGIN
    IF ids <> '{}' THEN
        UPDATE memories_loggedcontext SET query = '', memory = ''
        WHERE rests_on && ids AND rests_on <> '{}' AND (query <> '' OR memory <> '');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER logged_texts_of_facts AFTER DELETE ON memories_fact
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
CREATE TRIGGER logged_texts_of_episodes AFTER DELETE ON memories_episode
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
CREATE TRIGGER logged_texts_of_turns AFTER DELETE ON memories_turn
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = """
DROP TRIGGER logged_texts_of_turns ON memories_turn;
DROP TRIGGER logged_texts_of_episodes ON memories_episode;
DROP TRIGGER logged_texts_of_facts ON memories_fact;
DROP FUNCTION memories_forget_logged_texts();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0026_rewritten_summaries"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="context_log",
            field=models.CharField(
                choices=[
                    ("off", "Nothing"),
                    ("ids", "Which memories it had, and their scores"),
                    ("texts", "The question and the context, too"),
                ],
                default="ids",
                help_text="What is kept of each context served, for as many days as set under “Retention”.",
                max_length=5,
                verbose_name="log of contexts",
            ),
        ),
        migrations.AlterField(
            model_name="retentionpass",
            name="counts",
            field=models.JSONField(
                blank=True, default=dict, help_text="turns, sessions, episodes, runs, audit, exports, contexts."
            ),
        ),
        migrations.AlterField(
            model_name="retentionpass",
            name="stage",
            field=models.CharField(
                choices=[
                    ("turns", "Turns"),
                    ("episodes", "Episodes"),
                    ("runs", "Runs"),
                    ("audit", "Audit events"),
                    ("exports", "Exports"),
                    ("contexts", "Log of contexts"),
                ],
                default="turns",
                max_length=8,
            ),
        ),
        migrations.CreateModel(
            name="LoggedContext",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("agent_id", models.CharField(blank=True, editable=False, max_length=255, verbose_name="agent")),
                (
                    "session_id",
                    models.UUIDField(
                        editable=False, help_text="The conversation, if it was named and known.", null=True
                    ),
                ),
                ("key_id", models.UUIDField(editable=False, help_text="Of the API key that asked.", null=True)),
                ("asked", models.BooleanField(default=False, editable=False, help_text="Whether there was a query.")),
                (
                    "query",
                    models.TextField(blank=True, editable=False, help_text="Empty unless the tenant keeps texts."),
                ),
                (
                    "memory",
                    models.TextField(
                        blank=True, editable=False, help_text="The block as served, if the tenant keeps texts."
                    ),
                ),
                (
                    "items",
                    models.JSONField(
                        default=list, editable=False, help_text="kind, id and score of each memory in it."
                    ),
                ),
                (
                    "left_out",
                    models.PositiveIntegerField(
                        default=0, editable=False, help_text="Memories beyond budget and limits."
                    ),
                ),
                (
                    "rests_on",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(),
                        default=list,
                        editable=False,
                        help_text="Facts of other people; where texts are kept, all facts, episodes and turns.",
                        size=None,
                    ),
                ),
                ("token_count", models.PositiveIntegerField(default=0, editable=False)),
                ("max_tokens", models.PositiveIntegerField(default=0, editable=False)),
                (
                    "as_of",
                    models.DateTimeField(
                        editable=False, help_text="The moment in the past that was asked for.", null=True
                    ),
                ),
                (
                    "revision",
                    models.CharField(blank=True, editable=False, help_text="As the answer had it.", max_length=32),
                ),
                ("took_ms", models.PositiveIntegerField(default=0, editable=False)),
                ("created_at", models.DateTimeField(editable=False, verbose_name="time")),
                (
                    "end_user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="logged_contexts",
                        to="memories.enduser",
                        verbose_name="end user",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="memories.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "logged context",
                "verbose_name_plural": "logged contexts",
                "ordering": ["-created_at", "-id"],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["end_user", "-created_at", "-id"], name="logged_context_newest_idx"),
                    models.Index(fields=["-created_at", "-id"], name="logged_context_time_idx"),
                    django.contrib.postgres.indexes.GinIndex(
                        condition=models.Q(("rests_on", []), _negated=True),
                        fields=["rests_on"],
                        name="logged_context_rests_on_idx",
                    ),
                ],
            },
        ),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunSQL(FORGET, KEEP),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
