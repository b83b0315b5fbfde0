import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models


# What waits already is asked about like what will.
FORWARD = """
INSERT INTO memories_reviewitem
    (id, tenant_id, end_user_id, kind, reason, fact_id, extraction_id, state, version, decided_by, note, created_at)
SELECT gen_random_uuid(), tenant_id, end_user_id,
    CASE WHEN 'instructions' = ANY(flags) THEN 'flagged' WHEN 'possible_secret' = ANY(flags) THEN 'held'
        ELSE 'quarantined' END,
    CASE WHEN 'instructions' = ANY(flags) THEN 'instructions' WHEN 'possible_secret' = ANY(flags) THEN 'possible_secret'
        WHEN trust = 'tool' THEN 'tool_trust' WHEN trust = 'assistant' THEN 'assistant_trust' ELSE 'suggested' END,
    id, extraction_id, 'open', 1, '', '', created_at
FROM memories_fact WHERE status = 'pending';
"""


class Migration(migrations.Migration):
    """What waits for a person, relations of facts, versions of the profile, and which key posted a turn."""

    dependencies = [("memories", "0010_endpoint_confirmed")]
    operations = [
        migrations.CreateModel(
            name="FactRelation",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("related_to", "Related To"),
                            ("supersedes", "Supersedes"),
                            ("contradicts", "Contradicts"),
                            ("derived_from", "Derived From"),
                        ],
                        max_length=12,
                    ),
                ),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="ProfileRevision",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "section",
                    models.CharField(
                        choices=[
                            ("work_context", "Work"),
                            ("personal_context", "Personal"),
                            ("top_of_mind", "Current focus"),
                            ("recent_months", "Recent"),
                            ("earlier_context", "Earlier"),
                            ("long_term_background", "Background"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "version",
                    models.PositiveIntegerField(
                        help_text="Of the section; empty: proposed and never written.", null=True
                    ),
                ),
                ("verb", models.CharField(max_length=20)),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[("run", "Run"), ("operator", "Operator"), ("key", "Key"), ("command", "Command")],
                        max_length=8,
                    ),
                ),
                ("actor_id", models.CharField(blank=True, max_length=36)),
                ("before", models.TextField(blank=True)),
                ("after", models.TextField(blank=True)),
                ("binding_before", models.BooleanField(default=False)),
                ("reason", models.TextField(blank=True, max_length=2000)),
                ("change_set", models.UUIDField(editable=False, null=True)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="ReviewItem",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("quarantined", "Quarantined"),
                            ("conflict", "Conflict"),
                            ("possible_duplicate", "Possible duplicate"),
                            ("flagged", "Flagged"),
                            ("held", "Held"),
                        ],
                        max_length=18,
                    ),
                ),
                (
                    "reason",
                    models.CharField(
                        choices=[
                            ("assistant_trust", "Only the assistant said it"),
                            ("tool_trust", "Only a tool said it"),
                            ("suggested", "Found by simple rules"),
                            ("less_sure", "Less sure than what is known"),
                            ("outranked", "Contradicts what somebody of more trust said"),
                            ("operators_word", "Contradicts an operator's word"),
                            ("refused_before", "Said again after it was refused"),
                            ("near_refused", "Close to what was refused"),
                            ("removal", "No longer true, says a source of less trust"),
                            ("not_judged", "Close to what is known"),
                            ("instructions", "Speaks to a model"),
                            ("possible_secret", "May hold a secret"),
                        ],
                        max_length=20,
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("approved", "Approved"),
                            ("rejected", "Rejected"),
                            ("kept_both", "Kept both"),
                            ("merged", "Merged"),
                            ("settled", "Settled"),
                        ],
                        default="open",
                        max_length=9,
                    ),
                ),
                ("version", models.PositiveIntegerField(default=1)),
                (
                    "change_set",
                    models.UUIDField(editable=False, help_text="The revisions that the decision made.", null=True),
                ),
                ("decided_by", models.CharField(blank=True, help_text="Id of the operator.", max_length=36)),
                ("note", models.TextField(blank=True, help_text="Why it was decided so.", max_length=2000)),
                ("created_at", models.DateTimeField()),
                ("decided_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["created_at", "id"],
            },
        ),
        migrations.AddField(
            model_name="factrevision",
            name="change_set",
            field=models.UUIDField(
                editable=False, help_text="Shared by the revisions of one decision: what is undone together.", null=True
            ),
        ),
        migrations.AddField(
            model_name="turn",
            name="key_id",
            field=models.UUIDField(editable=False, help_text="Of the API key that posted it.", null=True),
        ),
        migrations.AddIndex(
            model_name="factrevision",
            index=models.Index(
                condition=models.Q(("change_set", None), _negated=True),
                fields=["change_set"],
                name="revision_change_set_idx",
            ),
        ),
        migrations.AddIndex(
            model_name="factrevision",
            index=models.Index(fields=["actor_id"], name="revision_actor_idx"),
        ),
        migrations.AddField(
            model_name="factrelation",
            name="fact",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="relations",
                to="memories.fact",
            ),
        ),
        migrations.AddField(
            model_name="factrelation",
            name="target",
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memories.fact"),
        ),
        migrations.AddField(
            model_name="profilerevision",
            name="end_user",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="profile_revisions",
                to="memories.enduser",
            ),
        ),
        migrations.AddField(
            model_name="profilerevision",
            name="extraction",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="memories.extractionrun",
            ),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="end_user",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="review_items",
                to="memories.enduser",
            ),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="extraction",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="memories.extractionrun"
            ),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="fact",
            field=models.ForeignKey(
                help_text="What is proposed.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="review_items",
                to="memories.fact",
            ),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="known",
            field=models.ForeignKey(
                help_text="What it stands against.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="memories.fact",
            ),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="proposed_section",
            field=models.ForeignKey(
                help_text="Of the profile, instead.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="memories.profilerevision",
            ),
        ),
        migrations.AddField(
            model_name="reviewitem",
            name="tenant",
            field=models.ForeignKey(
                db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memories.tenant"
            ),
        ),
        migrations.AddConstraint(
            model_name="factrelation",
            constraint=models.UniqueConstraint(fields=("fact", "target", "type"), name="relation_once"),
        ),
        migrations.AddConstraint(
            model_name="factrelation",
            constraint=models.CheckConstraint(
                condition=models.Q(("fact", models.F("target")), _negated=True), name="relation_to_another"
            ),
        ),
        migrations.AddIndex(
            model_name="profilerevision",
            index=models.Index(fields=["end_user", "section", "-created_at"], name="profile_revision_idx"),
        ),
        migrations.AddIndex(
            model_name="profilerevision",
            index=models.Index(
                condition=models.Q(("change_set", None), _negated=True),
                fields=["change_set"],
                name="profile_change_set_idx",
            ),
        ),
        migrations.AddIndex(
            model_name="reviewitem",
            index=models.Index(
                condition=models.Q(("state", "open")), fields=["tenant", "created_at"], name="review_waiting_idx"
            ),
        ),
        migrations.AddIndex(
            model_name="reviewitem",
            index=models.Index(fields=["end_user", "-created_at"], name="review_of_end_user_idx"),
        ),
        migrations.AddConstraint(
            model_name="reviewitem",
            constraint=models.UniqueConstraint(
                condition=models.Q(("proposed_section", None), ("state", "open")),
                fields=("fact", "known", "kind"),
                name="review_open_once",
                nulls_distinct=False,
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="trust_assistant",
            field=models.BooleanField(
                default=False,
                help_text="On: what only the assistant said is served without review; people's words stay above.",
            ),
        ),
        migrations.RunSQL(FORWARD, migrations.RunSQL.noop),
    ]
