import django.db.models.deletion
import pgvector.django.halfvec
from django.db import migrations, models


# The database itself takes a vector along with its text, also one that is written while the text is deleted.
# Vectors tell of people's words: the planner keeps no samples of them.
FORWARD = """
ALTER TABLE memories_turnvector ADD CONSTRAINT turn_vector_of_turn
    FOREIGN KEY (turn_id) REFERENCES memories_turn (id) ON DELETE CASCADE;
ALTER TABLE memories_factvector ADD CONSTRAINT fact_vector_of_fact
    FOREIGN KEY (fact_id) REFERENCES memories_fact (id) ON DELETE CASCADE;
ALTER TABLE memories_turnvector ALTER COLUMN vector SET STATISTICS 0;
ALTER TABLE memories_factvector ALTER COLUMN vector SET STATISTICS 0;
"""


class Migration(migrations.Migration):
    """Vectors of turns and facts by space, how far each session and fact has them, and embedders' signs of life."""

    dependencies = [("memories", "0007_signal_phrases")]
    operations = [
        migrations.CreateModel(
            name='EmbeddingSpace',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('model', models.CharField(help_text='Of the embedding, e.g. use-multilingual-3.', max_length=120, unique=True)),
                ('dimensions', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('serving', 'Serving'), ('building', 'Building'), ('retired', 'Retired')], max_length=8)),
                ('created_at', models.DateTimeField()),
                ('refused', models.PositiveIntegerField(default=0, help_text='Texts that the endpoint will never take: found by their words alone.')),
                ('failures', models.PositiveIntegerField(default=0, help_text='Of the endpoint, in a row.')),
                ('failure', models.CharField(blank=True, help_text='Code of the last one.', max_length=40)),
                ('paused_until', models.DateTimeField(help_text='Nobody asks the endpoint before.', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='FactVector',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('language', models.CharField(help_text='zh, or en for everything else.', max_length=2)),
                ('vector', pgvector.django.halfvec.HalfVectorField()),
                ('text_digest', models.BinaryField(help_text="The fact's content_hash when it was made.", max_length=32)),
            ],
        ),
        migrations.CreateModel(
            name='TurnVector',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('language', models.CharField(help_text='zh, or en for everything else.', max_length=2)),
                ('vector', pgvector.django.halfvec.HalfVectorField()),
                ('number', models.PositiveIntegerField(help_text='Of the turn in its session.')),
            ],
        ),
        migrations.AddField(
            model_name='fact',
            name='embedded_hash',
            field=models.BinaryField(help_text='The content_hash that the serving space has a vector of.', max_length=32, null=True),
        ),
        migrations.AddField(
            model_name='session',
            name='embedded_number',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='Turns up to here have a vector in the serving space, or need none.'),
        ),
        migrations.AddField(
            model_name='workerheartbeat',
            name='kind',
            field=models.CharField(choices=[('cluster', 'Cluster'), ('embedder', 'Embedder')], default='cluster', max_length=8),
        ),
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(condition=models.Q(('status__in', ['active', 'pending']), models.Q(('embedded_hash', None), models.Q(('embedded_hash', models.F('content_hash')), _negated=True), _connector='OR')), fields=['-updated_at'], name='fact_unembedded_idx'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('embedded_number__lt', models.F('turn_count'))), fields=['-last_turn_at'], name='session_unembedded_idx'),
        ),
        migrations.AddConstraint(
            model_name='embeddingspace',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'serving')), fields=('state',), name='embedding_one_serving'),
        ),
        migrations.AddConstraint(
            model_name='embeddingspace',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'building')), fields=('state',), name='embedding_one_building'),
        ),
        migrations.AddField(
            model_name='factvector',
            name='end_user',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.enduser'),
        ),
        migrations.AddField(
            model_name='factvector',
            name='fact',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='vectors', to='memories.fact'),
        ),
        migrations.AddField(
            model_name='factvector',
            name='space',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memories.embeddingspace'),
        ),
        migrations.AddField(
            model_name='factvector',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant'),
        ),
        migrations.AddField(
            model_name='turnvector',
            name='end_user',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.enduser'),
        ),
        migrations.AddField(
            model_name='turnvector',
            name='session',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.session'),
        ),
        migrations.AddField(
            model_name='turnvector',
            name='space',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memories.embeddingspace'),
        ),
        migrations.AddField(
            model_name='turnvector',
            name='tenant',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant'),
        ),
        migrations.AddField(
            model_name='turnvector',
            name='turn',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='vectors', to='memories.turn'),
        ),
        migrations.AddIndex(
            model_name='factvector',
            index=models.Index(fields=['end_user', 'space'], name='fact_vector_of_end_user_idx'),
        ),
        migrations.AddConstraint(
            model_name='factvector',
            constraint=models.UniqueConstraint(fields=('fact', 'space'), name='fact_vector_once'),
        ),
        migrations.AddIndex(
            model_name='turnvector',
            index=models.Index(fields=['end_user', 'space'], name='turn_vector_of_end_user_idx'),
        ),
        migrations.AddConstraint(
            model_name='turnvector',
            constraint=models.UniqueConstraint(fields=('turn', 'space'), name='turn_vector_once'),
        ),
        migrations.RunSQL(FORWARD, migrations.RunSQL.noop),
    ]
