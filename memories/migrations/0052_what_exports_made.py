"""Rows of an import can be of more kinds: what an export of a hub made, and people who are there by the import alone."""

from django.db import migrations, models

KINDS = [
    ("turns", "Messages"),
    ("left", "Messages of a branch that was left"),
    ("back", "Messages of a branch that was taken back"),
    ("fact", "Facts"),
    ("section", "Sections of profiles"),
    ("asked", "Sections pending review"),
    ("file", "Memory files"),
    ("item", "Store items"),
    ("person", "End users"),
    ("record", "Records of end users"),
    ("session", "Sessions"),
    ("episode", "Episodes"),
    ("refusal", "Refusals"),
    ("profile", "Sections with their history"),
    ("history", "Versions of sections"),
    ("diary", "Diary entries"),
    ("entity", "Entities"),
    ("triple", "Relations"),
    ("group", "Groups"),
    ("member", "Members of groups"),
    ("said", "Facts of groups"),
]


class Migration(migrations.Migration):
    dependencies = [("memories", "0051_answers_of_models")]

    operations = [
        migrations.AlterField(
            model_name="importedrow", name="kind", field=models.CharField(choices=KINDS, max_length=7)
        ),
    ]
