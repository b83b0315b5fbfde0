"""Diary entries are found by meaning, too: their vectors, and the words of entries that are there."""

import hashlib

import django.db.models.deletion
import pgvector.django.halfvec
from django.db import migrations, models

from memories.db.together import Together
from memories.scoring import terms

# As in 0003_cascades_and_storage and 0004_unsampled_columns.
VECTORS = """
ALTER TABLE memories_diaryvector ADD CONSTRAINT diary_vector_of_entry
    FOREIGN KEY (entry_id) REFERENCES memories_diaryentry (id) ON DELETE CASCADE;
"""
NO_VECTORS = "ALTER TABLE memories_diaryvector DROP CONSTRAINT diary_vector_of_entry"
UNSAMPLED = """
ALTER TABLE memories_diaryvector ALTER COLUMN language SET STATISTICS 0, ALTER COLUMN vector SET STATISTICS 0,
    ALTER COLUMN text_digest SET STATISTICS 0;
ALTER TABLE memories_diaryentry ALTER COLUMN content_hash SET STATISTICS 0, ALTER COLUMN terms SET STATISTICS 0,
    ALTER COLUMN embedded_hash SET STATISTICS 0;
"""
STEP = 500


def count_words(apps, _schema):
    """Write what DiaryEntry.set_text() sets beside each text."""
    rows = apps.get_model("memories", "DiaryEntry").objects
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    for at in range(0, len(ids), STEP):
        entries = list(rows.filter(pk__in=ids[at : at + STEP]))
        for entry in entries:
            text = f"{entry.topic}\n{entry.content}" if entry.topic else entry.content
            entry.content_hash, entry.terms = hashlib.sha256(text.encode()).digest(), terms.pack(text)
        rows.bulk_update(entries, ["content_hash", "terms"])


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0025_lost_evidence'),
    ]

    operations = [
        Together([
            migrations.CreateModel(
                name='DiaryVector',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('language', models.CharField(help_text='zh, or en for everything else.', max_length=2)),
                    ('vector', pgvector.django.halfvec.HalfVectorField()),
                    ('text_digest', models.BinaryField(help_text="The entry's content_hash when it was made.", max_length=32)),
                    ('end_user', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.enduser')),
                    ('entry', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='vectors', to='memories.diaryentry')),
                    ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memories.embeddingspace')),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'diary vector',
                    'verbose_name_plural': 'diary vectors',
                    'indexes': [models.Index(fields=['end_user', 'space'], name='diary_vector_of_end_user_idx')],
                    'constraints': [models.UniqueConstraint(fields=('entry', 'space'), name='diary_vector_once')],
                },
            ),
            migrations.AddField(
                model_name='diaryentry',
                name='content_hash',
                field=models.BinaryField(default=b'', help_text='Of topic and text.', max_length=32),
            ),
            migrations.AddField(
                model_name='diaryentry',
                name='embedded_hash',
                field=models.BinaryField(help_text='content_hash of the text that was embedded.', max_length=32, null=True),
            ),
            migrations.AddField(
                model_name='diaryentry',
                name='terms',
                field=models.BinaryField(help_text='Stems of its words, for search.', null=True),
            ),
            migrations.AddIndex(
                model_name='diaryentry',
                index=models.Index(condition=models.Q(('embedded_hash', None), models.Q(('embedded_hash', models.F('content_hash')), _negated=True), _connector='OR'), fields=['-created_at'], name='diary_entry_unembedded_idx'),
            ),
        ]),
        migrations.RunSQL(VECTORS, NO_VECTORS),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunPython(count_words, migrations.RunPython.noop),
    ]
