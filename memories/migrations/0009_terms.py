from django.db import migrations, models

from memories.scoring import terms

AT_ONCE = 500
HIDDEN = {"hide_from_ui": True}


def count_terms(apps, schema_editor):
    """Turns and facts that are stored already are found by their words like new ones."""
    turns = apps.get_model("memories", "Turn").objects.exclude(role="system").exclude(metadata__contains=HIDDEN)
    _count(turns.exclude(content=""))
    _count(apps.get_model("memories", "Fact").objects.all())


def _count(rows):
    while some := list(rows.filter(terms=None).only("pk", "content")[:AT_ONCE]):
        for row in some:
            row.terms = terms.pack(terms.count(row.content))
        rows.model.objects.bulk_update(some, ["terms"])


class Migration(migrations.Migration):
    """What turns and facts are found by: their words, as hashes with counts."""

    dependencies = [("memories", "0008_embeddings")]
    operations = [
        migrations.AddField(
            model_name="fact",
            name="terms",
            field=models.BinaryField(editable=False, help_text="Hashes of the content's words with their counts.", null=True),
        ),
        migrations.AddField(
            model_name="turn",
            name="terms",
            field=models.BinaryField(
                editable=False,
                help_text="Hashes of the words with their counts (scoring.terms); empty: not searched.",
                null=True,
            ),
        ),
        migrations.RunPython(count_terms, migrations.RunPython.noop, elidable=True),
    ]
