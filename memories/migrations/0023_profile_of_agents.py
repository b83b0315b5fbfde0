"""Sections of the profile that are one agent's, beside the person's own."""

from django.db import migrations, models

# As in 0004_unsampled_columns.
UNSAMPLED = """
ALTER TABLE memories_profilesection ALTER COLUMN agent_id SET STATISTICS 0;
ALTER TABLE memories_profilerevision ALTER COLUMN agent_id SET STATISTICS 0;
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0022_memory_of_keys")]
    operations = [
        migrations.AlterModelOptions(
            "profilesection",
            options={
                "ordering": ["end_user", "agent_id", "section"],
                "verbose_name": "profile section",
                "verbose_name_plural": "profile sections",
            },
        ),
        migrations.AddField(
            "profilesection",
            "agent_id",
            models.CharField(
                blank=True, default="", help_text="Whose it is alone; empty: the person's own.", max_length=255
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            "profilerevision",
            "agent_id",
            models.CharField(blank=True, default="", help_text="As of a section.", max_length=255),
            preserve_default=False,
        ),
        migrations.RemoveConstraint("profilesection", "profile_section_once"),
        migrations.AddConstraint(
            "profilesection",
            models.UniqueConstraint(
                fields=["end_user", "tenant", "agent_id", "section"], name="profile_section_once"
            ),
        ),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
    ]
