"""A refusal knows who refused: what a key refused, a key may state again."""

from django.db import migrations, models

# A fact that a key forgot has a revision of that very moment. Where none is left, an operator's refusal is assumed.
FILL = """
    UPDATE memories_factrefusal refusal SET actor_kind = 'key', actor_id = revision.actor_id
    FROM memories_factrevision revision
    WHERE revision.fact_id = refusal.fact_id AND revision.created_at = refusal.created_at
        AND revision.verb = 'forget' AND revision.actor_kind = 'key'
"""

KINDS = [
    ("run", "Extraction"), ("operator", "Operator"), ("key", "Application"), ("command", "Command"),
    ("decay", "Decay pass"), ("link", "One-time link"),
]  # fmt: skip


class Migration(migrations.Migration):
    dependencies = [("memories", "0012_change_sets")]
    operations = [
        migrations.AddField(
            "factrefusal", "actor_kind", models.CharField(choices=KINDS, default="operator", max_length=8)
        ),
        migrations.AddField("factrefusal", "actor_id", models.CharField(blank=True, max_length=36)),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
