"""What a model states of a fact in parts: a fact can have several triples."""

import django.db.models.deletion
from django.db import migrations, models

from memories.db.together import Together

# Samples of columns with personal data would outlive an erasure.
UNSAMPLED = "ALTER TABLE memories_fact ALTER COLUMN triples SET STATISTICS 0"


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0019_groups'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='fact',
                name='triples',
                field=models.JSONField(editable=False, help_text='What its text says, in parts: rows of the graph follow.', null=True, verbose_name='triples'),
            ),
            migrations.AlterField(
                model_name='graphtriple',
                name='fact',
                field=models.ForeignKey(db_constraint=False, db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='graph', to='memories.fact', verbose_name='fact'),
            ),
            migrations.AddField(
                model_name='graphtriple',
                name='place',
                field=models.PositiveSmallIntegerField(default=0, editable=False),
            ),
            migrations.RemoveConstraint(
                model_name='graphtriple',
                name='graph_triple_of_fact',
            ),
            migrations.AddConstraint(
                model_name='graphtriple',
                constraint=models.UniqueConstraint(fields=('fact', 'place', 'tenant'), name='graph_triple_of_fact'),
            ),
        ]),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
    ]
