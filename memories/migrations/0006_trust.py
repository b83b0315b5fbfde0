"""Profile sections keep whose words they are made of; turns that address a model are flagged; imports can conflict."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

from memories.db.together import Together

TRUSTS = [("operator", "Operator"), ("user", "User"), ("assistant", "Assistant"), ("tool", "Tool")]
REASONS = [
    ("assistant_trust", "Only the assistant said it"),
    ("tool_trust", "Only a tool said it"),
    ("suggested", "Found by simple rules"),
    ("less_sure", "Less sure than what is known"),
    ("outranked", "Contradicts what somebody of more trust said"),
    ("operators_word", "Contradicts an operator's word"),
    ("refused_before", "Said again after it was refused"),
    ("near_refused", "Close to what was refused"),
    ("removal", "No longer true, says a source of less trust"),
    ("other_person", "Differs between two people who were merged"),
    ("imported", "Imported, and at odds with what is known"),
    ("not_judged", "Close to what is known"),
    ("instructions", "Speaks to a model"),
    ("possible_secret", "May hold a secret"),
    ("poor_quality", "Says too little of its conversation"),
]
FLAGGED = "An assistant's or a tool's that speaks to a model: no context recalls it. Empty: not judged yet."
NUMBERS = "Numbers of the turns that support the text, of the session that the run read."


def trust(help_text):
    return models.CharField(choices=TRUSTS, default="user", max_length=9, help_text=help_text)


def evidence(help_text):
    return ArrayField(
        base_field=models.PositiveIntegerField(), blank=True, default=list, size=None, help_text=help_text
    )


def trust_operators(apps, schema_editor):
    """Give an operator's trust to what operators wrote. Nothing is known of the rest, which keeps the default."""
    alias = schema_editor.connection.alias
    apps.get_model("memories", "ProfileSection").objects.using(alias).filter(binding=True).update(trust="operator")
    revisions = apps.get_model("memories", "ProfileRevision").objects.using(alias)
    revisions.filter(actor_kind="operator").exclude(version=None).update(trust="operator")


class Migration(migrations.Migration):
    replaces = [("memories", name) for name in ("0036_profile_trust", "0037_flagged_turns", "0038_imported_conflicts")]
    dependencies = [("memories", "0005_roles")]
    operations = [
        Together([
            migrations.AddField("profilesection", "trust", trust("Of those whose words the text is made of.")),
            migrations.AddField("profilesection", "evidence", evidence(NUMBERS)),
            migrations.AddField("profilerevision", "trust", trust("Of the text after it.")),
            migrations.AddField("profilerevision", "evidence", evidence("Of the text after it; as of a section.")),
            # Older turns are judged when they are read.
            migrations.AddField("turn", "flagged", models.BooleanField(editable=False, null=True, help_text=FLAGGED)),
            migrations.AlterField("reviewitem", "reason", models.CharField(choices=REASONS, max_length=20)),
        ]),
        migrations.RunPython(trust_operators, migrations.RunPython.noop),
    ]
