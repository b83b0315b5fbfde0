"""The event of a fact that says something else in its place."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0032_tenant_in_unique_keys'),
    ]

    operations = [
        migrations.AlterField(
            model_name='webhookdelivery',
            name='event',
            field=models.CharField(choices=[('fact.created', 'A fact is in use'), ('fact.updated', 'A fact in use says something else'), ('fact.superseded', 'A fact is replaced by another'), ('fact.forgotten', 'A fact is not used any more'), ('episode.created', 'An episode is made'), ('session.extracted', 'New turns of a session are read'), ('review.opened', 'Something waits for review'), ('case.opened', 'A privacy case is opened'), ('case.due', 'A privacy case is due soon, or overdue'), ('person.erased', 'An end user is erased'), ('budget.reached', 'A daily cap of the language model is reached'), ('test', 'A test')], editable=False, max_length=20, verbose_name='event'),
        ),
    ]
